// What the kernels need of the machine: the special registers, asynchronous copies, matrix instructions. The same words for clang's CUDA
// without NVIDIA's headers, and for a host compiler with emulate.h.
#pragma once

typedef unsigned short u16;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;

struct alignas(16) quad { u32 x[4]; };  // 16 bytes, which are loaded and stored at once
struct alignas(8) pair { u32 x[2]; };

#ifdef VRAM_EMULATE
#include "emulate.h"
#else

#define KERNEL extern "C" __attribute__((global)) __attribute__((visibility("protected")))
#define BOUNDS(threads) __attribute__((launch_bounds(threads)))
#define BOUNDS2(threads, blocks) __attribute__((launch_bounds(threads, blocks)))
#define MEMBER __attribute__((device)) __attribute__((always_inline)) inline
#define DEVICE static __attribute__((device)) __attribute__((always_inline)) inline
#define SHARED __attribute__((shared))
#define UNROLL _Pragma("unroll")
#define UNROLL_4 _Pragma("unroll 4")
#define NO_UNROLL _Pragma("unroll 1")

DEVICE u32 thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE u32 block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
DEVICE u32 grid_x() { return __nvvm_read_ptx_sreg_nctaid_x(); }
DEVICE void barrier() { __syncthreads(); }
// A barrier of so many threads, by its number. Who arrives does not wait.
template <int THREADS> DEVICE void barrier_of(int number) { asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory"); }
template <int THREADS> DEVICE void arrive_at(int number) { asm volatile("bar.arrive %0, %1;" ::"r"(number), "n"(THREADS) : "memory"); }
DEVICE void warp_barrier() { __nvvm_bar_warp_sync(0xffffffff); }

extern SHARED quad dynamic_shared[];
DEVICE char *dynamic_memory() { return (char *)dynamic_shared; }

DEVICE u32 shared_address(const void *p) { return (u32)(u64)(__attribute__((address_space(3))) const void *)p; }

// 16 or 4 bytes from global to shared memory; the functions with bytes read the first ones alone, and the others become 0.
DEVICE void copy16_if(bool does, void *to, const void *from) {
    asm volatile("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\n@p cp.async.cg.shared.global [%0], [%1], 16;\n}"
                 ::"r"(shared_address(to)), "l"(from), "r"((u32)does) : "memory");
}
DEVICE void copy16_of(void *to, const void *from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
DEVICE void copy4_of(void *to, const void *from, u32 bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(to)), "l"(from), "r"(bytes) : "memory");
}
DEVICE void copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> DEVICE void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

// Four matrices of 8 rows of 16 bytes; each lane names a row.
DEVICE void load_matrices(u32 (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}
DEVICE void load_matrices_transposed(u32 (&r)[4], const void *row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_address(row)) : "memory");
}

#define MULTIPLY(name, instruction, count_a, A)                                                                      \
    DEVICE void name(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {                                            \
        asm volatile(instruction " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                               \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                   \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                               \
    }
MULTIPLY(multiply_tf32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, a)
MULTIPLY(multiply_bf16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, a)
MULTIPLY(multiply_f16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, a)
#undef MULTIPLY

// Instructions of a warpgroup, which is four warps: compute capability 9.0 alone.
struct alignas(1024) kilobyte { u32 x[256]; };
extern SHARED kilobyte group_shared[];
DEVICE char *group_memory() { return (char *)group_shared; }
// What this thread has written to shared memory is there for the instructions of warpgroups.
DEVICE void shared_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// Registers that were written are there for the next instructions.
DEVICE void group_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> DEVICE void group_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }
// The nearest number with 10 bits of fraction, ties away from zero.
DEVICE u32 to_tf32(float v) {
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(v));
    return r;
}
DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
DEVICE u32 bits_of(float v) { return __builtin_bit_cast(u32, v); }
DEVICE float power_of_two(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
// a / b, off by two units of the last place at most. An exact one would be a call of a function, beside which wgmma instructions do not overlap.
DEVICE float quotient(float a, float b) {
    float r;
    asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
    return r;
}
DEVICE float from_f16(u16 h) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(h));
    return r;
}
DEVICE u16 to_f16(float v) {
    u16 r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
DEVICE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
DEVICE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
// The sum over a warp, in every lane.
DEVICE float lane_sum(float v) {
    UNROLL for (int at = 16; at > 0; at /= 2) v += float_of(__nvvm_shfl_sync_bfly_i32(-1, bits_of(v), at, 31));
    return v;
}
DEVICE double lane_sum(double v) {
    UNROLL for (int at = 16; at > 0; at /= 2) {
        u64 bits = __builtin_bit_cast(u64, v);
        u32 low = __nvvm_shfl_sync_bfly_i32(-1, (u32)bits, at, 31), high = __nvvm_shfl_sync_bfly_i32(-1, (u32)(bits >> 32), at, 31);
        v += __builtin_bit_cast(double, (u64)high << 32 | low);
    }
    return v;
}
#endif

// rounded is a number of which the first 10 bits of fraction, all that the units read, are about those of the nearest number of as many: the factor adds
// two to four thirds of half a unit of them. It is one multiplication, where the instruction for rounding becomes three operations of integers. What has
// no more bits stays, for less than a unit is added, and so do infinities and what is not a number.
DEVICE float rounded(float v) { return v * 1.00032552f; }

// split writes a number as the sum of two: what TF32 keeps of it, whose further bits the units cut off, and the rest.
DEVICE void split(float v, u32 &big, u32 &rest) {
    big = bits_of(rounded(v));
    rest = bits_of(v - float_of(big & 0xffffe000));
}

// Numbers of 16 bits. A bfloat16 is the upper half of a float, to the nearest, ties to even.
DEVICE float from_bf16(u16 h) { return float_of((u32)h << 16); }
DEVICE u16 to_bf16(float v) {
    u32 bits = bits_of(v);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;  // not a number
    return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

DEVICE i64 smaller(i64 a, i64 b) { return a < b ? a : b; }
