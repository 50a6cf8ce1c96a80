// What a peer is. The loops are templates over it, so that no call goes through a table:
//
//   void* alloc(int64_t bytes, cudaStream_t stream)  memory, or nullptr where there is none
//   void release(void* p, cudaStream_t stream)       stream is the one that p was allocated on
//   kRecords, void record(void* p, cudaStream_t)     whether it knows of uses on other streams, and one until the release
//   void prepare()                                   makes the context; not on the clock
//   void forget()                                    gives cached memory back to the driver
//   void limit(int64_t bytes)                        holds no more than that from now on; throws where it cannot
//   int64_t reserved_peak()                          most bytes held from the driver since reset_peak()
//   void reset_peak()
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace peers {

inline void check(cudaError_t result, const char* call) {
  if (result != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(result));
}

// Streams of a scenario. They end with the process: with expandable segments torch 2.11.0 waits for the streams of what it
// gives back, also for those that were destroyed, and ends in a segmentation fault.
class Streams {
 public:
  explicit Streams(int count) {
    for (int i = 0; i < count; i++) {
      cudaStream_t s;
      check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
      streams_.push_back(s);
    }
  }
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;
  cudaStream_t operator[](size_t i) const { return streams_[i]; }

 private:
  std::vector<cudaStream_t> streams_;
};

// Memory that must be there.
template <class Peer>
void* must(Peer& peer, int64_t bytes, cudaStream_t stream) {
  void* p = peer.alloc(bytes, stream);
  if (p == nullptr) throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes");
  return p;
}

}  // namespace peers
