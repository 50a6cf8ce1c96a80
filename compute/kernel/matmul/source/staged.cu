// Products by the arithmetic of fp32, for GPUs with asynchronous copies: each thread sums up THREAD_M x THREAD_N elements of a tile in registers. A warp
// has eight threads down and four across. Operands come through stages of shared memory that the copies fill ahead, in the order of global memory:
// where neighbours in memory are neighbours in the summed direction, threads read some of these at once, and elsewhere some rows or columns.
//
// Macros: NAME, TILE_M, TILE_N, TILE_K, THREAD_M, THREAD_N, STAGES; BLOCKS: how many a multiprocessor is to run at once, which bounds the registers; TA
// and TB: 1 where A and B are stored transposed.
#include "finish.h"

namespace {

enum {
    VECTOR = 4, ALONG = 2,  // elements at once across, and along the summed direction
    WARP_M = 8 * THREAD_M, WARP_N = 4 * THREAD_N, THREADS = TILE_M / THREAD_M * (TILE_N / THREAD_N),
    ROWS_A = TA ? TILE_K : TILE_M, WIDTH_A = TA ? TILE_M : TILE_K, PITCH_A = WIDTH_A + VECTOR,
    ROWS_B = TB ? TILE_N : TILE_K, WIDTH_B = TB ? TILE_K : TILE_N, PITCH_B = WIDTH_B + VECTOR,
    STAGE_A = ROWS_A * PITCH_A, STAGE = STAGE_A + ROWS_B * PITCH_B,
    PART_M = VECTOR, PITCH_C = TILE_N + VECTOR,  // rows of each thread that are finished at once: with those of the others they lie side by side
};
static_assert(STAGES * STAGE >= 8 * PART_M * PITCH_C, "sums go through the same memory");
static_assert(THREAD_M % PART_M == 0 && TILE_K % ALONG == 0 && TILE_M == WARP_M && TILE_N % WARP_N == 0, "whole warps, side by side");

struct alignas(16) vector { float x[VECTOR]; };
struct alignas(4 * ALONG) along { float x[ALONG]; };

// operand copies its part of stages to shared memory: ROWS rows of WIDTH elements, of which each thread copies the same count of vectors.
template <int ROWS, int WIDTH, int PITCH, bool ACROSS_K> struct operand {
    enum { PER_ROW = WIDTH / VECTOR, COUNT = ROWS * PER_ROW / THREADS, ROWS_AT_ONCE = THREADS / PER_ROW };
    static_assert(COUNT >= 1 && THREADS % PER_ROW == 0 && ROWS % ROWS_AT_ONCE == 0, "each thread copies the same");
    const float *at;  // the thread's first element of the next stage
    i64 step;           // from a row of the thread to its next
    i64 forward;        // from a stage to the next

    MEMBER operand(const float *from, i64 ld) {
        at = from + (i64)(thread_x() / PER_ROW) * ld + thread_x() % PER_ROW * VECTOR;
        step = ROWS_AT_ONCE * ld;
        forward = ACROSS_K ? TILE_K * ld : TILE_K;
    }
    MEMBER float *place(float *stage) const { return stage + thread_x() / PER_ROW * PITCH + thread_x() % PER_ROW * VECTOR; }

    // all begins the copy of a part that lies within the operand, if it is to.
    MEMBER void all(float *stage, bool does) {
        const float *row = at;
        float *into = place(stage);
        UNROLL for (int i = 0; i < COUNT; i++) {
            copy16_if(does, into + i * ROWS_AT_ONCE * PITCH, row);
            row += step;
        }
        at += forward;
    }
    // some begins the copy of what lies within the operand, and makes the others 0.
    MEMBER void some(float *stage, i64 rows_left, i64 width_left, bool wide) {
        const float *row = at;
        float *into = place(stage);
        const int first = thread_x() / PER_ROW;
        const i64 in_row = width_left - (i64)(thread_x() % PER_ROW * VECTOR);
        const int here = in_row >= VECTOR ? VECTOR : in_row < 0 ? 0 : (int)in_row;
        NO_UNROLL for (int i = 0; i < COUNT; i++) {
            const int words = first + i * ROWS_AT_ONCE < rows_left ? here : 0;
            if (wide) {
                copy16_of(into, row, words * 4);
            } else {
                UNROLL for (int j = 0; j < 4; j++) copy4_of(into + j, row + j, j < words ? 4 : 0);
            }
            row += step;
            into += ROWS_AT_ONCE * PITCH;
        }
    }
};

// outer_of is the row or column of a tile that a thread has as number i, of so many threads side by side in a warp.
DEVICE int outer_of(int thread, int i, int threads, bool inner) {
    return inner ? i * threads + thread : i / VECTOR * threads * VECTOR + thread * VECTOR + i % VECTOR;
}

// fragment is what a thread multiplies at once: COUNT rows of A or columns of B, and ALONG of the summed direction.
template <int COUNT, int PITCH, int SIDE, bool INNER> struct fragment {
    float x[ALONG][COUNT];

    MEMBER void read(const float *stage, int thread, int k) {
        if (INNER) {
            UNROLL for (int i = 0; i < COUNT; i++) {
                const along v = *(const along *)(stage + outer_of(thread, i, SIDE, true) * PITCH + k);
                UNROLL for (int q = 0; q < ALONG; q++) x[q][i] = v.x[q];
            }
        } else {
            UNROLL for (int q = 0; q < ALONG; q++) {
                UNROLL for (int i = 0; i < COUNT; i += VECTOR) *(vector *)(x[q] + i) = *(const vector *)(stage + (k + q) * PITCH + outer_of(thread, i, SIDE, false));
            }
        }
    }
};

}  // namespace

KERNEL BOUNDS2(THREADS, BLOCKS) void NAME(MATRIX_PARAMETERS, RESULT_PARAMETERS) {
    const matrices x = MATRICES;
    const place at = place_of(x, TILE_M, TILE_N);
    const bool wide_a = flags & WIDE_A, wide_b = flags & WIDE_B;
    float *stages = (float *)dynamic_memory();
    const int column = thread_x() / 32 * WARP_N;
    const int down = thread_x() % 32 / 4, across = thread_x() % 4;
    const int first_b = STAGE_A + (TB ? column * PITCH_B : column);

    operand<ROWS_A, WIDTH_A, PITCH_A, TA> of_a((const float *)a + at.batch * stride_a + (TA ? at.row + at.first_k * lda : at.row * lda + at.first_k), lda);
    operand<ROWS_B, WIDTH_B, PITCH_B, !TB> of_b((const float *)b + at.batch * stride_b + (TB ? at.column * ldb + at.first_k : at.column + at.first_k * ldb), ldb);
    const i64 rows_a = m - at.row, columns_b = n - at.column;
    const int part = (int)(at.last_k - at.first_k), tiles = (part + TILE_K - 1) / TILE_K;
    const int whole = wide_a && wide_b && rows_a >= TILE_M && columns_b >= TILE_N ? part / TILE_K : 0;  // tiles without edges
#define FETCH(tile, stage)                                                                                             \
    do {                                                                                                               \
        if ((tile) >= whole && (tile) < tiles) {                                                                         \
            const i64 left = part - (tile) * TILE_K;                                                                     \
            of_a.some(stage, TA ? left : rows_a, TA ? rows_a : left, wide_a);                                            \
            of_b.some((stage) + STAGE_A, TB ? columns_b : left, TB ? left : columns_b, wide_b);                          \
        }                                                                                                              \
        of_a.all(stage, (tile) < whole);                                                                                 \
        of_b.all((stage) + STAGE_A, (tile) < whole);                                                                     \
        copies_commit(); /* an empty group keeps the count */                                                          \
    } while (0)
    float sum[THREAD_M][THREAD_N];
    UNROLL for (int i = 0; i < THREAD_M; i++) {
        UNROLL for (int j = 0; j < THREAD_N; j++) sum[i][j] = 0;
    }
    NO_UNROLL for (int tile = 0; tile < STAGES - 1; tile++) FETCH(tile, stages + tile * STAGE);
    int now = 0;
    NO_UNROLL for (int tile = 0; tile < tiles; tile++) {
        const int before = now == 0 ? STAGES - 1 : now - 1;
        copies_wait<STAGES - 2>();
        barrier();  // the tile is there for all, and nobody reads the stage any more that is filled next
        FETCH(tile + STAGES - 1, stages + before * STAGE);
        const float *stage = stages + now * STAGE;
        UNROLL for (int k = 0; k < TILE_K; k += ALONG) {
            fragment<THREAD_M, PITCH_A, 8, !TA> left;
            fragment<THREAD_N, PITCH_B, 4, TB> right;
            left.read(stage, down, k);
            right.read(stage + first_b, across, k);
            UNROLL for (int q = 0; q < ALONG; q++) {
                UNROLL for (int i = 0; i < THREAD_M; i++) {
                    UNROLL for (int j = 0; j < THREAD_N; j++) sum[i][j] = fused(left.x[q][i], right.x[q][j], sum[i][j]);
                }
            }
        }
        now = now == STAGES - 1 ? 0 : now + 1;
    }
#undef FETCH
    // Sums go through shared memory, some rows of each thread at a time, so that one short loop finishes them and neighbours store neighbours.
    const result r = RESULT;
    copies_wait<0>();
    UNROLL for (int i = 0; i < THREAD_M; i += PART_M) {
        barrier();
        UNROLL for (int of = 0; of < PART_M; of++) {
            float *to = stages + outer_of(down, of, 8, !TA) * PITCH_C + column;
            UNROLL for (int j = 0; j < THREAD_N; j += TB ? 1 : VECTOR) {
                UNROLL for (int e = 0; e < (TB ? 1 : VECTOR); e++) to[outer_of(across, j + e, 4, TB)] = sum[i + of][j + e];
            }
        }
        barrier();
        store_tile<8 * PART_M, TILE_N, PITCH_C, THREADS>(r, stages, at.row + 8 * i, at.column, m, n, at.batch, batches, at.part);
    }
}
