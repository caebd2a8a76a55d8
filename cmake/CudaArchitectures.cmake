# The GPU architectures: Turing 75, Ampere 80 and 86, Ada 89, Hopper 90, Blackwell 100 and 120.
set(FCM_CUDA_ARCHITECTURES "75;80;86;89;90;100;120" CACHE STRING "compute capabilities to make machine code for")

# The PTX that machine code is made from: asynchronous copies and tensor cores with bf16 and tf32 exist since 80. The tests
# interpret the code that every GPU's machine code is made from. The newest PTX is included in the library, so that later GPUs
# can compile it as well.
set(FCM_PTX_ARCHITECTURES 75 80 90)
list(GET FCM_PTX_ARCHITECTURES -1 FCM_NEWEST_PTX)

# The PTX of an architecture: the newest that is not newer than the architecture itself.
function(fcm_ptx_architecture architecture out)
  set(found "")
  foreach(ptx IN LISTS FCM_PTX_ARCHITECTURES)
    if(ptx LESS_EQUAL architecture)
      set(found ${ptx})
    endif()
  endforeach()
  if(NOT found)
    message(FATAL_ERROR "FCM_CUDA_ARCHITECTURES: there is no PTX for sm_${architecture}")
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

foreach(ptx IN LISTS FCM_PTX_ARCHITECTURES)
  set(codes_${ptx} "")
endforeach()
foreach(architecture IN LISTS FCM_CUDA_ARCHITECTURES)
  fcm_ptx_architecture(${architecture} ptx)
  list(APPEND codes_${ptx} sm_${architecture})
endforeach()
list(APPEND codes_${FCM_NEWEST_PTX} compute_${FCM_NEWEST_PTX})
set(FCM_CUDA_GENCODE "")
foreach(ptx IN LISTS FCM_PTX_ARCHITECTURES)
  if(codes_${ptx})
    list(JOIN codes_${ptx} "," codes)
    list(APPEND FCM_CUDA_GENCODE "-gencode=arch=compute_${ptx},code=[${codes}]")
  endif()
endforeach()

# IEEE arithmetic, as on the CPU: nothing is fused unless the source uses fmaf; quotients and square roots are correctly
# rounded.
set(FCM_CUDA_ARITHMETIC -fmad=false -prec-div=true -prec-sqrt=true -ftz=false)
