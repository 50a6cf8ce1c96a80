// The kernels as a library for the host. variants.h, which the tests write, includes the sources once for each variant, and lists the kernels.
#define VRAM_EMULATE
#include <tuple>
#include "finish.h"
#define EACH_VARIANT
#include "variants.h"

template <class A> static A take(const void *params, size_t &at) {
    at = (at + alignof(A) - 1) / alignof(A) * alignof(A);
    A a;
    memcpy(&a, (const char *)params + at, sizeof a);
    at += sizeof a;
    return a;
}
template <auto F> struct caller;
template <class... A, void (*F)(A...)> struct caller<F> {
    static void body(const void *params) {
        size_t at = 0;
        std::tuple<A...> all{take<A>(params, at)...};
        std::apply(F, all);
    }
};

// A fakecuda_runner.
extern "C" __attribute__((visibility("default"))) int vram_run(const char *name, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes,
                                                              const void *params) {
#define K(space, kernel) \
    if (strcmp(name, #kernel) == 0) return emulated::run(caller<&space::kernel>::body, grid, block, shared_bytes, params);
    EACH_KERNEL
#undef K
    return 0;
}
