# The entry points are tested with backends that only record their calls.
function(fcm_fake_backend name)
  add_library(${name} MODULE fixtures/fake_backend.cpp)
  target_include_directories(${name} PRIVATE ../include)
  target_compile_definitions(${name} PRIVATE ${ARGN})
  target_link_options(${name} PRIVATE LINKER:-Bsymbolic)
  fcm_warnings(${name})
  fcm_sanitize(${name})
  add_dependencies(front_door_test ${name})
endfunction()

fcm_test(front_door_test.cpp)
fcm_fake_backend(fake_cudasim FAKE_KIND=FCM_CUDASIM)
fcm_fake_backend(fake_second FAKE_KIND=FCM_CUDASIM)
fcm_fake_backend(fake_cuda FAKE_KIND=FCM_CUDA)
fcm_fake_backend(fake_incomplete FAKE_KIND=FCM_CUDA FAKE_INCOMPLETE)
add_dependencies(front_door_test other_abi not_ours)
target_compile_definitions(
  front_door_test
  PRIVATE FCM_HEADER="${PROJECT_SOURCE_DIR}/include/fedcomuon.h"
          FCM_LIBRARY="$<TARGET_FILE:fedcomuon>"
          FAKE_CUDASIM="$<TARGET_FILE:fake_cudasim>"
          FAKE_SECOND="$<TARGET_FILE:fake_second>"
          FAKE_CUDA="$<TARGET_FILE:fake_cuda>"
          FAKE_INCOMPLETE="$<TARGET_FILE:fake_incomplete>"
          OTHER_ABI="$<TARGET_FILE:other_abi>"
          NOT_OURS="$<TARGET_FILE:not_ours>")
