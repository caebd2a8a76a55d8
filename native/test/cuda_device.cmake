# The CUDA kernels against the CPU's, in several orders of threads, on the GPUs with the most and the least shared memory,
# and as compiled by nvcc.
if(NOT TARGET fedcomuon_cudasim)
  return()
endif()

add_executable(cuda_device_test cuda_device_test.cpp)
target_link_libraries(cuda_device_test PRIVATE fedcomuon)
target_compile_definitions(cuda_device_test PRIVATE FCM_CUDASIM_LIBRARY="$<TARGET_FILE:fedcomuon_cudasim>")
if(FCM_SANITIZE)
  target_compile_definitions(cuda_device_test PRIVATE FCM_SANITIZED)
endif()
add_dependencies(cuda_device_test fedcomuon_cudasim)
fcm_warnings(cuda_device_test)
fcm_sanitize(cuda_device_test)

function(fcm_cuda_device_tests name)
  add_test(NAME cuda_device_test.${name} COMMAND cuda_device_test)
  set_tests_properties(cuda_device_test.${name} PROPERTIES TIMEOUT 300 ENVIRONMENT "${ARGN}")
endfunction()

fcm_cuda_device_tests(forward)
if(NOT FCM_SANITIZE)  # a sanitizer only checks memory; other orders show nothing new
  fcm_cuda_device_tests(eager FEDCOMUON_CUDASIM_STREAMS=eager FEDCOMUON_CUDASIM_ORDER=random:8)
  fcm_cuda_device_tests(sm_75 FEDCOMUON_CUDASIM_ARCH=75 FEDCOMUON_CUDASIM_ORDER=random:9)
  fcm_cuda_device_tests(sm_90 FEDCOMUON_CUDASIM_ARCH=90 FEDCOMUON_CUDASIM_ORDER=reverse)
endif()
if(TARGET fedcomuon_ptx)
  include(CudaArchitectures)
  add_dependencies(cuda_device_test fedcomuon_ptx)
  # The PTX of each architecture, on a GPU whose machine code is made from it. Much of it is the same in all three, but each run
  # takes only seconds.
  set(gpu_75 75)
  set(gpu_80 89)
  set(gpu_90 90)
  set(order_75 random:9)
  set(order_80 forward)
  set(order_90 random:10)
  foreach(ptx IN LISTS FCM_PTX_ARCHITECTURES)
    fcm_cuda_device_tests(ptx_${ptx} FEDCOMUON_CUDASIM_ENGINE=ptx FEDCOMUON_CUDASIM_PTX=${CMAKE_BINARY_DIR}/ptx/${ptx}
                          FEDCOMUON_CUDASIM_ARCH=${gpu_${ptx}} FEDCOMUON_CUDASIM_ORDER=${order_${ptx}})
  endforeach()
endif()

# A sanitizer adds nothing to the mutation tests and takes several times as long.
if(NOT FCM_SANITIZE)
  add_subdirectory(../sim/mutation "${CMAKE_BINARY_DIR}/mutation")
endif()
