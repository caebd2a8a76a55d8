# FCM_SANITIZE is a comma-separated list for -fsanitize, empty for none; the presets asan and tsan set it.
set(FCM_SANITIZE "" CACHE STRING "sanitizers to build with, such as address,undefined")

function(fcm_sanitize target)
  if(FCM_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
    target_link_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE})
    # Programs are tests: optimised to the full, with every check in them, they take longest to compile; not at all, to run.
    get_target_property(kind ${target} TYPE)
    if(kind STREQUAL EXECUTABLE)
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endif()
endfunction()
