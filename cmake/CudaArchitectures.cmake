# The GPU architectures: Turing 75, Ampere 80 and 86, Ada 89, Hopper 90, Blackwell 100 and 120.
set(FCM_CUDA_ARCHITECTURES "75;80;86;89;90;100;120" CACHE STRING "compute capabilities to make machine code for")

# All of them are compiled from one PTX, that of the oldest. The tests therefore interpret the code that every GPU's machine
# code is made from. The PTX is included in the library, so that later GPUs can compile it as well.
set(FCM_PTX_ARCHITECTURE 75)

set(FCM_CUDA_CODES "")
foreach(architecture IN LISTS FCM_CUDA_ARCHITECTURES)
  string(APPEND FCM_CUDA_CODES "sm_${architecture},")
endforeach()
set(FCM_CUDA_GENCODE "-gencode=arch=compute_${FCM_PTX_ARCHITECTURE},code=[${FCM_CUDA_CODES}compute_${FCM_PTX_ARCHITECTURE}]")

# IEEE arithmetic, as on the CPU: nothing is fused unless the source uses fmaf; quotients and square roots are correctly
# rounded.
set(FCM_CUDA_ARITHMETIC -fmad=false -prec-div=true -prec-sqrt=true -ftz=false)
