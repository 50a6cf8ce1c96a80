// A stand-in for CUDA's header of that name, with just what the peers call, so that they compile and run
// where there is no CUDA. Addresses are numbers; a stream is one, too; memory runs out at kTotalBytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
using cudaStream_t = struct StandinStream*;
using cudaMemPool_t = struct StandinPool*;

enum cudaMemAllocationType { cudaMemAllocationTypeInvalid = 0, cudaMemAllocationTypePinned = 1 };
enum cudaMemAllocationHandleType { cudaMemHandleTypeNone = 0 };
enum cudaMemLocationType { cudaMemLocationTypeInvalid = 0, cudaMemLocationTypeDevice = 1 };
enum cudaMemPoolAttr { cudaMemPoolAttrReleaseThreshold = 4, cudaMemPoolAttrReservedMemHigh = 6 };
enum { cudaStreamNonBlocking = 1 };

struct cudaMemLocation {
  cudaMemLocationType type;
  int id;
};

struct cudaMemPoolProps {
  cudaMemAllocationType allocType;
  cudaMemAllocationHandleType handleTypes;
  cudaMemLocation location;
  void* win32SecurityAttributes;
  size_t maxSize;
};

struct StandinPool {
  size_t most_bytes;
  size_t peak_bytes;
};

namespace standin {

constexpr size_t kTotalBytes = size_t{16} << 30;

struct Machine {
  std::mutex mutex;
  std::map<void*, size_t> live;
  std::set<cudaStream_t> streams;
  size_t live_bytes = 0;
  uintptr_t next = 0x10000;
  StandinPool* pool = nullptr;
};

inline Machine& machine() {
  static Machine m;
  return m;
}

inline cudaError_t take(void** p, size_t bytes, size_t most_bytes) {
  Machine& m = machine();
  std::lock_guard<std::mutex> hold(m.mutex);
  if (m.live_bytes + bytes > most_bytes) return cudaErrorMemoryAllocation;
  *p = reinterpret_cast<void*>(m.next);
  m.next += (bytes + 511) / 512 * 512;
  m.live[*p] = bytes;
  m.live_bytes += bytes;
  if (m.pool != nullptr && m.live_bytes > m.pool->peak_bytes) m.pool->peak_bytes = m.live_bytes;
  return cudaSuccess;
}

inline cudaError_t give(void* p) {
  Machine& m = machine();
  std::lock_guard<std::mutex> hold(m.mutex);
  auto at = m.live.find(p);
  if (at == m.live.end()) return cudaErrorInvalidValue;
  m.live_bytes -= at->second;
  m.live.erase(at);
  return cudaSuccess;
}

// A stream that nobody made, or that is destroyed, is refused.
inline bool known(cudaStream_t s) {
  Machine& m = machine();
  std::lock_guard<std::mutex> hold(m.mutex);
  return m.streams.count(s) == 1;
}

}  // namespace standin

inline const char* cudaGetErrorString(cudaError_t) { return "the stand-in refused"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  *total_bytes = standin::kTotalBytes;
  *free_bytes = standin::kTotalBytes - standin::machine().live_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  *s = static_cast<cudaStream_t>(std::malloc(1));
  standin::machine().streams.insert(*s);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
  standin::machine().streams.erase(s);
  std::free(s);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  return standin::known(s) ? cudaSuccess : cudaErrorInvalidValue;
}
inline cudaError_t cudaMalloc(void** p, size_t bytes) { return standin::take(p, bytes, standin::kTotalBytes); }
inline cudaError_t cudaFree(void* p) { return p == nullptr ? cudaSuccess : standin::give(p); }
inline cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  if (props->allocType != cudaMemAllocationTypePinned || props->location.type != cudaMemLocationTypeDevice) {
    return cudaErrorInvalidValue;
  }
  *pool = new StandinPool{props->maxSize == 0 ? standin::kTotalBytes : props->maxSize, 0};
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSetMemPool(int, cudaMemPool_t pool) {
  standin::machine().pool = pool;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }
inline cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void* value) {
  *static_cast<uint64_t*>(value) = pool->peak_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attr, void*) {
  if (attr == cudaMemPoolAttrReservedMemHigh) pool->peak_bytes = standin::machine().live_bytes;
  return cudaSuccess;
}
inline cudaError_t cudaMallocAsync(void** p, size_t bytes, cudaStream_t s) {
  if (!standin::known(s) || standin::machine().pool == nullptr) return cudaErrorInvalidValue;
  return standin::take(p, bytes, standin::machine().pool->most_bytes);
}
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  return standin::known(s) ? standin::give(p) : cudaErrorInvalidValue;
}
