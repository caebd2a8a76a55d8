# The GPUs that are compiled for: Turing 75, Ampere 80 and 86, Ada 89, Hopper 90, Blackwell 100 and 120.
set(FCM_CUDA_ARCHITECTURES "75;80;86;89;90;100;120" CACHE STRING "compute capabilities to make machine code for")

# All of them from one PTX, that of the oldest. So what the tests interpret is what every GPU's code is made of, and later
# GPUs make theirs from it too: it comes along in the library.
set(FCM_PTX_ARCHITECTURE 75)

set(FCM_CUDA_CODES "")
foreach(architecture IN LISTS FCM_CUDA_ARCHITECTURES)
  string(APPEND FCM_CUDA_CODES "sm_${architecture},")
endforeach()
set(FCM_CUDA_GENCODE "-gencode=arch=compute_${FCM_PTX_ARCHITECTURE},code=[${FCM_CUDA_CODES}compute_${FCM_PTX_ARCHITECTURE}]")

# IEEE arithmetic, as on the CPU: nothing fused unless the source says fmaf, quotients and roots rounded correctly.
set(FCM_CUDA_ARITHMETIC -fmad=false -prec-div=true -prec-sqrt=true -ftz=false)
