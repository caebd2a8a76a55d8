# FCM_SANITIZE is a comma-separated list for -fsanitize, empty for none; the presets asan and tsan set it.
set(FCM_SANITIZE "" CACHE STRING "sanitizers to build with, such as address,undefined")

# Optimised to the full, with every check in it, code takes longest to compile; not at all, to run. What spends minutes in the tests, the
# simulator and the kernels on it, says FAST and keeps the optimisation it has. Lines are all that a report shows.
function(fcm_sanitize target)
  if(FCM_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
    target_link_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE})
    if(NOT "FAST" IN_LIST ARGN)
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endif()
endfunction()
