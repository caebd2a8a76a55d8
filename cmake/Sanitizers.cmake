# FCM_SANITIZE is a comma-separated list for -fsanitize, empty for none; the presets asan and tsan set it.
set(FCM_SANITIZE "" CACHE STRING "sanitizers to build with, such as address,undefined")

# With all checks, fully optimized code takes longest to compile, and unoptimized code takes longest to run. The code that
# runs for minutes in the tests, the simulator and the kernels on it, uses FAST and keeps its optimization level. Debug
# information is limited to lines, which is all that a report shows.
function(fcm_sanitize target)
  if(FCM_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
    target_link_options(${target} PRIVATE -fsanitize=${FCM_SANITIZE})
    if(NOT "FAST" IN_LIST ARGN)
      target_compile_options(${target} PRIVATE -O1)
    endif()
  endif()
endfunction()
