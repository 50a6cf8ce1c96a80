// Products by the matrix units: warps of 64 x 64 or less, whose operands come through several stages of shared memory that asynchronous copies
// fill ahead. A stage keeps the order of global memory, so that copies of 16 bytes stay whole: transposition is met where fragments are read.
// The fragments of the next instructions are read while those of this one are multiplied, across the borders of stages too.
//
// Macros: NAME; KIND: TF32, THREE (3xTF32: each number is a sum of two of TF32, and the smallest of the four products is left out), BF16 or F16;
// TILE_M, TILE_N, TILE_K, WARP_M, WARP_N, STAGES; SLICES: into how many groups of warps the summed direction of a stage is divided; BLOCKS: how
// many a multiprocessor is to run at once; AHEAD: 1 where fragments are prepared one instruction ahead; TA and TB: 1 where A and B are stored
// transposed.
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
    STEP = STEP_IS_8 ? 8 : 16,  // of the summed direction in one instruction
    WARPS_M = TILE_M / WARP_M, WARPS_N = TILE_N / WARP_N, THREADS = 32 * WARPS_M * WARPS_N * SLICES,
    DOWN = WARP_M / 16, ACROSS = WARP_N / 8, SLICE_K = TILE_K / SLICES, STEPS = SLICE_K / STEP,
    // Words that lie across the summed direction are read four at a time, and are of four instructions then: neighbours in memory are not
    // neighbours in an instruction.
    SPREAD_A = TA && STEP_IS_8, SPREAD_B = !TB && STEP_IS_8,
    // Rows begin 16 bytes later in the banks than the row before, or, where they are spread, 32 bytes: no two lanes meet.
    ROWS_A = TA ? TILE_K : TILE_M, WIDTH_A = TA ? TILE_M : TILE_K, PITCH_A = WIDTH_A + (SPREAD_A ? 8 : VECTOR),
    ROWS_B = TB ? TILE_N : TILE_K, WIDTH_B = TB ? TILE_K : TILE_N, PITCH_B = WIDTH_B + (SPREAD_B ? 8 : VECTOR),
    STAGE_A = ROWS_A * PITCH_A, STAGE = STAGE_A + ROWS_B * PITCH_B,
    PITCH_C = TILE_N + (SPREAD_B ? 4 : 8),
};
static_assert(STAGES * STAGE * sizeof(element) >= TILE_M * PITCH_C * 4, "sums go through the same memory");
static_assert(ACROSS % 2 == 0 && SLICE_K % (2 * STEP) == 0, "fragments of B are read two at a time, and two sets of fragments take turns");
static_assert((!SPREAD_A || WARP_M % 32 == 0) && (!SPREAD_B || WARP_N % 32 == 0), "four words for each of eight lanes");

// operand copies its part of stages to shared memory: ROWS rows of WIDTH elements, of which each thread copies the same count of vectors.
template <int ROWS, int WIDTH, int PITCH, bool ACROSS_K> struct operand {
    enum { PER_ROW = WIDTH / VECTOR, COUNT = ROWS * PER_ROW / THREADS, ROWS_AT_ONCE = THREADS / PER_ROW };
    static_assert(COUNT >= 1 && THREADS % PER_ROW == 0 && ROWS % ROWS_AT_ONCE == 0, "each thread copies the same");
    const element *at;  // the thread's first element of the next stage
    i64 step;           // from a row of the thread to its next
    i64 forward;        // from a stage to the next

    MEMBER operand(const element *from, i64 ld) {
        at = from + (i64)(thread_x() / PER_ROW) * ld + thread_x() % PER_ROW * VECTOR;
        step = ROWS_AT_ONCE * ld;
        forward = ACROSS_K ? TILE_K * ld : TILE_K;
    }
    MEMBER element *place(element *stage) const { return stage + thread_x() / PER_ROW * PITCH + thread_x() % PER_ROW * VECTOR; }

    // all begins the copy of a part that lies within the operand, if it is to.
    MEMBER void all(element *stage, bool does) {
        const element *row = at;
        element *into = place(stage);
        UNROLL for (int i = 0; i < COUNT; i++) {
            copy16_if(does, into + i * ROWS_AT_ONCE * PITCH, row);
            row += step;
        }
    }
    MEMBER void next() { at += forward; }
    // some begins the copy of what lies within the operand, and makes the others 0.
    MEMBER void some(element *stage, i64 rows_left, i64 width_left, bool wide) {
        const element *row = at;
        element *into = place(stage);
        const int first = thread_x() / PER_ROW;
        const i64 in_row = width_left - (i64)(thread_x() % PER_ROW * VECTOR);
        const int here = in_row >= VECTOR ? VECTOR : in_row < 0 ? 0 : (int)in_row;
        NO_UNROLL for (int i = 0; i < COUNT; i++) {
            const int count = first + i * ROWS_AT_ONCE < rows_left ? here : 0;
            if (wide) {
                copy16_of(into, row, count * sizeof(element));
            } else if (sizeof(element) == 4) {
                UNROLL for (int j = 0; j < VECTOR; j++) copy4_of(into + j, row + j, j < count ? 4 : 0);
            } else {
                quad q;
                UNROLL for (int j = 0; j < VECTOR; j += 2) {
                    u32 low = j < count ? (u32)row[j] : 0, high = j + 1 < count ? (u32)row[j + 1] : 0;
                    q.x[j / 2] = high << 16 | low;
                }
                *(quad *)into = q;
            }
            row += step;
            into += ROWS_AT_ONCE * PITCH;
        }
    }
};

// split_all leaves the big ones of the two that each number is the sum of, and writes the rests.
template <int N> DEVICE void split_all(u32 (&big)[N], u32 (&rest)[N]) {
    UNROLL for (int i = 0; i < N; i++) split(float_of(big[i]), big[i], rest[i]);
}

// fragments are what a warp multiplies at once: WARP_M rows and STEP columns of A, STEP rows and WARP_N columns of B.
struct fragments {
    u32 a[DOWN][4], b[ACROSS][2];
#if KIND == THREE
    u32 rest_a[DOWN][4], rest_b[ACROSS][2];
#endif

    MEMBER void read(const element *stage, int row, int column, int k) {
        const int lane = thread_x() % 32;
        const element *stage_b = stage + STAGE_A;
#if STEP_IS_8
        if (TA) {
            UNROLL for (int i = 0; i < DOWN; i += 2) {
                const element *at = stage + (k + lane % 4) * PITCH_A + row + 16 * i + lane / 4 * 4;
                const quad low = *(const quad *)at, high = *(const quad *)(at + 4 * PITCH_A);
                UNROLL for (int e = 0; e < 4; e++) {
                    a[i + e / 2][e % 2] = low.x[e];
                    a[i + e / 2][e % 2 + 2] = high.x[e];
                }
            }
        } else {
            UNROLL for (int i = 0; i < DOWN; i++) load_matrices(a[i], stage + (row + 16 * i + lane % 16) * PITCH_A + k + lane / 16 * 4);
        }
        if (TB) {
            UNROLL for (int j = 0; j < ACROSS; j += 2)
                two(j, stage_b + (column + 8 * j + lane % 8 + lane / 16 * 8) * PITCH_B + k + lane / 8 % 2 * 4, false);
        } else {
            UNROLL for (int j = 0; j < ACROSS; j += 4) {
                const element *at = stage_b + (k + lane % 4) * PITCH_B + column + 8 * j + lane / 4 * 4;
                const quad low = *(const quad *)at, high = *(const quad *)(at + 4 * PITCH_B);
                UNROLL for (int e = 0; e < 4; e++) {
                    b[j + e][0] = low.x[e];
                    b[j + e][1] = high.x[e];
                }
            }
        }
#else
        UNROLL for (int i = 0; i < DOWN; i++) {
            if (TA)
                load_matrices_transposed(a[i], stage + (k + lane % 8 + lane / 16 * 8) * PITCH_A + row + 16 * i + lane / 8 % 2 * 8);
            else
                load_matrices(a[i], stage + (row + 16 * i + lane % 16) * PITCH_A + k + lane / 16 * 8);
        }
        UNROLL for (int j = 0; j < ACROSS; j += 2) {
            if (TB)
                two(j, stage_b + (column + 8 * j + lane % 8 + lane / 16 * 8) * PITCH_B + k + lane / 8 % 2 * 8, false);
            else
                two(j, stage_b + (k + lane % 16) * PITCH_B + column + 8 * j + lane / 16 * 8, true);
        }
#endif
    }
    // two reads what two instructions have of B.
    MEMBER void two(int j, const element *row, bool transposed) {
        u32 r[4];
        if (transposed)
            load_matrices_transposed(r, row);
        else
            load_matrices(r, row);
        b[j][0] = r[0];
        b[j][1] = r[1];
        b[j + 1][0] = r[2];
        b[j + 1][1] = r[3];
    }
    // prepare makes of numbers as they lie in memory what the units take.
    MEMBER void prepare() {
#if KIND == THREE
        UNROLL for (int i = 0; i < DOWN; i++) split_all(a[i], rest_a[i]);
        UNROLL for (int j = 0; j < ACROSS; j++) split_all(b[j], rest_b[j]);
#elif KIND == TF32
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int e = 0; e < 4; e++) a[i][e] = bits_of(rounded(float_of(a[i][e])));
        }
        UNROLL for (int j = 0; j < ACROSS; j++) {
            UNROLL for (int e = 0; e < 2; e++) b[j][e] = bits_of(rounded(float_of(b[j][e])));
        }
#endif
    }
};

typedef float sums[DOWN][ACROSS][4];

DEVICE void clear(sums &x) {
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int j = 0; j < ACROSS; j++) x[i][j][0] = x[i][j][1] = x[i][j][2] = x[i][j][3] = 0;
    }
}

// add adds the products of the rows from first to last of fragments.
DEVICE void add(sums &sum, const u32 (&a)[DOWN][4], const u32 (&b)[ACROSS][2], int first, int last) {
    UNROLL for (int i = first; i < last; i++) {
        UNROLL for (int n = 0; n < ACROSS; n++) {
            const int j = i % 2 ? ACROSS - 1 - n : n;  // what was read last is used again
#if KIND == BF16
            multiply_bf16(sum[i][j], a[i], b[j]);
#elif KIND == F16
            multiply_f16(sum[i][j], a[i], b[j]);
#else
            multiply_tf32(sum[i][j], a[i], b[j]);
#endif
        }
    }
}

// put stores the sums of a warp in shared memory, or adds them to those of another.
DEVICE void put(float *to, const sums &sum, int row, int column, bool add) {
    const int lane = thread_x() % 32;
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int high = 0; high < 2; high++) {
            const int down = SPREAD_A ? 16 * (i / 2 * 2) + lane / 4 * 4 + i % 2 * 2 + high : 16 * i + 8 * high + lane / 4;
            float *at = to + (row + down) * PITCH_C + column;
            if (SPREAD_B) {
                UNROLL for (int j = 0; j < ACROSS; j += 4) {
                    UNROLL for (int e = 0; e < 2; e++) {
                        quad *into = (quad *)(at + 8 * j + (lane % 4 * 2 + e) * 4), q = {{0, 0, 0, 0}};
                        if (add) q = *into;
                        UNROLL for (int x = 0; x < 4; x++) {
                            const float v = sum[i][j + x][2 * high + e];
                            q.x[x] = bits_of(add ? float_of(q.x[x]) + v : v);
                        }
                        *into = q;
                    }
                }
            } else {
                UNROLL for (int j = 0; j < ACROSS; j++) {
                    UNROLL for (int e = 0; e < 2; e++) {
                        float *into = at + 8 * j + lane % 4 * 2 + e;
                        const float v = sum[i][j][2 * high + e];
                        *into = add ? *into + v : v;
                    }
                }
            }
        }
    }
}

}  // namespace

KERNEL BOUNDS2(THREADS, BLOCKS) void NAME(MATRIX_PARAMETERS, RESULT_PARAMETERS) {
    const matrices x = MATRICES;
    const place at = place_of(x, TILE_M, TILE_N);
    const bool wide_a = flags & WIDE_A, wide_b = flags & WIDE_B;
    element *stages = (element *)dynamic_memory();
    const int warp = thread_x() / 32 % (WARPS_M * WARPS_N), slice = thread_x() / 32 / (WARPS_M * WARPS_N);
    const int row = warp / WARPS_N * WARP_M, column = warp % WARPS_N * WARP_N, first_k = slice * SLICE_K;

    operand<ROWS_A, WIDTH_A, PITCH_A, TA> of_a((const element *)a + at.batch * stride_a + (TA ? at.row + at.first_k * lda : at.row * lda + at.first_k), lda);
    operand<ROWS_B, WIDTH_B, PITCH_B, !TB> of_b((const element *)b + at.batch * stride_b + (TB ? at.column * ldb + at.first_k : at.column + at.first_k * ldb), ldb);
    const i64 rows_a = m - at.row, columns_b = n - at.column;
    const int part = (int)(at.last_k - at.first_k), tiles = (part + TILE_K - 1) / TILE_K;
    const int whole = wide_a && wide_b && rows_a >= TILE_M && columns_b >= TILE_N ? part / TILE_K : 0;  // tiles without edges
// A tile without edges is fetched without a branch, among multiplications.
// Fragments are read one tile too far: of a few tiles, zeros stand behind the last one.
#define FETCH_EDGES(tile, stage)                                                                                       \
    if ((tile) >= whole && (tile) < tiles + ((tile) < STAGES)) {                                                         \
        const i64 left = part - (tile) * TILE_K;                                                                         \
        of_a.some(stage, TA ? left : rows_a, TA ? rows_a : left, wide_a);                                                \
        of_b.some((stage) + STAGE_A, TB ? columns_b : left, TB ? left : columns_b, wide_b);                              \
    }
#define FETCH_WHOLE(tile, stage)                                                                                       \
    of_a.all(stage, (tile) < whole);                                                                                     \
    of_b.all((stage) + STAGE_A, (tile) < whole);                                                                         \
    of_a.next();                                                                                                         \
    of_b.next();                                                                                                         \
    copies_commit();  // an empty group keeps the count
    sums sum;
    clear(sum);
    fragments f[2];
    NO_UNROLL for (int tile = 0; tile < STAGES - 1; tile++) {
        FETCH_EDGES(tile, stages + tile * STAGE)
        FETCH_WHOLE(tile, stages + tile * STAGE)
    }
    copies_wait<STAGES - 2>();
    barrier();
    f[0].read(stages, row, column, first_k);
    if (AHEAD) f[0].prepare();
    int now = 0;
    NO_UNROLL for (int tile = 0; tile < tiles; tile++) {
        const int before = now == 0 ? STAGES - 1 : now - 1, next = now == STAGES - 1 ? 0 : now + 1;
        FETCH_EDGES(tile + STAGES - 1, stages + before * STAGE)
#if KIND == THREE
        // The matrix units cut what they add where they align it. Sums over a few instructions are added to the others by fp32's rules.
        sums few;
        clear(few);
#else
        sums &few = sum;
#endif
        UNROLL for (int s = 0; s < STEPS; s++) {
            fragments &these = f[s % 2], &those = f[(s + 1) % 2];
            if (s < STEPS - 1) {
                those.read(stages + now * STAGE, row, column, first_k + (s + 1) * STEP);
            } else {
                copies_wait<STAGES - 2>();
                barrier();  // the next tile is there for all, and nobody reads the stage any more that is filled next
                those.read(stages + next * STAGE, row, column, first_k);
            }
            // What is read, fetched and prepared for later stands between multiplications, which wait for the units.
            if (!AHEAD) these.prepare();
#if KIND == THREE
            add(few, these.rest_a, these.b, 0, DOWN);
#else
            add(few, these.a, these.b, 0, DOWN / 2);
#endif
            if (s == 0) {
                FETCH_WHOLE(tile + STAGES - 1, stages + before * STAGE)
            }
#if KIND == THREE
            add(few, these.a, these.rest_b, 0, DOWN);
#endif
            if (AHEAD) those.prepare();
#if KIND == THREE
            add(few, these.a, these.b, 0, DOWN);
#else
            add(few, these.a, these.b, DOWN / 2, DOWN);
#endif
        }
#if KIND == THREE
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int j = 0; j < ACROSS; j++) {
                UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] += few[i][j][e];
            }
        }
#endif
        now = next;
    }
#undef FETCH_EDGES
#undef FETCH_WHOLE
    // Sums go through shared memory, so that one short loop finishes them and neighbours store neighbours.
    copies_wait<0>();
    float *all = (float *)dynamic_memory();
    UNROLL for (int s = 0; s < SLICES; s++) {
        barrier();
        if (s == slice) put(all, sum, row, column, s > 0);
    }
    barrier();
    const result r = RESULT;
    store_tile<TILE_M, TILE_N, PITCH_C, THREADS>(r, all, at.row, at.column, m, n, at.batch, batches, at.part);
}
