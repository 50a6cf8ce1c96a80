// A stand-in for PyTorch's header of that name, with just what the peer calls. It keeps nothing: what it
// holds is what is live.
#pragma once

#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <c10/cuda/CUDAStream.h>

namespace c10 {

using DeleterFnPtr = void (*)(void*);

enum DeviceType { kCUDA };

using DeviceIndex = signed char;

namespace cuda::_internal {
inline bool (*has_primary_context)(DeviceIndex) = nullptr;

// Not inline: its users declare it themselves.
void setHasPrimaryContext(bool (*answer)(DeviceIndex)) { has_primary_context = answer; }
}  // namespace cuda::_internal

struct Device {
  Device(DeviceType, int) {}
};

struct DataPtr {
  DataPtr(void* p, void* c, DeleterFnPtr d, Device) : data(p), context(c), deleter(d) {}
  ~DataPtr() {
    if (context != nullptr) deleter(context);
  }
  void* release_context() {
    void* was = context;
    context = nullptr;
    return was;
  }

  void *data, *context;
  DeleterFnPtr deleter;
};

}  // namespace c10

namespace c10::cuda::CUDACachingAllocator {

struct Stat {
  int64_t current = 0, peak = 0;
};

struct DeviceStats {
  std::array<Stat, 3> reserved_bytes;
};

struct SegmentInfo {
  bool is_expandable = false;
};

struct SnapshotInfo {
  std::vector<SegmentInfo> segments;
};

struct StandinState {
  bool ready = false;
  size_t most_bytes = standin::kTotalBytes;
  StandinPool peak{standin::kTotalBytes, 0};
};

inline StandinState& state() {
  static StandinState s;
  return s;
}

inline void init(int) {
  state().ready = true;
  standin::machine().pool = &state().peak;
}

inline void* raw_alloc_with_stream(size_t bytes, cudaStream_t s) {
  if (!state().ready || !standin::known(s)) throw std::runtime_error("not initialised, or no such stream");
  void* p = nullptr;
  if (standin::take(&p, bytes, state().most_bytes) != cudaSuccess) throw OutOfMemoryError("out of memory");
  return p;
}

inline void raw_delete(void* p) {
  if (standin::give(p) != cudaSuccess) throw std::runtime_error("invalid device pointer");
}

struct Allocator {
  DeleterFnPtr raw_deleter() const { return &raw_delete; }
};

inline Allocator* get() {
  static Allocator a;
  return &a;
}

inline void recordStream(const DataPtr& p, CUDAStream s) {
  if (p.deleter != &raw_delete || !standin::known(s.stream)) throw std::runtime_error("not its own, or no such stream");
}

inline void emptyCache() {}
inline void setMemoryFraction(double fraction, int) {
  state().most_bytes = static_cast<size_t>(fraction * static_cast<double>(standin::kTotalBytes));
}
inline DeviceStats getDeviceStats(int) {
  DeviceStats stats;
  stats.reserved_bytes[0].peak = static_cast<int64_t>(state().peak.peak_bytes);
  return stats;
}
inline void resetPeakStats(int) { state().peak.peak_bytes = standin::machine().live_bytes; }
inline SnapshotInfo snapshot() {
  const char* conf = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  SnapshotInfo info;
  info.segments.push_back({conf != nullptr && std::strstr(conf, "expandable_segments:True") != nullptr});
  return info;
}

}  // namespace c10::cuda::CUDACachingAllocator
