// PyTorch's caching allocator, called from C++: c10::cuda::CUDACachingAllocator. Its settings come from
// PYTORCH_CUDA_ALLOC_CONF, once in a process; -impl torch-expandable wants expandable segments there and
// makes sure that they are in use.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include "program.h"

// Exported by libc10_cuda, but in none of its headers.
namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*)(c10::DeviceIndex));
}

namespace {

namespace pytorch = c10::cuda::CUDACachingAllocator;

class Torch {
 public:
  static constexpr bool kRecords = true;

  explicit Torch(bool expandable) : expandable_(expandable) {}

  void* alloc(int64_t bytes, cudaStream_t stream) {
    try {
      return pytorch::raw_alloc_with_stream(static_cast<size_t>(bytes), stream);
    } catch (const c10::OutOfMemoryError&) {
      (void)cudaGetLastError();  // the failed call's result stays behind
      return nullptr;
    }
  }

  void release(void* p, cudaStream_t) { pytorch::raw_delete(p); }

  // What record_stream of a tensor ends in. The allocator looks at the deleter to know its own memory.
  void record(void* p, cudaStream_t stream) {
    c10::DataPtr data(p, p, pytorch::get()->raw_deleter(), c10::Device(c10::kCUDA, 0));
    pytorch::recordStream(data, c10::cuda::getStreamFromExternal(stream, 0));
    (void)data.release_context();
  }

  void prepare() {
    peers::check(cudaSetDevice(0), "cudaSetDevice");
    peers::check(cudaFree(nullptr), "cudaFree");
    int count = 0;
    peers::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
    // The free of a recorded block asks whether a device is in use: libtorch_cuda, which is not needed otherwise, answers.
    c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
    pytorch::init(count);
    peers::Streams streams(1);
    void* p = peers::must(*this, 64 << 20, streams[0]);
    bool found = false;
    auto snapshot = pytorch::snapshot();
    for (const auto& segment : snapshot.segments) found = found || segment.is_expandable;
    release(p, streams[0]);
    forget();
    if (found != expandable_) {
      throw std::runtime_error(expandable_ ? "its segments are not expandable: see PYTORCH_CUDA_ALLOC_CONF"
                                           : "its segments are expandable: see PYTORCH_CUDA_ALLOC_CONF");
    }
  }

  void forget() { pytorch::emptyCache(); }

  void limit(int64_t bytes) {
    size_t free_bytes = 0, total_bytes = 0;
    peers::check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    pytorch::setMemoryFraction(static_cast<double>(bytes) / static_cast<double>(total_bytes), 0);
  }

  int64_t reserved_peak() { return pytorch::getDeviceStats(0).reserved_bytes[0].peak; }

  void reset_peak() { pytorch::resetPeakStats(0); }

 private:
  bool expandable_;
};

}  // namespace

int main(int argc, char** argv) {
  peers::CommandLine line(argc, argv);
  const std::string impl = line.text("impl", "torch");
  return peers::guarded(impl, [&] {
    Torch peer(impl == "torch-expandable");
    return peers::run_program(peer, line, impl);
  });
}
