// What kernels of attention by warpgroups share, for compute capability 9.0 alone: tiles that the copy engine brings to a ring of slots in shared memory, and
// products of tiles, or of a warpgroup's registers and a tile.
//
// A tile in a slot has rows of DIM elements, in parts of 64 elements: part after part, with rows of 128 bytes, as tensor maps with a swizzle of 128 bytes
// have them.
//
// More macros than attend.h has: CONSUMERS: warpgroups that compute; one more copies.
#pragma once
#include "../../matmul/source/bulk.h"
#include "attend.h"

namespace {

enum {
    PARTS = DIM / 64, ROW_BYTES = 128, GROUP = 128, GROUP_ROWS = 64,  // threads of a warpgroup, and its rows
    PRODUCER = CONSUMERS * GROUP,                                        // the thread that copies
    CONSUMER_REGISTERS = CONSUMERS == 2 ? 240 : 160, PRODUCER_REGISTERS = CONSUMERS == 2 ? 24 : 32,
};
static_assert(THREADS == (CONSUMERS + 1) * GROUP, "consumers, and a producer");

DEVICE void bulk_copy_4(u32 to, u64 map, u32 x, u32 row, u32 head, u32 batch, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
                 ::"r"(to), "l"(map), "r"(x), "r"(row), "r"(head), "r"(batch), "r"(barrier) : "memory");
}
// The same for numbers in a line.
DEVICE void bulk_copy_1(u32 to, u64 map, u32 x, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];"
                 ::"r"(to), "l"(map), "r"(x), "r"(barrier) : "memory");
}
// copy_rows begins the copy of COUNT rows to a tile.
template <int COUNT> DEVICE void copy_rows(u32 to, u64 map, u32 row, u32 head, u32 batch, u32 barrier) {
    UNROLL for (int i = 0; i < PARTS; i++) bulk_copy_4(to + i * COUNT * ROW_BYTES, map, 64 * i, row, head, batch, barrier);
}

// settle keeps the compiler from moving what it computes with these registers across this place.
template <int N> DEVICE void settle(float (&x)[N]) {
    UNROLL for (int i = 0; i < N; i += 8)
        asm volatile("" : "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])::"memory");
}
template <int N> DEVICE void settle(u32 (&x)[N]) {
    UNROLL for (int i = 0; i < N; i += 8)
        asm volatile("" : "+r"(x[i]), "+r"(x[i + 1]), "+r"(x[i + 2]), "+r"(x[i + 3]), "+r"(x[i + 4]), "+r"(x[i + 5]), "+r"(x[i + 6]), "+r"(x[i + 7])::"memory");
}

#define SUMS_8(x, i) "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), "+f"(x[i + 7])
#define SUMS_32(x, i) SUMS_8(x, i), SUMS_8(x, i + 8), SUMS_8(x, i + 16), SUMS_8(x, i + 24)
#if KIND == BF16
#define KIND_NAME "bf16"
#define GROUP_KIND 2
#else
#define KIND_NAME "f16"
#define GROUP_KIND 1
#endif
// add_down begins to add the product of 16 columns of registers and 16 rows of a tile, whose columns lie side by side.
DEVICE void add_down(float (&d)[32], const u32 *a, u64 tile) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32." KIND_NAME "." KIND_NAME " {" PLACES_32 "}, {%32,%33,%34,%35}, %36, 1, 1, 1, 1;"
                 : SUMS_32(d, 0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile) : "memory");
}
DEVICE void add_down(float (&d)[64], const u32 *a, u64 tile) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32." KIND_NAME "." KIND_NAME " {" PLACES_64 "}, {%64,%65,%66,%67}, %68, 1, 1, 1, 1;"
                 : SUMS_32(d, 0), SUMS_32(d, 32) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(tile) : "memory");
}
#undef SUMS_8
#undef SUMS_32

// multiply_across begins the product of a warpgroup's 64 rows and ROWS rows of a tile, each of which becomes a column.
template <int ROWS> DEVICE void multiply_across(float (&d)[ROWS / 2], u32 own, u32 tile) {
    UNROLL for (int k = 0; k < STEPS; k++) {
        const u32 at = k % 4 * 32;
        group_multiply_16<GROUP_KIND, 0, 0>(d, group_matrix_at(own + k / 4 * GROUP_ROWS * ROW_BYTES + at, 16),
                                            group_matrix_at(tile + k / 4 * ROWS * ROW_BYTES + at, 16), k > 0);
    }
}
// multiply_down begins to add the product of rounded numbers, of 64 rows and ROWS columns, and the ROWS rows of a tile.
template <int ROWS> DEVICE void multiply_down(float (&d)[DIM / 2], const u32 (&a)[ROWS / 4], u32 tile) {
    UNROLL for (int k = 0; k < ROWS / 16; k++) add_down(d, a + 4 * k, group_matrix_at(tile + k * 16 * ROW_BYTES, ROWS * ROW_BYTES));
}

// round makes left operands of a product of sums.
template <int N> DEVICE void round(u32 (&to)[N], const float (&x)[2 * N]) {
    UNROLL for (int i = 0; i < N; i++) to[i] = packed(x[2 * i], x[2 * i + 1]);
}

// ring counts uses of slots: a phase of a slot's barriers ends with each use.
template <int COUNT> struct ring {
    u32 slot, parity;
    MEMBER ring() : slot(0), parity(0) {}
    MEMBER void next() {
        if (++slot == COUNT) slot = 0, parity ^= 1;
    }
};

// write_group writes a warp's 16 rows of sums to global memory, each half of the rows times a factor, except for rows that do not exist. They go through
// the warp's own rows of a tile without parts. Addresses are computed again each time: the registers are for sums.
DEVICE void write_group(element *to, i64 step, tile out, const float (&x)[DIM / 2], float top, float bottom, int count) {
    const u32 lane = thread_again() % 32, vector = lane % VECTORS, row = thread_again() % GROUP / 32 * 16;
    out += row * (2 * DIM);
    warp_barrier();  // all lanes have stored the rows before
    UNROLL for (int j = 0; j < COLUMNS_DIM; j++) {
        const u32 at = out + lane % 4 * 4;
        *shared_at<u32>(at + place(lane / 4, j)) = packed(x[4 * j] * top, x[4 * j + 1] * top);
        *shared_at<u32>(at + place(lane / 4 + 8, j)) = packed(x[4 * j + 2] * bottom, x[4 * j + 3] * bottom);
    }
    warp_barrier();
    UNROLL for (int i = 0; i < 16; i += 32 / VECTORS) {
        const int at = i + lane / VECTORS;
        if ((int)row + at < count) {
            quad q;
            UNROLL for (int e = 0; e < 4; e++) q.x[e] = shared_at<u32>(out + place(at, vector))[e];
            *(quad *)(to + (row + at) * step + vector * VECTOR) = q;
        }
    }
}

}  // namespace
