// Products by the arithmetic of the element type, fp32 or fp64: each thread sums up TM x TN elements of a tile in registers. Tiles of A and B lie
// in shared memory twice: one is read while the other is written. Both lie with the summed direction outside, whatever the transposition.
//
// Macros: NAME, ELEMENT (float or double), TILE_M, TILE_N, TILE_K, THREAD_M, THREAD_N; BLOCKS: how many a multiprocessor is to run at once, which
// bounds the registers.
#include "finish.h"

namespace {

enum {
    VECTOR = 16 / sizeof(ELEMENT),
    PITCH_M = TILE_M + VECTOR, PITCH_N = TILE_N + VECTOR,  // a column of A is written by neighbours: the pad keeps them apart
    ACROSS = TILE_N / THREAD_N, DOWN = TILE_M / THREAD_M, THREADS = ACROSS * DOWN,
    STAGE_A = TILE_K * PITCH_M, STAGE_B = TILE_K * PITCH_N,
    STAGES = 2 * (STAGE_A + STAGE_B), SUMS = DOWN * VECTOR * TILE_N,  // go through the same memory
};

struct alignas(16) vector { ELEMENT x[VECTOR]; };

// A part of an operand on its way from global to shared memory: in registers. OUTER is the tile's size across the summed direction.
template <int OUTER> struct carrier {
    enum { COUNT = OUTER * TILE_K / VECTOR / THREADS, PITCH = OUTER + VECTOR };
    static_assert(COUNT >= 1 && OUTER * TILE_K % (VECTOR * THREADS) == 0, "each thread carries the same");
    vector part[COUNT];

    // k is inner where neighbours in memory are neighbours in the summed direction.
    MEMBER void place_of(int n, bool inner, int &outer, int &k) {
        int at = n * THREADS + (int)thread_x();
        outer = inner ? at / (TILE_K / VECTOR) : at % (OUTER / VECTOR) * VECTOR;
        k = inner ? at % (TILE_K / VECTOR) * VECTOR : at / (OUTER / VECTOR);
    }
    MEMBER void read(const ELEMENT *from, i64 ld, i64 first, i64 outers, i64 first_k, i64 last_k, bool inner, bool wide) {
        UNROLL for (int n = 0; n < COUNT; n++) {
            int outer, k;
            place_of(n, inner, outer, k);
            i64 o = first + outer, p = first_k + k;
            i64 left = inner ? (o < outers ? last_k - p : 0) : (p < last_k ? outers - o : 0);
            const ELEMENT *at = from + (inner ? o * ld + p : p * ld + o);
            if (wide && left >= VECTOR) {
                part[n] = *(const vector *)at;
            } else {
                UNROLL for (int i = 0; i < VECTOR; i++) part[n].x[i] = i < left ? at[i] : 0;
            }
        }
    }
    MEMBER void write(ELEMENT *to, bool inner) {
        UNROLL for (int n = 0; n < COUNT; n++) {
            int outer, k;
            place_of(n, inner, outer, k);
            if (inner) {
                UNROLL for (int i = 0; i < VECTOR; i++) to[(k + i) * PITCH + outer] = part[n].x[i];
            } else {
                *(vector *)(to + k * PITCH + outer) = part[n];
            }
        }
    }
};

DEVICE int spread(int i, int thread, int threads) { return i / VECTOR * threads * VECTOR + thread * VECTOR + i % VECTOR; }

}  // namespace

KERNEL BOUNDS2(THREADS, BLOCKS) void NAME(MATRIX_PARAMETERS, RESULT_PARAMETERS) {
    SHARED ELEMENT shared[STAGES > SUMS ? STAGES : SUMS] __attribute__((aligned(16)));
    const matrices x = MATRICES;
    const result r = RESULT;
    const place at = place_of(x, TILE_M, TILE_N);
    const bool inner_a = !(flags & TRANSPOSE_A), inner_b = flags & TRANSPOSE_B, wide_a = flags & WIDE_A, wide_b = flags & WIDE_B;
    const ELEMENT *from_a = (const ELEMENT *)a + at.batch * stride_a, *from_b = (const ELEMENT *)b + at.batch * stride_b;
    const int column = thread_x() % ACROSS, row = thread_x() / ACROSS;

    ELEMENT sum[THREAD_M][THREAD_N];
    UNROLL for (int i = 0; i < THREAD_M; i++) {
        UNROLL for (int j = 0; j < THREAD_N; j++) sum[i][j] = 0;
    }
    carrier<TILE_M> of_a;
    carrier<TILE_N> of_b;
    of_a.read(from_a, lda, at.row, m, at.first_k, at.last_k, inner_a, wide_a);
    of_b.read(from_b, ldb, at.column, n, at.first_k, at.last_k, inner_b, wide_b);
    of_a.write(shared, inner_a);
    of_b.write(shared + 2 * STAGE_A, inner_b);
    barrier();
    int now = 0;
    NO_UNROLL for (i64 p = at.first_k; p < at.last_k; p += TILE_K) {
        const bool more = p + TILE_K < at.last_k;
        if (more) {
            of_a.read(from_a, lda, at.row, m, p + TILE_K, at.last_k, inner_a, wide_a);
            of_b.read(from_b, ldb, at.column, n, p + TILE_K, at.last_k, inner_b, wide_b);
        }
        UNROLL for (int q = 0; q < TILE_K; q++) {
            ELEMENT left[THREAD_M], right[THREAD_N];
            UNROLL for (int i = 0; i < THREAD_M; i += VECTOR)
                *(vector *)(left + i) = *(const vector *)(shared + now * STAGE_A + q * PITCH_M + spread(i, row, DOWN));
            UNROLL for (int j = 0; j < THREAD_N; j += VECTOR)
                *(vector *)(right + j) = *(const vector *)(shared + 2 * STAGE_A + now * STAGE_B + q * PITCH_N + spread(j, column, ACROSS));
            UNROLL for (int i = 0; i < THREAD_M; i++) {
                UNROLL for (int j = 0; j < THREAD_N; j++) sum[i][j] = fused(left[i], right[j], sum[i][j]);
            }
        }
        if (more) {
            of_a.write(shared + (now ^ 1) * STAGE_A, inner_a);
            of_b.write(shared + 2 * STAGE_A + (now ^ 1) * STAGE_B, inner_b);
            barrier();
            now ^= 1;
        }
    }
    // Sums go through shared memory, some rows at a time, so that one short loop finishes them and neighbours store neighbours.
    UNROLL for (int rows = 0; rows < THREAD_M; rows += VECTOR) {
        barrier();
        UNROLL for (int i = 0; i < VECTOR; i++) {
            UNROLL for (int j = 0; j < THREAD_N; j += VECTOR) {
                vector v;
                UNROLL for (int e = 0; e < VECTOR; e++) v.x[e] = sum[rows + i][j + e];
                *(vector *)(shared + (row * VECTOR + i) * TILE_N + spread(j, column, ACROSS)) = v;
            }
        }
        barrier();
        NO_UNROLL for (int e = 4 * (int)thread_x(); e < DOWN * VECTOR * TILE_N; e += 4 * THREADS)
            store_four(r, shared + e, at.row + rows * DOWN + e / TILE_N, at.column + e % TILE_N, m, n, at.batch, batches, at.part);
    }
}
