// A stand-in for PyTorch's header of that name.
#pragma once

#include <cuda_runtime_api.h>

namespace c10::cuda {

struct CUDAStream {
  cudaStream_t stream;
};

inline CUDAStream getStreamFromExternal(cudaStream_t s, int) { return {s}; }

}  // namespace c10::cuda
