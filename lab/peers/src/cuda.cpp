// What CUDA itself offers: cudaMallocAsync with a pool that keeps what is freed (-kind async), and cudaMalloc
// (-kind plain).
#include <cuda_runtime_api.h>

#include "program.h"

namespace {

// cudaMallocAsync from a pool of our own, so that it can have a limit.
class Async {
 public:
  static constexpr bool kRecords = false;

  void* alloc(int64_t bytes, cudaStream_t stream) {
    void* p = nullptr;
    cudaError_t result = cudaMallocAsync(&p, static_cast<size_t>(bytes), stream);
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    peers::check(result, "cudaMallocAsync");
    return p;
  }

  void release(void* p, cudaStream_t stream) { peers::check(cudaFreeAsync(p, stream), "cudaFreeAsync"); }

  void prepare() {
    peers::check(cudaSetDevice(0), "cudaSetDevice");
    peers::check(cudaFree(nullptr), "cudaFree");
    open(0);
    peers::Streams streams(1);
    release(peers::must(*this, 1 << 20, streams[0]), streams[0]);
    peers::check(cudaStreamSynchronize(streams[0]), "cudaStreamSynchronize");
    forget();
  }

  void forget() { peers::check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo"); }

  void limit(int64_t bytes) { open(bytes); }

  int64_t reserved_peak() {
    uint64_t bytes = 0;
    peers::check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes), "cudaMemPoolGetAttribute");
    return static_cast<int64_t>(bytes);
  }

  void reset_peak() {
    uint64_t bytes = 0;
    peers::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReservedMemHigh, &bytes), "cudaMemPoolSetAttribute");
  }

 private:
  // Makes a pool the device's. One that it replaces is empty, and goes with the process.
  void open(int64_t limit_bytes) {
    cudaMemPoolProps props = {};
    props.allocType = cudaMemAllocationTypePinned;
    props.handleTypes = cudaMemHandleTypeNone;
    props.location.type = cudaMemLocationTypeDevice;
    props.location.id = 0;
    props.maxSize = static_cast<size_t>(limit_bytes);
    peers::check(cudaMemPoolCreate(&pool_, &props), "cudaMemPoolCreate");
    uint64_t keep_bytes = UINT64_MAX;
    peers::check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep_bytes),
                 "cudaMemPoolSetAttribute");
    peers::check(cudaDeviceSetMemPool(0, pool_), "cudaDeviceSetMemPool");
  }

  cudaMemPool_t pool_ = nullptr;
};

// cudaMalloc and cudaFree, which cache nothing: what they hold is what is live, which only the caller knows.
class Plain {
 public:
  static constexpr bool kRecords = false;

  void* alloc(int64_t bytes, cudaStream_t) {
    void* p = nullptr;
    cudaError_t result = cudaMalloc(&p, static_cast<size_t>(bytes));
    if (result == cudaErrorMemoryAllocation) {
      (void)cudaGetLastError();
      return nullptr;
    }
    peers::check(result, "cudaMalloc");
    return p;
  }

  void release(void* p, cudaStream_t) { peers::check(cudaFree(p), "cudaFree"); }

  void prepare() {
    peers::check(cudaSetDevice(0), "cudaSetDevice");
    peers::check(cudaFree(nullptr), "cudaFree");
  }

  void forget() {}
  void limit(int64_t) { throw std::runtime_error("cudaMalloc has no limit"); }
  int64_t reserved_peak() { return 0; }
  void reset_peak() {}
};

}  // namespace

int main(int argc, char** argv) {
  peers::CommandLine line(argc, argv);
  if (!line.words.empty() && line.words[0] == "sequence") return peers::print_sequence();
  const std::string kind = line.text("kind", "async");
  const std::string impl = line.text("impl", kind == "plain" ? "cudaMalloc" : "cudaMallocAsync");
  return peers::guarded(impl, [&] {
    if (kind == "plain") {
      Plain peer;
      return peers::run_program(peer, line, impl);
    }
    Async peer;
    return peers::run_program(peer, line, impl);
  });
}
