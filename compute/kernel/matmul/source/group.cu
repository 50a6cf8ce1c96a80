// Products of 3xTF32 by warpgroups, for compute capability 9.0 alone: one instruction multiplies 64 rows of A, which four warps have in registers, with a
// part of B in shared memory, while the warps prepare the next.
//
// A number is the sum of two of TF32, a big one and a rest; the product of the rests is left out. Two warpgroups, the consumers, copy their rows of A to
// shared memory ahead, split them in registers, and begin the products. A third, the producers, brings B through registers, where it is split, and
// transposed where it lies across, to stages of shared memory.
//
// Within a stage, 32 of the summed direction, both operands are taken in another order, in which four lanes find eight numbers each of a row of A side
// by side: instruction s takes 8l + 2s and 8l + 2s + 1 of lane l, and chunk q of 16 bytes of B has the numbers q, 8 + q, 16 + q and 24 + q.
//
// The units cut what they add where they align it. The sums of a stage are therefore added to the others by fp32's rules.
//
// Operands must be wide, 32 must divide what is summed up, and 4 the rows or columns that lie side by side.
//
// Macros: NAME; TA and TB: 1 where A and B are stored transposed.
#include "finish.h"

namespace {

enum {
    TILE_M = 128, TILE_N = 64, TILE_K = 32, STAGES = 3,
    GROUPS = 2, CONSUMERS = GROUPS * 128, PRODUCERS = 128, THREADS = CONSUMERS + PRODUCERS,
    SUMS = TILE_N / 2,                             // of a consumer
    PART_B = TILE_N * TILE_K, STAGE = 2 * PART_B,  // words: those of the big numbers, then those of the rests
    ACROSS = PART_B / PRODUCERS / 4,               // columns of B that a producer brings four numbers of, in a stage
    AHEAD = 2,                                     // stages of B that are on their way to registers
    SLOTS = 3, SLOT = TILE_M * TILE_K,             // of A
    PITCH_C = TILE_N + 8,
};
static_assert((STAGES * STAGE + SLOTS * SLOT) * 4 >= TILE_M * PITCH_C * 4, "sums go through the same memory");

DEVICE int fewer(int a, int b) { return a < b ? a : b; }

// left brings what a warp needs of A, 16 rows, to slots of its own, and reads them. A row is 128 bytes, with its chunks of 16 bytes in another order in
// each of eight rows; or, where A is transposed, 64 bytes are a number of the summed direction. No two lanes meet in a bank.
struct left {
    const float *at;  // the lane's first 16 bytes of the first stage
    i64 step;         // to its next ones
    i64 forward;      // from a stage to the next
    int rows;         // of A, from the warp's first one on. Those beyond are not stored: any numbers do.

    MEMBER left(const float *a, i64 lda, i64 rows_left, int row, int lane) {
        rows = (int)smaller(rows_left - row, 16);
        if (TA) {
            at = a + (lane / 4) * lda + smaller(row + lane % 4 * 4, rows_left - 4);
            step = 8 * lda;
            forward = TILE_K * lda;
        } else {
            at = a + smaller(row + lane / 8, rows_left - 1) * lda + lane % 8 * 4;
            step = 4 * lda;
            forward = TILE_K;
        }
    }
    MEMBER void copy(u32 *slot, int tile, int lane) const {
        const float *from = at + tile * forward;
        UNROLL for (int i = 0; i < 4; i++) {
            if (TA) {
                const int k = lane / 4 + 8 * i;
                copy16_if(true, slot + k / 2 * 32 + (k % 2 ^ k / 8 % 2) * 16 + lane % 4 * 4, from + i * step);
            } else {
                const int row = lane / 8 + 4 * i;
                copy16_if(true, slot + row * 32 + (lane % 8 ^ row % 8) * 4, from + (row < rows ? i * step : 0));
            }
        }
        copies_commit();
    }
};

typedef u32 two_rows[2][4];

// read takes what a lane needs of the first or second half of a slot: four numbers of each of two rows, which are neighbours where A is transposed.
DEVICE void read(two_rows &raw, const u32 *slot, int half, int lane) {
    if (TA) {
        UNROLL for (int e = 0; e < 4; e++) {
            const int k = lane % 4 * 8 + half * 4 + e;
            const pair both = *(const pair *)(slot + k / 2 * 32 + (k % 2 ^ lane % 2) * 16 + lane / 4 * 2);
            raw[0][e] = both.x[0];
            raw[1][e] = both.x[1];
        }
    } else {
        UNROLL for (int row = 0; row < 2; row++) {
            const quad four = *(const quad *)(slot + (row * 8 + lane / 4) * 32 + ((lane % 4 * 2 + half) ^ lane / 4) * 4);
            UNROLL for (int e = 0; e < 4; e++) raw[row][e] = four.x[e];
        }
    }
}

// fragments are what two instructions take of A.
struct fragments {
    u32 big[2][4], rest[2][4];

    MEMBER void of(const two_rows &raw) {
        UNROLL for (int row = 0; row < 2; row++) {
            UNROLL for (int e = 0; e < 4; e++) split(float_of(raw[row][e]), big[e / 2][e % 2 * 2 + row], rest[e / 2][e % 2 * 2 + row]);
        }
    }
};

typedef float columns_of_b[ACROSS][4];

// right is what a producer brings of B: of some columns the four numbers of a chunk; or, where they lie side by side, a word of four chunks.
struct right {
    const float *at;
    i64 step, forward;
    int columns;  // of B, from the tile's first one on. Those beyond are not stored: any numbers do.
    int column;   // the thread's first
    int part;     // the chunk, or which four of the summed direction

    MEMBER right(const float *b, i64 ldb, i64 columns_left, int warp, int lane) {
        columns = (int)smaller(columns_left, TILE_N);
        if (TB) {
            part = lane % 8;
            column = warp * 4 + lane / 8;
            at = b + smaller(column, columns - 1) * ldb + part * 4;
            step = 16 * ldb;
            forward = TILE_K;
        } else {
            // Eight lanes have four chunks of two columns, which lie in different banks, and 32 have 128 bytes of each of four rows.
            part = warp % 2 * 4 + lane / 2 % 4;
            column = (warp / 2 * 8 + lane / 8 * 2 + lane % 2) * 4;
            at = b + part * ldb + smaller(column, columns - 4);
            step = 8 * ldb;
            forward = TILE_K * ldb;
        }
    }
    MEMBER void load(columns_of_b &raw, int tile) const {
        const float *from = at + tile * forward;
        if (TB) {
            UNROLL for (int i = 0; i < ACROSS; i++) {
                if (i > 0 && column + 16 * i < columns) from += step;
                const quad q = *(const quad *)from;
                UNROLL for (int e = 0; e < 4; e++) raw[i][e] = float_of(q.x[e]);
            }
        } else {
            UNROLL for (int e = 0; e < 4; e++) {
                const quad q = *(const quad *)(from + e * step);
                UNROLL for (int i = 0; i < ACROSS; i++) raw[i][e] = float_of(q.x[i]);
            }
        }
    }
    MEMBER void store(u32 *stage, const columns_of_b &raw) const {
        UNROLL for (int i = 0; i < ACROSS; i++) {
            quad big, rest;
            UNROLL for (int e = 0; e < 4; e++) split(raw[i][e], big.x[e], rest.x[e]);
            if (TB) {
                const int row = column + 16 * i;
                UNROLL for (int e = 0; e < 4; e++) {
                    u32 *to = stage + row * TILE_K + ((part % 2 * 4 + e) ^ row % 8) * 4 + part / 2;
                    to[0] = big.x[e];
                    to[PART_B] = rest.x[e];
                }
            } else {
                const int row = column + i;
                u32 *to = stage + row * TILE_K + (part ^ row % 8) * 4;
                *(quad *)to = big;
                *(quad *)(to + PART_B) = rest;
            }
        }
    }
};

typedef float sums[SUMS];

// begin begins the products of 16 of the summed direction. The smaller ones come first.
DEVICE void begin(sums &few, const fragments &a, const u32 *b, bool adds) {
    group_fence();
    UNROLL for (int s = 0; s < 2; s++) {
        group_multiply(few, a.rest[s], b + s * 8, adds || s > 0);
        group_multiply(few, a.big[s], b + PART_B + s * 8, true);
        group_multiply(few, a.big[s], b + s * 8, true);
    }
    group_commit();
}

// The numbers of the barriers at which producers and a group of consumers meet; 0 is that of the whole block.
DEVICE int filled(int stage, int group) { return 1 + stage * GROUPS + group; }
DEVICE int emptied(int stage, int group) { return 1 + (STAGES + stage) * GROUPS + group; }
enum { MEET = PRODUCERS + 128 };
static_assert(1 + 2 * STAGES * GROUPS <= 16, "a block has 16 barriers");

DEVICE int after(int place, int count) { return place == count - 1 ? 0 : place + 1; }

DEVICE void produce(const right &of_b, u32 *stages, int tiles) {
    columns_of_b raw[AHEAD];
    UNROLL for (int i = 0; i < AHEAD; i++) of_b.load(raw[i], fewer(i, tiles - 1));
    int stage = 0;
    NO_UNROLL for (int first = 0; first < tiles; first += AHEAD) {
        UNROLL for (int i = 0; i < AHEAD; i++) {
            const int tile = first + i;
            if (tile >= tiles) break;
            UNROLL for (int g = 0; g < GROUPS; g++) {
                if (tile >= STAGES) barrier_of<MEET>(emptied(stage, g));
            }
            of_b.store(stages + stage * STAGE, raw[i]);
            shared_fence();
            UNROLL for (int g = 0; g < GROUPS; g++) arrive_at<MEET>(filled(stage, g));
            of_b.load(raw[i], fewer(tile + AHEAD, tiles - 1));
            stage = after(stage, STAGES);
        }
    }
}

DEVICE void consume(sums &sum, const left &of_a, const u32 *stages, u32 *slots, int tiles, int group, int lane) {
    sums few;
    two_rows raw;
    fragments first, second;
    UNROLL for (int i = 0; i < SUMS; i++) sum[i] = 0;
    UNROLL for (int i = 0; i < SLOTS; i++) of_a.copy(slots + i * SLOT, fewer(i, tiles - 1), lane);
    copies_wait<SLOTS - 1>();
    warp_barrier();
    read(raw, slots, 0, lane);
    first.of(raw);
    int stage = 0, slot = 0;
    NO_UNROLL for (int tile = 0; tile < tiles; tile++) {
        const u32 *b = stages + stage * STAGE;
        const int next = after(slot, SLOTS);
        read(raw, slots + slot * SLOT, 1, lane);
        barrier_of<MEET>(filled(stage, group));
        begin(few, first, b, false);
        second.of(raw);
        begin(few, second, b + 16, true);
        copies_wait<SLOTS - 2>();
        warp_barrier();  // the next slot is there for all lanes, and none reads this one any more
        read(raw, slots + next * SLOT, 0, lane);
        of_a.copy(slots + slot * SLOT, fewer(tile + SLOTS, tiles - 1), lane);
        group_wait<1>();
        first.of(raw);
        group_wait<0>();
        if (tile + STAGES < tiles) arrive_at<MEET>(emptied(stage, group));
        UNROLL for (int i = 0; i < SUMS; i++) sum[i] += few[i];
        stage = after(stage, STAGES);
        slot = next;
    }
    copies_wait<0>();
}

}  // namespace

KERNEL BOUNDS2(THREADS, 1) void NAME(MATRIX_PARAMETERS, RESULT_PARAMETERS) {
    const matrices x = MATRICES;
    const place at = place_of(x, TILE_M, TILE_N);
    u32 *stages = (u32 *)group_memory();
    const int lane = thread_x() % 32, warp = thread_x() / 32, row = warp * 16;
    const int tiles = (int)(at.last_k - at.first_k) / TILE_K;
    sums sum;
    if (warp >= CONSUMERS / 32) {
        const float *from = (const float *)b + at.batch * stride_b + (TB ? at.column * ldb + at.first_k : at.column + at.first_k * ldb);
        produce(right(from, ldb, n - at.column, warp - CONSUMERS / 32, lane), stages, tiles);
    } else {
        const float *from = (const float *)a + at.batch * stride_a + (TA ? at.row + at.first_k * lda : at.row * lda + at.first_k);
        consume(sum, left(from, lda, m - at.row, row, lane), stages, stages + STAGES * STAGE + row * TILE_K, tiles, warp / 4, lane);
    }
    barrier();
    barrier();  // NVIDIA's racecheck counts the first one for nothing, behind those of some threads
    // Sums go through shared memory, so that neighbours store neighbours.
    float *all = (float *)stages;
    if (warp < CONSUMERS / 32) {
        UNROLL for (int high = 0; high < 2; high++) {
            float *to = all + (row + (TA ? lane / 4 * 2 + high : lane / 4 + 8 * high)) * PITCH_C + lane % 4 * 2;
            UNROLL for (int j = 0; j < TILE_N / 8; j++) *(pair *)(to + 8 * j) = pair{{bits_of(sum[4 * j + 2 * high]), bits_of(sum[4 * j + 2 * high + 1])}};
        }
    }
    barrier();
    if (warp >= CONSUMERS / 32) return;
    const result r = RESULT;
    store_tile<TILE_M, TILE_N, PITCH_C, CONSUMERS>(r, all, at.row, at.column, m, n, at.batch, batches, at.part);
}
