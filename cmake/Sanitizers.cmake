# FCM_SANITIZE is a comma-separated list for -fsanitize, empty for none; the presets asan and tsan set it.
set(FCM_SANITIZE "" CACHE STRING "sanitizers to build with, such as address,undefined")

function(fcm_sanitize target)
  if(FCM_SANITIZE)
    # Optimised to the full, with every check in it, code takes longest to compile; not at all, to run. Lines are all that a report shows.
    target_compile_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
    target_link_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE})
  endif()
endfunction()
