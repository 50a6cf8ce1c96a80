// The common parts of the kernels of attention: rows of queries, keys and values in global memory, tiles of them in shared memory, fragments of tiles for the
// matrix units, and softmax of base 2.
//
// Macros: NAME; KIND: BF16 or F16; DIM: elements of a head, 64 or 128; WARPS.
#pragma once
#include "../../matmul/source/device.h"

#define BF16 1
#define F16 2
#if KIND == BF16
#define multiply multiply_bf16
#define wide from_bf16
#define PACK "cvt.rn.bf16x2.f32 %0, %1, %2;"
#else
#define multiply multiply_f16
#define wide from_f16
#define PACK "cvt.rn.f16x2.f32 %0, %1, %2;"
#endif

typedef u16 element;
typedef float sums[4];  // of 16 rows and 8 columns: a lane has two neighbors of row lane / 4, and two of the row 8 below

namespace {

enum {
    THREADS = 32 * WARPS, VECTOR = 8, VECTORS = DIM / VECTOR,  // a vector is 16 bytes
    STEPS = DIM / 16, COLUMNS_DIM = DIM / 8,
};
const float LOG2_E = 1.44269504f, LN_2 = 0.693147182f, INFINITE = __builtin_inff();

DEVICE float greater(float a, float b) { return __builtin_fmaxf(a, b); }
DEVICE float logarithm_of_two(float x) {
    float r;
    asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE float from_lane(float v, int distance) { return float_of(__nvvm_shfl_sync_bfly_i32(-1, bits_of(v), distance, 31)); }
// Over the four lanes that share a row of sums.
DEVICE float row_sum(float v) {
    v += from_lane(v, 1);
    return v + from_lane(v, 2);
}
DEVICE float row_max(float v) {
    v = greater(v, from_lane(v, 1));
    return greater(v, from_lane(v, 2));
}
// Two numbers rounded to 16 bits, low in the lower half.
DEVICE u32 packed(float low, float high) {
    u32 r;
    asm(PACK : "=r"(r) : "f"(high), "f"(low));
    return r;
}

// strides of a matrix, in elements.
struct strides { i64 batch, head, row; };

// span is a sequence's part of rows.
struct span { int first, count; };

// span_of is all rows, or where there are offsets, the rows from one to the next. Offsets come from the caller's memory: those out of range trap.
DEVICE span span_of(const u32 *offsets, u32 batch, u32 each, u32 total) {
    if (!offsets) return {0, (int)each};
    const u32 first = offsets[batch], next = offsets[batch + 1];
    if (first > next || next > total || next - first > each) __builtin_trap();
    return {(int)first, (int)(next - first)};
}

// paging says where a cache has its rows: page number table[row >> shift] of pages, of 1 << shift rows each. width: entries for a sequence.
struct paging { u32 shift, pages, width; };

// rows are of one head of one sequence, in global memory.
struct rows {
    const element *at;
    i64 step;         // from a row to the next
    int count;
    bool paged;
    const u32 *table;
    i64 page_step;
    paging pages;

    MEMBER u32 page_of(int i) const {
        const u32 page = table[i >> pages.shift];
        if (page >= pages.pages) __builtin_trap();
        return page;
    }
    MEMBER const element *in_page(u32 page, int i) const { return at + page * page_step + (i & ((1 << pages.shift) - 1)) * step; }
};
DEVICE rows rows_of(const element *at, strides by, u32 batch, u32 head, span of) {
    return {at + batch * by.batch + head * by.head + of.first * by.row, by.row, of.count, false, 0, 0, {0, 0, 0}};
}

// A tile has rows of DIM elements without gaps, and is known by its address in shared memory: 32 bits, where a pointer takes two registers.
typedef u32 tile;
typedef __attribute__((address_space(3))) char shared_byte;
template <typename T> DEVICE __attribute__((address_space(3))) T *shared_at(u32 address) {
    return (__attribute__((address_space(3))) T *)((shared_byte *)0 + address);
}
// place is where a vector of a row is in a tile, in bytes. The number of the vector is xored with the row's, modulo 8: eight rows of a column of vectors,
// as the units read them, are in different banks.
DEVICE u32 place(u32 row, u32 vector) { return row * (2 * DIM) + ((vector ^ row % 8) << 4); }

DEVICE void copy16_to(tile to, const element *from, u32 bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
DEVICE void copy4_to(u32 to, const float *from, u32 bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}
DEVICE void load_matrices(u32 (&r)[4], tile at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}
DEVICE void load_matrices_transposed(u32 (&r)[4], tile at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
}

// fetch begins the copy of COUNT rows from the first one to a tile. Rows that do not exist become 0.
template <int COUNT> DEVICE void fetch(tile to, const rows &from, int first) {
    static_assert(THREADS % VECTORS == 0 && COUNT * VECTORS % THREADS == 0, "each thread copies the same");
    enum { AT_ONCE = THREADS / VECTORS };
    static_assert(AT_ONCE % 8 == 0, "the rows of a thread have their vectors at the same places");
    const int vector = thread_x() % VECTORS, row = thread_x() / VECTORS, left = from.count - first - row;
    to += place(row, vector);
    if (from.paged) {
        NO_UNROLL for (int i = 0; i < COUNT; i += AT_ONCE)
            copy16_to(to + i * (2 * DIM), (i < left ? from.in_page(from.page_of(first + row + i), first + row + i) : from.at) + vector * VECTOR, i < left ? 16 : 0);
        return;
    }
    const element *at = from.at + (first + row) * from.step + vector * VECTOR;
    UNROLL for (int i = 0; i < COUNT; i += AT_ONCE) {
        copy16_to(to + i * (2 * DIM), i < left ? at : from.at, i < left ? 16 : 0);
        at += AT_ONCE * from.step;
    }
}

// rows_fragment reads 16 rows and 16 columns of a tile, for the left operand of multiply.
DEVICE void rows_fragment(u32 (&a)[4], tile from, int row, int step) {
    const u32 lane = thread_x() % 32;
    load_matrices(a, (from + place(lane % 16, lane / 16) ^ step << 5) + row * (2 * DIM));
}
// across_fragments reads the right operands of two products with a transposed tile: 16 of its rows, each of which becomes a column.
DEVICE void across_fragments(u32 (&b)[2][2], tile from, int row, int step) {
    const u32 lane = thread_x() % 32;
    u32 r[4];
    load_matrices(r, (from + place(lane % 8 + lane / 16 * 8, lane / 8 % 2) ^ step << 5) + row * (2 * DIM));
    b[0][0] = r[0], b[0][1] = r[1], b[1][0] = r[2], b[1][1] = r[3];
}
// down_fragments reads the right operands of two products with a tile: 16 of its rows, and the 16 columns from 8 * column on.
DEVICE void down_fragments(u32 (&b)[2][2], tile from, int row, int column) {
    const u32 lane = thread_x() % 32;
    u32 r[4];
    load_matrices_transposed(r, (from + place(lane % 16, lane / 16) ^ column << 4) + row * (2 * DIM));
    b[0][0] = r[0], b[0][1] = r[1], b[1][0] = r[2], b[1][1] = r[3];
}
// sums_fragment makes the left operand of multiply from 16 columns of sums.
DEVICE void sums_fragment(u32 (&a)[4], const sums &left, const sums &right) {
    a[0] = packed(left[0], left[1]), a[1] = packed(left[2], left[3]);
    a[2] = packed(right[0], right[1]), a[3] = packed(right[2], right[3]);
}

template <int N> DEVICE void clear(sums (&x)[N]) {
    UNROLL for (int j = 0; j < N; j++) x[j][0] = x[j][1] = x[j][2] = x[j][3] = 0;
}

// put stores sums in the 16 rows of a tile from a row on, each half of the rows times a factor.
DEVICE void put(tile to, int row, const sums (&x)[COLUMNS_DIM], float top, float bottom) {
    const u32 lane = thread_x() % 32;
    to += row * (2 * DIM) + lane % 4 * 4;
    UNROLL for (int j = 0; j < COLUMNS_DIM; j++) {
        *shared_at<u32>(to + place(lane / 4, j)) = packed(x[j][0] * top, x[j][1] * top);
        *shared_at<u32>(to + place(lane / 4 + 8, j)) = packed(x[j][2] * bottom, x[j][3] * bottom);
    }
}
// store writes 16 rows of a tile, which this warp has put, to global memory, except for rows that do not exist.
DEVICE void store(element *to, i64 step, tile from, int row, int count) {
    const int lane = thread_x() % 32, vector = lane % VECTORS;
    UNROLL for (int i = 0; i < 16; i += 32 / VECTORS) {
        const int at = row + i + lane / VECTORS;
        if (at < count) {
            quad q;
            UNROLL for (int e = 0; e < 4; e++) q.x[e] = shared_at<u32>(from + place(at, vector))[e];
            *(quad *)(to + at * step + vector * VECTOR) = q;
        }
    }
}

}  // namespace
