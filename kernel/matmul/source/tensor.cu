// Products by the matrix units: warps of 64 x 64 or less, whose operands come through several stages of shared memory that asynchronous copies
// fill ahead. A stage keeps the order of global memory, so that copies of 16 bytes stay whole: transposition is met where fragments are read.
//
// Macros: NAME; KIND: TF32, THREE (3xTF32: each number is a sum of two of TF32, and the smallest of the four products is left out), BF16 or F16;
// TILE_M, TILE_N, TILE_K, WARP_M, WARP_N, STAGES; BLOCKS: how many a multiprocessor is to run at once; TA and TB: 1 where A and B are stored transposed.
#include "finish.h"

#undef STEP_IS_8
#define TF32 1
#define THREE 2
#define BF16 3
#define F16 4
#if KIND == TF32 || KIND == THREE
typedef u32 element;
#define STEP_IS_8 1
#else
typedef u16 element;
#define STEP_IS_8 0
#endif

namespace {

enum {
    VECTOR = 16 / sizeof(element),
    STEP = sizeof(element) == 4 ? 8 : 16,  // of the summed direction in one instruction
    WARPS_M = TILE_M / WARP_M, WARPS_N = TILE_N / WARP_N, THREADS = 32 * WARPS_M * WARPS_N,
    DOWN = WARP_M / 16, ACROSS = WARP_N / 8,
    // Rows begin 16 bytes later in the banks than the row before, or, where words are read one by one, 32 bytes: no two lanes meet.
    ROWS_A = TA ? TILE_K : TILE_M, WIDTH_A = TA ? TILE_M : TILE_K, PITCH_A = WIDTH_A + (TA && STEP == 8 ? 8 : VECTOR),
    ROWS_B = TB ? TILE_N : TILE_K, WIDTH_B = TB ? TILE_K : TILE_N, PITCH_B = WIDTH_B + (!TB && STEP == 8 ? 8 : VECTOR),
    STAGE_A = ROWS_A * PITCH_A, STAGE_B = ROWS_B * PITCH_B,
    PITCH_C = TILE_N + 8,
};
static_assert(STAGES * (STAGE_A + STAGE_B) * sizeof(element) >= TILE_M * PITCH_C * 4, "sums go through the same memory");
static_assert(ACROSS % 2 == 0 && TILE_K % STEP == 0, "fragments of B are read two at a time");

// fetch begins the copy of a part of an operand, ROWS rows of WIDTH elements, to shared memory; what lies outside becomes 0.
template <int ROWS, int WIDTH, int PITCH>
DEVICE void fetch(element *to, const element *from, i64 ld, i64 rows_left, i64 width_left, bool wide) {
    enum { PER_ROW = WIDTH / VECTOR, COUNT = ROWS * PER_ROW / THREADS, ROWS_AT_ONCE = THREADS / PER_ROW };
    static_assert(COUNT >= 1 && THREADS % PER_ROW == 0 && ROWS % ROWS_AT_ONCE == 0, "each thread copies the same");
    const int column = thread_x() % PER_ROW * VECTOR, first = thread_x() / PER_ROW;
    const i64 in_row = width_left - column;
    const int here = in_row >= VECTOR ? VECTOR : in_row < 0 ? 0 : (int)in_row;
    const element *at = from + first * ld + column;
    element *into = to + first * PITCH + column;
    UNROLL for (int i = 0; i < COUNT; i++) {
        const int count = first + i * ROWS_AT_ONCE < rows_left ? here : 0;
        if (wide) {
            copy16(into, count ? at : from, count * sizeof(element));
        } else if (sizeof(element) == 4) {
            UNROLL for (int j = 0; j < VECTOR; j++) copy4(into + j, j < count ? at + j : from, j < count ? 4 : 0);
        } else {
            quad q;
            UNROLL for (int j = 0; j < VECTOR; j += 2) {
                u32 low = j < count ? (u32)at[j] : 0, high = j + 1 < count ? (u32)at[j + 1] : 0;
                q.x[j / 2] = high << 16 | low;
            }
            *(quad *)into = q;
        }
        at += ROWS_AT_ONCE * ld;
        into += ROWS_AT_ONCE * PITCH;
    }
}

// fragment_a reads 16 rows and STEP columns of A for one instruction.
DEVICE void fragment_a(u32 (&r)[4], const element *stage, int row, int k) {
    const int lane = thread_x() % 32;
#if STEP_IS_8
    if (TA) {
        const element *at = stage + (k + lane % 4) * PITCH_A + row + lane / 4;
        r[0] = at[0];
        r[1] = at[8];
        r[2] = at[4 * PITCH_A];
        r[3] = at[4 * PITCH_A + 8];
    } else {
        load_matrices(r, stage + (row + lane % 16) * PITCH_A + k + lane / 16 * 4);
    }
#else
    if (TA)
        load_matrices_transposed(r, stage + (k + lane % 8 + lane / 16 * 8) * PITCH_A + row + lane / 8 % 2 * 8);
    else
        load_matrices(r, stage + (row + lane % 16) * PITCH_A + k + lane / 16 * 8);
#endif
}

// fragment_b reads STEP rows and 16 columns of B for two instructions.
DEVICE void fragment_b(u32 (&r0)[2], u32 (&r1)[2], const element *stage, int column, int k) {
    const int lane = thread_x() % 32;
    u32 r[4];
#if STEP_IS_8
    if (TB) {
        load_matrices(r, stage + (column + lane % 8 + lane / 16 * 8) * PITCH_B + k + lane / 8 % 2 * 4);
    } else {
        const element *at = stage + (k + lane % 4) * PITCH_B + column + lane / 4;
        r[0] = at[0];
        r[1] = at[4 * PITCH_B];
        r[2] = at[8];
        r[3] = at[4 * PITCH_B + 8];
    }
#else
    if (TB)
        load_matrices(r, stage + (column + lane % 8 + lane / 16 * 8) * PITCH_B + k + lane / 8 % 2 * 8);
    else
        load_matrices_transposed(r, stage + (k + lane % 16) * PITCH_B + column + lane / 16 * 8);
#endif
    r0[0] = r[0];
    r0[1] = r[1];
    r1[0] = r[2];
    r1[1] = r[3];
}

// split writes a number as a sum of two: the rest of what TF32 keeps of it, and that.
template <int N> DEVICE void split(u32 (&big)[N], u32 (&small)[N]) {
    UNROLL for (int i = 0; i < N; i++) {
        const float v = float_of(big[i]);
        big[i] = to_tf32(v);
        small[i] = to_tf32(v - float_of(big[i]));
    }
}

// multiply_stage adds the products of one stage.
DEVICE void multiply_stage(float (&sum)[DOWN][ACROSS][4], const element *stage_a, const element *stage_b, int row, int column) {
#if KIND == THREE
    // The matrix units cut what they add where they align it. Sums over a few instructions are added to the others by fp32's rules.
    float part[DOWN][ACROSS][4];
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int j = 0; j < ACROSS; j++) part[i][j][0] = part[i][j][1] = part[i][j][2] = part[i][j][3] = 0;
    }
#endif
    UNROLL for (int k = 0; k < TILE_K; k += STEP) {
        u32 left[DOWN][4], right[ACROSS][2];
        UNROLL for (int i = 0; i < DOWN; i++) fragment_a(left[i], stage_a, row + 16 * i, k);
        UNROLL for (int j = 0; j < ACROSS; j += 2) fragment_b(right[j], right[j + 1], stage_b, column + 8 * j, k);
#if KIND == THREE
        u32 left_rest[DOWN][4], right_rest[ACROSS][2];
        UNROLL for (int i = 0; i < DOWN; i++) split(left[i], left_rest[i]);
        UNROLL for (int j = 0; j < ACROSS; j++) split(right[j], right_rest[j]);
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int j = 0; j < ACROSS; j++) multiply_tf32(part[i][j], left_rest[i], right[j]);
        }
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int j = 0; j < ACROSS; j++) multiply_tf32(part[i][j], left[i], right_rest[j]);
        }
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int j = 0; j < ACROSS; j++) multiply_tf32(part[i][j], left[i], right[j]);
        }
#else
#if KIND == TF32
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int e = 0; e < 4; e++) left[i][e] = to_tf32(float_of(left[i][e]));
        }
        UNROLL for (int j = 0; j < ACROSS; j++) {
            UNROLL for (int e = 0; e < 2; e++) right[j][e] = to_tf32(float_of(right[j][e]));
        }
#endif
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int j = 0; j < ACROSS; j++) {
#if KIND == TF32
                multiply_tf32(sum[i][j], left[i], right[j]);
#elif KIND == BF16
                multiply_bf16(sum[i][j], left[i], right[j]);
#else
                multiply_f16(sum[i][j], left[i], right[j]);
#endif
            }
        }
#endif
    }
#if KIND == THREE
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int j = 0; j < ACROSS; j++) {
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] += part[i][j][e];
        }
    }
#endif
}

}  // namespace

KERNEL BOUNDS2(THREADS, BLOCKS) void NAME(MATRIX_PARAMETERS, RESULT_PARAMETERS) {
    const matrices x = MATRICES;
    const result r = RESULT;
    const place at = place_of(x, TILE_M, TILE_N);
    const bool wide_a = flags & WIDE_A, wide_b = flags & WIDE_B;
    const element *from_a = (const element *)a + at.batch * stride_a + (TA ? at.row : at.row * lda);
    const element *from_b = (const element *)b + at.batch * stride_b + (TB ? at.column * ldb : at.column);
    element *stages_a = (element *)dynamic_memory(), *stages_b = stages_a + STAGES * STAGE_A;
    const int warp = thread_x() / 32, lane = thread_x() % 32;
    const int row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N;

    float sum[DOWN][ACROSS][4];
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int j = 0; j < ACROSS; j++) sum[i][j][0] = sum[i][j][1] = sum[i][j][2] = sum[i][j][3] = 0;
    }
    const i64 rows_a = m - at.row, columns_b = n - at.column;
    const int tiles = (int)((at.last_k - at.first_k + TILE_K - 1) / TILE_K);
#define FETCH(tile)                                                                                                    \
    do {                                                                                                               \
        const i64 p = at.first_k + (i64)(tile) * TILE_K, left = at.last_k - p;                                           \
        const int stage = (tile) % STAGES;                                                                               \
        fetch<ROWS_A, WIDTH_A, PITCH_A>(stages_a + stage * STAGE_A, from_a + (TA ? p * lda : p), lda, TA ? left : rows_a, \
                                        TA ? rows_a : left, wide_a);                                                     \
        fetch<ROWS_B, WIDTH_B, PITCH_B>(stages_b + stage * STAGE_B, from_b + (TB ? p : p * ldb), ldb,                     \
                                        TB ? columns_b : left, TB ? left : columns_b, wide_b);                           \
    } while (0)
    // The first rounds only fetch.
    NO_UNROLL for (int tile = 1 - STAGES; tile < tiles; tile++) {
        if (tile >= 0) {
            copies_wait<STAGES - 2>();
            barrier();  // the tile is there for all, and nobody reads the stage any more that is filled next
        }
        if (tile + STAGES - 1 < tiles) FETCH(tile + STAGES - 1);
        copies_commit();  // an empty group keeps the count
        if (tile >= 0) multiply_stage(sum, stages_a + tile % STAGES * STAGE_A, stages_b + tile % STAGES * STAGE_B, row, column);
    }
#undef FETCH
    // Sums go through shared memory, so that one short loop finishes them and neighbours store neighbours.
    copies_wait<0>();
    barrier();
    float *sums = (float *)dynamic_memory();
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int j = 0; j < ACROSS; j++) {
            float *to = sums + (row + 16 * i + lane / 4) * PITCH_C + column + 8 * j + lane % 4 * 2;
            to[0] = sum[i][j][0];
            to[1] = sum[i][j][1];
            to[8 * PITCH_C] = sum[i][j][2];
            to[8 * PITCH_C + 1] = sum[i][j][3];
        }
    }
    barrier();
    NO_UNROLL for (int e = 4 * (int)thread_x(); e < TILE_M * TILE_N; e += 4 * THREADS)
        store_four(r, sums + e / TILE_N * PITCH_C + e % TILE_N, at.row + e / TILE_N, at.column + e % TILE_N, m, n, at.batch, batches, at.part);
}
