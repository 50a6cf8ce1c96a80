// Products with one row or one column, sums of parts, and operands in another type.
//
// Macros: SUFFIX; ELEMENT: the type of operands in memory as kernels load it (float, double or u16); TYPE: its number; SUM: float or double.
#include "finish.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

namespace {

enum { THREADS = 256, WARPS = THREADS / 32, VECTOR = 16 / sizeof(ELEMENT) };

DEVICE SUM number(ELEMENT v) {
#if TYPE == 1
    return from_f16(v);
#elif TYPE == 2
    return from_bf16(v);
#else
    return v;
#endif
}
struct alignas(16) vector { ELEMENT x[VECTOR]; };

// store_row stores output number i of a product with one row or column: the element (i, 0) or (0, i) of C.
DEVICE void store_row(const result &r, SUM sum, i64 i, i64 count, i64 batch, i64 batches, i64 part, i64 step_c, i64 step_aux, i64 step_bias) {
    if (i >= count) return;
    if (r.flags & PARTIAL) {
        ((SUM *)r.work)[(part * batches + batch) * count + i] = sum;
        return;
    }
    i64 at = batch * r.stride_c + i * step_c;
    store_as(r.c, at, r.type, finish_at(r, sum, at, batch * r.stride_aux + i * step_aux, i * step_bias));
}

}  // namespace

#define ROW_PARAMETERS                                                                                                 \
    const ELEMENT *matrix, const ELEMENT *vector_x, u32 count, u32 k, u32 part_k, u32 batches, i64 ld, i64 step_x, i64 stride_matrix, \
        i64 stride_x, i64 step_c, i64 step_aux, i64 step_bias

// A warp for each output, whose row of the matrix lies in one piece.
KERNEL BOUNDS(256) void JOIN(dot_, SUFFIX)(ROW_PARAMETERS, RESULT_PARAMETERS) {
    const result r = RESULT;
    const i64 batch = block_z(), i = (i64)block_x() * WARPS + thread_x() / 32, lane = thread_x() % 32;
    const i64 first = (i64)block_y() * part_k, last = smaller(first + part_k, k);
    const ELEMENT *row = matrix + batch * stride_matrix + smaller(i, (i64)count - 1) * ld, *x = vector_x + batch * stride_x;
    SUM sum[4] = {0, 0, 0, 0};
    i64 p = first;
    if (flags & WIDE_A) {
        for (; p + 32 * VECTOR <= last; p += 32 * VECTOR) {
            const i64 at = p + lane * VECTOR;
            vector v = *(const vector *)(row + at);
            UNROLL for (int e = 0; e < VECTOR; e++) sum[e % 4] = fused(number(v.x[e]), number(x[(at + e) * step_x]), sum[e % 4]);
        }
    }
    for (p += lane; p < last; p += 32) sum[0] = fused(number(row[p]), number(x[p * step_x]), sum[0]);
    const SUM all = lane_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
    if (lane == 0) store_row(r, all, i, count, batch, batches, block_y(), step_c, step_aux, step_bias);
}

// Thirty-two outputs for each block, which are neighbours in memory: a warp reads the elements of one summand.
KERNEL BOUNDS(256) void JOIN(columns_, SUFFIX)(ROW_PARAMETERS, RESULT_PARAMETERS) {
    SHARED SUM parts[WARPS][32];
    const result r = RESULT;
    const i64 batch = block_z(), lane = thread_x() % 32, warp = thread_x() / 32, i = (i64)block_x() * 32 + lane;
    const i64 first = (i64)block_y() * part_k, last = smaller(first + part_k, k);
    const ELEMENT *at = matrix + batch * stride_matrix + smaller(i, (i64)count - 1), *x = vector_x + batch * stride_x;
    SUM sum[4] = {0, 0, 0, 0};
    i64 p = first + warp;
    for (; p + 3 * WARPS < last; p += 4 * WARPS) {
        UNROLL for (int e = 0; e < 4; e++)
            sum[e] = fused(number(at[(p + e * WARPS) * ld]), number(x[(p + e * WARPS) * step_x]), sum[e]);
    }
    for (; p < last; p += WARPS) sum[0] = fused(number(at[p * ld]), number(x[p * step_x]), sum[0]);
    parts[warp][lane] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    barrier();
    if (warp == 0) {
        SUM all = 0;
        UNROLL for (int w = 0; w < WARPS; w++) all += parts[w][lane];
        store_row(r, all, i, count, batch, batches, block_y(), step_c, step_aux, step_bias);
    }
}

#if TYPE == 0 || TYPE == 3
// The parts of sums, which lie one behind the other, in their order: the result does not depend on which block was first. A thread adds up four
// neighbours at once where rows have whole fours of them.
KERNEL BOUNDS(256) void JOIN(sum_, SUFFIX)(u32 m, u32 n, u32 parts, u32 batches, RESULT_PARAMETERS) {
    result r = RESULT;
    r.flags &= ~(u32)PARTIAL;
    const i64 batch = block_z(), size = (i64)m * n, step = size * batches;
    const int width = TYPE == 0 && n % 4 == 0 ? 4 : 1;
    for (i64 at = width * ((i64)block_x() * THREADS + thread_x()); at < size; at += width * (i64)grid_x() * THREADS) {
        const i64 row = size >> 32 ? at / n : (u32)at / n, column = at - row * n;
        const SUM *from = (const SUM *)work + batch * size + at;
        if (width == 1) {
            SUM sum = 0;
            for (u32 part = 0; part < parts; part++) sum += from[part * step];
            store_one(r, sum, row, column, m, n, batch, batches, 0);
            continue;
        }
        float sum[4] = {0, 0, 0, 0};
        UNROLL_4 for (u32 part = 0; part < parts; part++) {
            const quad q = *(const quad *)(from + part * step);
            UNROLL for (int e = 0; e < 4; e++) sum[e] += float_of(q.x[e]);
        }
        const i64 place = batch * r.stride_c + row * r.ldc + column;
        if (scaled(r)) {
            store_scaled(r.c, r.type, place, quad{{bits_of(sum[0]), bits_of(sum[1]), bits_of(sum[2]), bits_of(sum[3])}}, (float)r.alpha);
        } else if (factors(r) && r.type == FLOAT32) {
            quad q = *(const quad *)((const float *)r.c + place);
            UNROLL for (int e = 0; e < 4; e++) q.x[e] = bits_of(fused((float)r.beta, float_of(q.x[e]), (float)r.alpha * sum[e]));
            *(quad *)((float *)r.c + place) = q;
        } else {
            UNROLL for (int e = 0; e < 4; e++) store_one(r, sum[e], row, column + e, m, n, batch, batches, 0);
        }
    }
}
#endif

#if TYPE == 0
// A matrix of floats in 16 bits, rows at multiples of 16 bytes.
KERNEL BOUNDS(256) void narrow(const float *from, u16 *to, u32 rows, u32 columns, i64 ld, i64 ld_to, i64 stride, i64 stride_to, u32 type) {
    const i64 size = (i64)rows * columns;
    from += block_z() * stride;
    to += block_z() * stride_to;
    for (i64 at = (i64)block_x() * THREADS + thread_x(); at < size; at += (i64)grid_x() * THREADS) {
        const float v = from[at / columns * ld + at % columns];
        to[at / columns * ld_to + at % columns] = type == FLOAT16 ? to_f16(v) : to_bf16(v);
    }
}

// The transpose of a matrix, by tiles: a warp reads and writes neighbours.
KERNEL BOUNDS(256) void turn(const float *from, float *to, u32 rows, u32 columns, i64 ld, i64 ld_to, i64 stride, i64 stride_to) {
    enum { SIDE = 64, HALVES = SIDE / 32 };
    SHARED float tile[SIDE][SIDE + 1];
    const u32 across = (columns + SIDE - 1) / SIDE, all = (rows + SIDE - 1) / SIDE * across;
    const u32 lane = thread_x() % 32, warp = thread_x() / 32;
    from += block_z() * stride;
    to += block_z() * stride_to;
    NO_UNROLL for (u32 number = block_x(); number < all; number += grid_x()) {
        const u32 row = number / across * SIDE, column = number % across * SIDE;
        UNROLL for (int i = 0; i < SIDE; i += WARPS) {
            UNROLL for (int half = 0; half < HALVES; half++) {
                const u32 r = row + warp + i, c = column + lane + 32 * half;
                if (r < rows && c < columns) tile[warp + i][lane + 32 * half] = from[r * ld + c];
            }
        }
        barrier();
        UNROLL for (int i = 0; i < SIDE; i += WARPS) {
            UNROLL for (int half = 0; half < HALVES; half++) {
                const u32 c = column + warp + i, r = row + lane + 32 * half;
                if (r < rows && c < columns) to[c * ld_to + r] = tile[lane + 32 * half][warp + i];
            }
        }
        barrier();
    }
}
#endif
