// What is done with a sum before it is stored: D = f(alpha·sum + beta·C + bias). All kernels share it.
#pragma once
#include "device.h"

enum {  // bits of flags; package matmul has the same
    TRANSPOSE_A = 1, TRANSPOSE_B = 2, WIDE_A = 4, WIDE_B = 8,  // wide: begins and rows at multiples of 16 bytes
    ADD_BIAS = 16, GELU = 32, KEEP = 64, GELU_GRADIENT = 128, PARTIAL = 256, WIDE_C = 512  // of C: of 4 elements
};
enum { FLOAT32 = 0, FLOAT16 = 1, BFLOAT16 = 2, FLOAT64 = 3 };  // types of elements; package gemm has the same

// The parameters of every kernel but those of rows and of conversions. Offsets and strides are in elements.
struct result {
    void *c;
    const void *bias;
    void *aux, *work;
    i64 ldc, ldaux, stride_c, stride_aux;
    double alpha, beta;
    u32 type, flags;
};

DEVICE double load_as(const void *p, i64 at, u32 type, double) { return type == FLOAT64 ? ((const double *)p)[at] : ((const float *)p)[at]; }
DEVICE float load_as(const void *p, i64 at, u32 type, float) {
    if (type == FLOAT32) return ((const float *)p)[at];
    u16 h = ((const u16 *)p)[at];
    return type == FLOAT16 ? from_f16(h) : from_bf16(h);
}
DEVICE void store_as(void *p, i64 at, u32 type, double v) {
    if (type == FLOAT64) ((double *)p)[at] = v;
    else ((float *)p)[at] = (float)v;
}
DEVICE void store_as(void *p, i64 at, u32 type, float v) {
    if (type == FLOAT32) ((float *)p)[at] = v;
    else ((u16 *)p)[at] = type == FLOAT16 ? to_f16(v) : to_bf16(v);
}

// tanh of GELU's argument, by way of exp: 2/(1+e^2u) never overflows to a wrong answer.
DEVICE float gelu_tanh(float x) {
    float u = 0.7978845608f * (x + 0.044715f * x * x * x);
    return 1.0f - quotient(2.0f, power_of_two(u * 2.8853900818f) + 1.0f);
}
DEVICE float gelu(float x) { return 0.5f * x * (1.0f + gelu_tanh(x)); }
DEVICE float gelu_gradient(float x) {
    float t = gelu_tanh(x);
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.7978845608f * (1.0f + 0.134145f * x * x);
}
DEVICE double gelu(double x) { return gelu((float)x); }
DEVICE double gelu_gradient(double x) { return gelu_gradient((float)x); }

// finish_at is the value of an element from its sum. c, aux and bias are places in elements.
template <class T> DEVICE T finish_at(const result &r, T sum, i64 c, i64 aux, i64 bias) {
    T v = (T)r.alpha * sum;
    if (r.beta != 0) v = fused((T)r.beta, load_as(r.c, c, r.type, T()), v);
    if (r.flags & ADD_BIAS) v += load_as(r.bias, bias, r.type, T());
    if (r.flags & GELU_GRADIENT) return v * gelu_gradient(load_as(r.aux, aux, r.type, T()));
    if (r.flags & KEEP) store_as(r.aux, aux, r.type, v);
    return r.flags & GELU ? gelu(v) : v;
}

// store_one finishes and stores the element (i, j) of a matrix of a batch, or its part of the sum.
template <class T> DEVICE void store_one(const result &r, T sum, i64 i, i64 j, i64 m, i64 n, i64 batch, i64 batches, i64 part) {
    if (i >= m || j >= n) return;
    if (r.flags & PARTIAL) {
        ((T *)r.work)[((part * batches + batch) * m + i) * n + j] = sum;
        return;
    }
    i64 at = batch * r.stride_c + i * r.ldc + j;
    store_as(r.c, at, r.type, finish_at(r, sum, at, batch * r.stride_aux + i * r.ldaux + j, j));
}

// store_four is store_one for four neighbours of a row, at once where it may.
template <class T> DEVICE void store_four(const result &r, const T *sum, i64 i, i64 j, i64 m, i64 n, i64 batch, i64 batches, i64 part) {
    const bool wide = r.flags & PARTIAL ? n % 4 == 0 : r.flags & WIDE_C;
    if (!wide || i >= m || j + 3 >= n || sizeof(T) != 4) {
        NO_UNROLL for (int e = 0; e < 4; e++) store_one(r, sum[e], i, j + e, m, n, batch, batches, part);
        return;
    }
    if (r.flags & PARTIAL) {
        *(quad *)((float *)r.work + ((part * batches + batch) * m + i) * n + j) = *(const quad *)sum;
        return;
    }
    const i64 at = batch * r.stride_c + i * r.ldc + j, aux = batch * r.stride_aux + i * r.ldaux + j;
    float v[4];
    UNROLL for (int e = 0; e < 4; e++) v[e] = (float)finish_at(r, sum[e], at + e, aux + e, j + e);
    if (r.type == FLOAT32) {
        *(quad *)((float *)r.c + at) = quad{{bits_of(v[0]), bits_of(v[1]), bits_of(v[2]), bits_of(v[3])}};
        return;
    }
    u64 all = 0;
    UNROLL for (int e = 3; e >= 0; e--) all = all << 16 | (r.type == FLOAT16 ? to_f16(v[e]) : to_bf16(v[e]));
    *(u64 *)((u16 *)r.c + at) = all;
}

// factors says that results are sums times alpha, and old numbers times beta, of which four lie at a multiple of their size.
DEVICE bool factors(const result &r) { return (r.flags & (WIDE_C | ADD_BIAS | GELU | KEEP | GELU_GRADIENT)) == WIDE_C; }
// scaled says that results are sums times alpha, of which four are stored at once.
DEVICE bool scaled(const result &r) { return factors(r) && r.beta == 0; }
// store_scaled stores four of them, from a place in elements on.
DEVICE void store_scaled(void *c, u32 type, i64 at, const quad &q, float factor) {
    float v[4];
    UNROLL for (int e = 0; e < 4; e++) v[e] = float_of(q.x[e]) * factor;
    if (type == FLOAT32) {
        *(quad *)((float *)c + at) = quad{{bits_of(v[0]), bits_of(v[1]), bits_of(v[2]), bits_of(v[3])}};
        return;
    }
    u64 all = 0;
    UNROLL for (int e = 3; e >= 0; e--) all = all << 16 | (type == FLOAT16 ? to_f16(v[e]) : to_bf16(v[e]));
    *(u64 *)((u16 *)c + at) = all;
}

// store_tile finishes and stores a tile of sums, which lies in shared memory. rows_left and columns_left are those of C from its first on. What needs
// no finish but a factor has a short loop of its own: most of the time of a small product would go into asking.
template <int ROWS, int COLUMNS, int PITCH, int THREADS>
DEVICE void store_tile(const result &r, const float *sums, i64 row, i64 column, i64 m, i64 n, i64 batch, i64 batches, i64 part) {
    const bool partial = r.flags & PARTIAL;
    if (!(partial ? n % 4 == 0 : scaled(r)) || m - row < ROWS || n - column < COLUMNS) {
        NO_UNROLL for (int e = (int)thread_x(); e < ROWS * COLUMNS; e += THREADS)
            store_one(r, sums[e / COLUMNS * PITCH + e % COLUMNS], row + e / COLUMNS, column + e % COLUMNS, m, n, batch, batches, part);
        return;
    }
    enum { PER_ROW = COLUMNS / 4, AT_ONCE = THREADS / PER_ROW };
    static_assert(THREADS % PER_ROW == 0 && ROWS % AT_ONCE == 0, "each thread stores the same");
    const int first = thread_x() / PER_ROW, across = thread_x() % PER_ROW * 4;
    const i64 ld = partial ? n : r.ldc, step = AT_ONCE * ld;
    const float factor = partial ? 1.0f : (float)r.alpha;
    void *to = partial ? r.work : r.c;
    const float *from = sums + first * PITCH + across;
    i64 at = (partial ? (part * batches + batch) * m * n : batch * r.stride_c) + (row + first) * ld + column + across;
    if (partial || r.type == FLOAT32) {
        UNROLL_4 for (int i = 0; i < ROWS / AT_ONCE; i++, at += step) store_scaled(to, FLOAT32, at, *(const quad *)(from + i * AT_ONCE * PITCH), factor);
    } else {
        NO_UNROLL for (int i = 0; i < ROWS / AT_ONCE; i++, at += step) store_scaled(to, r.type, at, *(const quad *)(from + i * AT_ONCE * PITCH), factor);
    }
}

#define RESULT_PARAMETERS                                                                                              \
    void *c, const void *bias, void *aux, void *work, i64 ldc, i64 ldaux, i64 stride_c, i64 stride_aux, double alpha, double beta, \
        u32 type, u32 flags
#define RESULT result{c, bias, aux, work, ldc, ldaux, stride_c, stride_aux, alpha, beta, type, flags}
#define MATRIX_PARAMETERS                                                                                              \
    const void *a, const void *b, u32 m, u32 n, u32 k, u32 part_k, i64 lda, i64 ldb, i64 stride_a, i64 stride_b, u32 batches
#define MATRICES matrices{a, b, m, n, k, part_k, lda, ldb, stride_a, stride_b, batches}

struct matrices {
    const void *a, *b;
    u32 m, n, k, part_k;  // part_k: how much of k a block of the grid's second direction sums up
    i64 lda, ldb, stride_a, stride_b;
    u32 batches;
};

// Which tile a block has: eight rows of tiles at a time, so that what blocks read at once stays in the cache.
struct place {
    i64 row, column, batch, part, first_k, last_k;
};
DEVICE place place_of(const matrices &x, int tile_m, int tile_n) {
    u32 down = (x.m + tile_m - 1) / tile_m, across = (x.n + tile_n - 1) / tile_n;
    u32 strip = 8 * across, group = block_x() / strip, first = group * 8, in = block_x() % strip;
    u32 rows = down - first < 8 ? down - first : 8;
    place p;
    p.row = (i64)(first + in % rows) * tile_m;
    p.column = (i64)(in / rows) * tile_n;
    p.batch = block_z();
    p.part = block_y();
    p.first_k = p.part * x.part_k;
    p.last_k = smaller(p.first_k + x.part_k, x.k);
    return p;
}
