// Products by warpgroups, of 16-bit numbers and of fp32 by TF32, for compute capability 9.0 alone: the copy engine brings tiles of both operands to a ring of stages in shared
// memory, where warpgroups multiply them.
//
// One thread of the last warps, the producer, waits until a stage is empty and begins its copies, whose bytes a barrier of the stage counts. Consumers,
// warpgroups, wait for the bytes, multiply, and arrive at the other barrier of the stage. A block computes one tile after the other; the copies of a tile
// begin while the sums of the last one are stored. Numbers beyond an operand's edge arrive as 0.
//
// Instructions take operands of fp32 from shared memory only where they lie along the summed direction. A left one that lies across it goes through
// registers. A right one does not: either the product is crossed, so that the result's transpose is computed of B's and A's, or B is transposed before.
//
// Copies round fp32 to TF32. For 3xTF32 they do not: a number is the sum of what the units read of it, its first 10 bits of fraction, and a rest. The
// product of the rests is left out. The left operand goes through registers. Three warps, the dividers, write the rests of the right one after it. The
// units cut what they add where they align it, so that the sums of a step are added to the others by fp32's rules.
//
// Macros: NAME; TILE_M, TILE_N; STAGES; CHUNK: columns of sums that go through shared memory at once; AHEAD: 1 where products of two steps are on their
// way, or, of an operand in registers, where the next step is read meanwhile; MOVES: 1 where the producers give registers to the consumers; KIND:
// BFLOAT16, FLOAT16 or FLOAT32; THREE: 1 for 3xTF32; TA and TB: 1 where A and B are stored transposed; CROSSED: 1 where A and B, and the sides of the
// result, have changed places.
#include "bulk.h"

namespace {

enum {
    ROW_BYTES = 128, LINE = ROW_BYTES / (KIND == FLOAT32 ? 4 : 2), TILE_K = LINE, STEPS = ROW_BYTES / 32,  // steps: instructions for TILE_K
    CONSUMERS = 2, THREADS = CONSUMERS * 128 + (MOVES ? 128 : 32), STRIP = 8,
    ROWS = TILE_M / CONSUMERS,  // of a consumer
    PRODUCTS = ROWS / 64,
    A_BYTES = TILE_M * ROW_BYTES, B_BYTES = TILE_N * ROW_BYTES, COPIED_BYTES = A_BYTES + B_BYTES,
    STAGE_BYTES = COPIED_BYTES + (THREE ? B_BYTES : 0),  // with the rests of the right operand
    BOX_BYTES = TILE_K * ROW_BYTES,  // of LINE rows or columns of an operand that lies across
    SPREAD = KIND == FLOAT32 && TA,  // the rows of a warp are no neighbours
    LEFT_IN_REGISTERS = SPREAD || THREE,
    DIVIDERS = 96,  // the last threads
    WARP_WORDS = 16 * CHUNK,  // of sums, which go through shared memory
    EARLY = TILE_N <= 192,    // sums leave registers for what is computed before them: else it is computed again
    BARRIER_BYTES = 256,
};

// The barriers of the stages: first they count bytes, then consumers, then dividers.
DEVICE u32 filled(u32 barriers, int stage) { return barriers + stage * 8; }
DEVICE u32 emptied(u32 barriers, int stage) { return barriers + (STAGES + stage) * 8; }
DEVICE u32 divided(u32 barriers, int stage) { return barriers + (2 * STAGES + stage) * 8; }

struct tiles {
    u32 m, n, k, part_k, parts, batches;
    u32 down, across;

    MEMBER tiles(u32 m, u32 n, u32 k, u32 part_k, u32 parts, u32 batches) : m(m), n(n), k(k), part_k(part_k), parts(parts), batches(batches) {
        down = (m + TILE_M - 1) / TILE_M;
        across = (n + TILE_N - 1) / TILE_N;
    }
    MEMBER u32 count() const { return down * across * parts * batches; }
};

struct tile {
    u32 row, column, batch, part, first_k;
    u32 steps;

    MEMBER tile() {}
    MEMBER tile(const tiles &all, u32 number) {
        const u32 each = all.down * all.across, other = number / each;
        u32 in = number % each;
        part = other % all.parts;
        batch = other / all.parts;
        const u32 strip = STRIP * all.across, first = in / strip * STRIP;
        in %= strip;
        const u32 rows = all.down - first < STRIP ? all.down - first : STRIP;
        row = (first + in % rows) * TILE_M;
        column = in / rows * TILE_N;
        first_k = part * all.part_k;
        const u32 left = all.k - first_k;
        steps = ((left < all.part_k ? left : all.part_k) + TILE_K - 1) / TILE_K;
    }
};

// Steps are counted from the block's first one on: each stage has its turn, and a phase of its barriers ends each time.
DEVICE int stage_of(u32 step) { return step % STAGES; }
DEVICE u32 parity_of(u32 step) { return step / STAGES & 1; }

DEVICE void produce(const tiles &all, u64 map_a, u64 map_b, u32 batch_a, u32 batch_b, u32 stages, u32 barriers) {
    u32 total = 0;
    for (u32 number = block_x(); number < all.count(); number += grid_x()) {
        const tile t(all, number);
        const u32 za = batch_a * t.batch, zb = batch_b * t.batch;
        u32 k = t.first_k;
        NO_UNROLL for (u32 step = 0; step < t.steps; step++, k += TILE_K, total++) {
            const int stage = stage_of(total);
            const u32 full = filled(barriers, stage), a = stages + stage * STAGE_BYTES, b = a + A_BYTES;
            barrier_wait(emptied(barriers, stage), parity_of(total) ^ 1);
            barrier_expect(full, COPIED_BYTES);
            if (TA) {
                UNROLL for (int i = 0; i < TILE_M / LINE; i++) bulk_copy(a + i * BOX_BYTES, map_a, t.row + LINE * i, k, za, full);
            } else {
                bulk_copy(a, map_a, k, t.row, za, full);
            }
            if (TB) {
                bulk_copy(b, map_b, k, t.column, zb, full);
            } else {
                UNROLL for (int i = 0; i < TILE_N / LINE; i++) bulk_copy(b + i * BOX_BYTES, map_b, t.column + LINE * i, k, zb, full);
            }
        }
    }
}

typedef float sums[PRODUCTS][TILE_N / 2];

// leave gives back the stage of a step: each warp that has read it arrives.
DEVICE void leave(u32 barriers, u32 step) {
    if (thread_again() % 32 == 0) barrier_arrive(emptied(barriers, stage_of(step)));
}

// multiply begins the products of instruction j of a stage. Both operands are in shared memory.
DEVICE void multiply(sums &sum, u32 a, u32 b, int j, bool adds) {
    const bool across_b = KIND != FLOAT32 && !TB, across_a = KIND != FLOAT32 && TA;
    const u64 right = across_b ? group_matrix_at(b + j * 16 * ROW_BYTES, BOX_BYTES) : group_matrix_at(b + j * 32, 16);
    UNROLL for (int i = 0; i < PRODUCTS; i++) {
        const u32 at = a + i * 64 * ROW_BYTES;
        const u64 left = across_a ? group_matrix_at(at + j * 16 * ROW_BYTES, BOX_BYTES) : group_matrix_at(at + j * 32, 16);
        if (KIND == FLOAT32) group_multiply_8(sum[i], left, right, adds);
        else group_multiply_16<KIND, TA, !TB>(sum[i], left, right, adds);
    }
}

// consume adds up the products of steps, of which the first one is number total of the block.
DEVICE void consume(sums &sum, u32 total, int steps, int first_row, u32 stages, u32 barriers) {
    NO_UNROLL for (int step = 0; step < steps; step++, total++) {
        const int stage = stage_of(total);
        const u32 a = stages + stage * STAGE_BYTES + first_row * ROW_BYTES, b = stages + stage * STAGE_BYTES + A_BYTES;
        barrier_wait(filled(barriers, stage), parity_of(total));
        group_fence();
        UNROLL for (int j = 0; j < STEPS; j++) multiply(sum, a, b, j, step > 0 || j > 0);
        group_commit();
        if (AHEAD) {
            group_wait<1>();
            if (step > 0) leave(barriers, total - 1);
        } else {
            group_wait<0>();
            leave(barriers, total);
        }
    }
    if (AHEAD) {
        group_wait<0>();
        if (steps > 0) leave(barriers, total - 1);
    }
}

// A warp has 16 slots for rows. Where they are spread, a line of a stage has 32 rows, of which two warps have eight of each half, and a lane has pairs of
// neighbours: no two of the lanes that read at once, with four numbers of the summed direction, meet in a bank.
DEVICE int slot_of(int lane, int high) {
    if (!SPREAD) return lane / 4 + 8 * high;
    const int group = lane / 4;
    return group % 2 * 8 + group / 4 * 4 + group / 2 % 2 * 2 + high;
}
// Where the row of a slot is, from the warp's first one on.
DEVICE int row_of(int slot) { return SPREAD ? slot + slot / 8 * 8 : slot; }
// The warp's first row of 64.
DEVICE int first_of(int warp) { return SPREAD ? warp / 2 * 32 + warp % 2 * 8 : warp * 16; }

// What the units lack of a number. They read the first 10 bits of its fraction.
DEVICE u32 rest_of(u32 all) { return bits_of(rounded(float_of(all) - float_of(all & 0xffffe000))); }

DEVICE void divide_four(quad *four) {
    quad q = *four;
    UNROLL for (int e = 0; e < 4; e++) q.x[e] = rest_of(q.x[e]);
    four[B_BYTES / 16] = q;
}

// divide writes the rests of the right operand of all steps.
DEVICE void divide(const tiles &all, u32 barriers, int thread) {
    u32 total = 0;
    for (u32 number = block_x(); number < all.count(); number += grid_x()) {
        const tile t(all, number);
        NO_UNROLL for (u32 step = 0; step < t.steps; step++, total++) {
            const int stage = stage_of(total);
            quad *b = (quad *)(group_memory() + stage * STAGE_BYTES + A_BYTES) + thread;
            barrier_wait(filled(barriers, stage), parity_of(total));
            enum { ROUNDS = B_BYTES / 16 / DIVIDERS, LEFT = B_BYTES / 16 % DIVIDERS };
            UNROLL_4 for (int i = 0; i < ROUNDS; i++) divide_four(b + i * DIVIDERS);
            if (thread < LEFT) divide_four(b + ROUNDS * DIVIDERS);
            shared_fence();
            warp_barrier();
            if (thread % 32 == 0) barrier_arrive(divided(barriers, stage));
        }
    }
}

// fragments are what a lane has of the left operand of a stage: four numbers for each instruction.
struct fragments {
    u32 x[PRODUCTS][STEPS][4];

    MEMBER void read(const char *a, int warp, int lane) {
        if (SPREAD) read_across(a, warp, lane);
        else read_along(a, warp * 16 + lane / 4, lane);
    }
    MEMBER void read_along(const char *a, int row, int lane) {
        a += row * ROW_BYTES + lane % 4 * 4;
        UNROLL for (int i = 0; i < PRODUCTS; i++) {
            UNROLL for (int e = 0; e < STEPS * 4; e++)
                x[i][e / 4][e % 4] = *(const u32 *)(a + (i * 64 + e % 2 * 8) * ROW_BYTES + (e / 2 ^ row % 8) * 16);
        }
    }
    MEMBER void read_across(const char *a, int warp, int lane) {
        const int row = warp % 2 * 8 + row_of(slot_of(lane, 0)), k = lane % 4;
        a += warp / 2 * BOX_BYTES + k * ROW_BYTES + row % 4 * 4;
        UNROLL for (int i = 0; i < PRODUCTS; i++) {
            UNROLL for (int j = 0; j < STEPS; j++) {
                UNROLL for (int half = 0; half < 2; half++) {
                    const pair two = *(const pair *)(a + i * 2 * BOX_BYTES + (8 * j + 4 * half) * ROW_BYTES + (row / 4 ^ (k + 4 * half)) * 16);
                    x[i][j][2 * half] = two.x[0];
                    x[i][j][2 * half + 1] = two.x[1];
                }
            }
        }
    }
    MEMBER void multiply(sums &sum, u32 b, bool adds) const {
        group_fence();
        UNROLL for (int j = 0; j < STEPS; j++) {
            UNROLL for (int i = 0; i < PRODUCTS; i++) group_multiply_8(sum[i], x[i][j], group_matrix_at(b + j * 32, 16), adds || j > 0);
        }
        group_commit();
    }
    // multiply_three leaves the products of one stage, with the rests but for their own product.
    MEMBER void multiply_three(sums &sum, const fragments &rest, u32 b) const {
        group_fence();
        UNROLL for (int j = 0; j < STEPS; j++) {
            UNROLL for (int i = 0; i < PRODUCTS; i++) {
                const u64 big = group_matrix_at(b + j * 32, 16);
                group_multiply_8(sum[i], rest.x[i][j], big, j > 0);
                group_multiply_8(sum[i], x[i][j], group_matrix_at(b + B_BYTES + j * 32, 16), true);
                group_multiply_8(sum[i], x[i][j], big, true);
            }
        }
        group_commit();
    }
    MEMBER void rests(const fragments &of) {
        UNROLL for (int i = 0; i < PRODUCTS; i++)
            UNROLL for (int e = 0; e < STEPS * 4; e++) x[i][e / 4][e % 4] = rest_of(of.x[i][e / 4][e % 4]);
    }
};

// consume_registers is consume with the left operand in registers.
DEVICE void consume_registers(sums &sum, u32 total, int steps, int first_row, u32 stages, u32 barriers) {
    const u32 thread = thread_again();
    const int warp = thread / 32 % 4, lane = thread % 32;
    const char *a = group_memory() + first_row * ROW_BYTES;
    fragments x[2];
    if (AHEAD && steps > 0) {
        barrier_wait(filled(barriers, stage_of(total)), parity_of(total));
        x[0].read(a + stage_of(total) * STAGE_BYTES, warp, lane);
    }
    NO_UNROLL for (int step = 0; step < steps; step += 2) {
        UNROLL for (int odd = 0; odd < 2; odd++, total++) {
            if (step + odd >= steps) break;
            const u32 b = stages + stage_of(total) * STAGE_BYTES + A_BYTES;
            if (!AHEAD) {
                barrier_wait(filled(barriers, stage_of(total)), parity_of(total));
                x[odd].read(a + stage_of(total) * STAGE_BYTES, warp, lane);
            }
            sums few;
            if (THREE) {
                fragments rest;
                rest.rests(x[odd]);
                barrier_wait(divided(barriers, stage_of(total)), parity_of(total));
                x[odd].multiply_three(few, rest, b);
            } else {
                x[odd].multiply(sum, b, step + odd > 0);
            }
            if (AHEAD && step + odd + 1 < steps) {
                barrier_wait(filled(barriers, stage_of(total + 1)), parity_of(total + 1));
                x[1 - odd].read(a + stage_of(total + 1) * STAGE_BYTES, warp, lane);
            }
            group_wait<0>();
            warp_barrier();  // all lanes have read their part of the left operand
            leave(barriers, total);
            if (!THREE) continue;
            UNROLL for (int i = 0; i < PRODUCTS; i++)
                UNROLL for (int j = 0; j < TILE_N / 2; j++) sum[i][j] += few[i][j];
        }
    }
}

// Four neighbours of a row, at once.
DEVICE void load_four(float (&v)[4], const void *p, i64 at, u32 type) {
    if (type == FLOAT32) {
        const quad q = *(const quad *)((const float *)p + at);
        UNROLL for (int e = 0; e < 4; e++) v[e] = float_of(q.x[e]);
        return;
    }
    const u64 all = *(const u64 *)((const u16 *)p + at);
    UNROLL for (int e = 0; e < 4; e++) v[e] = type == FLOAT16 ? from_f16((u16)(all >> 16 * e)) : from_bf16((u16)(all >> 16 * e));
}
DEVICE void put_four(void *p, i64 at, u32 type, const float (&v)[4]) {
    if (type == FLOAT32) *(quad *)((float *)p + at) = quad{{bits_of(v[0]), bits_of(v[1]), bits_of(v[2]), bits_of(v[3])}};
    else *(pair *)((u16 *)p + at) = pair{{narrow_pair(type, v[0], v[1]), narrow_pair(type, v[2], v[3])}};
}

// wide says that four neighbours of a row lie at a multiple of their size in all matrices that a result is made of.
DEVICE bool wide(const result &r) {
    const i64 bytes = r.type == FLOAT32 ? 4 : 2;
    u64 at = 0;
    if (r.flags & ADD_BIAS) at |= (u64)r.bias;
    if (r.flags & (KEEP | GELU_GRADIENT)) at |= (u64)r.aux | r.ldaux * bytes | r.stride_aux * bytes;
    return r.flags & WIDE_C && at % (4 * bytes) == 0;
}

// finish_four is finish_at for four neighbours, and stores them.
DEVICE void finish_four(const result &r, const quad &sums, i64 at, i64 aux, i64 bias) {
    float v[4], x[4];
    UNROLL for (int e = 0; e < 4; e++) v[e] = (float)r.alpha * float_of(sums.x[e]);
    if (r.beta != 0) {
        load_four(x, r.c, at, r.type);
        UNROLL for (int e = 0; e < 4; e++) v[e] = fused((float)r.beta, x[e], v[e]);
    }
    if (r.flags & ADD_BIAS) {
        load_four(x, r.bias, bias, r.type);
        UNROLL for (int e = 0; e < 4; e++) v[e] += x[e];
    }
    if (r.flags & KEEP) put_four(r.aux, aux, r.type, v);
    if (r.flags & GELU) {
        UNROLL for (int e = 0; e < 4; e++) v[e] = gelu(v[e]);
    }
    if (r.flags & GELU_GRADIENT) {
        load_four(x, r.aux, aux, r.type);
        UNROLL for (int e = 0; e < 4; e++) v[e] *= gelu_gradient(x[e]);
    }
    put_four(r.c, at, r.type, v);
}

// Where a sum of a warp's 16 rows is in its shared memory: parts of eight are in another order in each row, so that no two lanes meet in a bank.
DEVICE int word_of(int row, int column) { return row * CHUNK + (column / 8 ^ row % (CHUNK / 8)) * 8 + column % 8; }

// Two neighbours of 16 bits.
DEVICE void load_pair(float (&v)[2], const u16 *from) {
    const u32 both = *(const u32 *)from;
    v[0] = KIND == FLOAT16 ? from_f16((u16)both) : float_of(both << 16);
    v[1] = KIND == FLOAT16 ? from_f16((u16)(both >> 16)) : float_of(both & 0xffff0000);
}

// store_narrow stores 16 rows of some of a warp's columns, times a factor, as numbers of 16 bits: eight at once, by way of half of its shared
// memory. Halves take turns, so nobody still reads what is overwritten: there was a barrier since.
template <int COLUMNS> DEVICE void store_narrow(u16 *to, i64 ld, float factor, const float *v, u32 *half, u32 rows, int lane) {
    enum { PARTS = COLUMNS / 8, AT_ONCE = 32 / PARTS, PITCH = COLUMNS / 2, TURN = 8 / PARTS };  // parts of 16 bytes, in another order in each TURN rows
    const int line = lane / PARTS, across = lane % PARTS;
    to += line * ld + across * 8;
    UNROLL for (int j = 0; j < PARTS; j++) {
        UNROLL for (int high = 0; high < 2; high++) {
            const int row = lane / 4 + 8 * high, at = 4 * j + 2 * high;
            half[row * PITCH + (j ^ row / TURN % PARTS) * 4 + lane % 4] = narrow_pair(KIND, v[at] * factor, v[at + 1] * factor);
        }
    }
    warp_barrier();
    UNROLL for (int i = 0; i < 16; i += AT_ONCE) {
        const int row = i + line;
        const quad q = *(const quad *)(half + row * PITCH + (across ^ row / TURN % PARTS) * 4);
        if (row < rows) *(quad *)(to + i * ld) = q;
    }
}

// load_narrow loads the numbers of 16 bits that are where a lane's sums of some columns belong: zeros past the last row.
template <int COLUMNS> DEVICE void load_narrow(float (&x)[COLUMNS / 2], const u16 *from, i64 ld, u32 rows, int lane) {
    from += lane / 4 * ld + lane % 4 * 2;
    UNROLL for (int j = 0; j < COLUMNS / 8; j++) {
        UNROLL for (int high = 0; high < 2; high++) {
            float two[2] = {0, 0};
            if (lane / 4 + 8 * high < rows) load_pair(two, from + 8 * high * ld + 8 * j);
            UNROLL for (int e = 0; e < 2; e++) x[4 * j + 2 * high + e] = two[e];
        }
    }
}

// finish_narrow finishes 16 rows of a warp in registers, and stores them as numbers of 16 bits.
DEVICE void finish_narrow(const result &r, float (&sum)[TILE_N / 2], u32 *own, i64 at, i64 aux, u32 column, u32 rows, int lane) {
    enum { HALF = 512, COLUMNS = 32, COUNT = COLUMNS / 2 };  // words; columns at once, and a lane's sums of them
    const float beta = (float)r.beta;
    float alpha = (float)r.alpha;
    bool bias = r.flags & ADD_BIAS;
    if (bias && beta == 0) {  // all of it is loaded before the first is used
        float two[TILE_N / 8][2];
        UNROLL for (int j = 0; j < TILE_N / 8; j++) load_pair(two[j], (const u16 *)r.bias + column + 8 * j + lane % 4 * 2);
        UNROLL for (int i = 0; i < TILE_N / 2; i++) sum[i] = sum[i] * alpha + two[i / 4][i % 2];
        alpha = 1;
        bias = false;
    }
    if (!bias && !(r.flags & (GELU | KEEP | GELU_GRADIENT)) && beta == 0) {
        UNROLL for (int chunk = 0; chunk < TILE_N / 64; chunk++)
            store_narrow<64>((u16 *)r.c + at + 64 * chunk, r.ldc, alpha, sum + 32 * chunk, own + chunk % 2 * HALF, rows, lane);
        warp_barrier();
        return;
    }
    NO_UNROLL for (int chunk = 0; chunk < TILE_N / COLUMNS; chunk++, at += COLUMNS, aux += COLUMNS) {
        float v[COUNT], x[COUNT];
        UNROLL for (int c = 0; c < TILE_N / COLUMNS; c++) {
            if (c != chunk) continue;
            UNROLL for (int i = 0; i < COUNT; i++) v[i] = sum[c * COUNT + i] * alpha;
        }
        if (beta != 0) {
            load_narrow<COLUMNS>(x, (const u16 *)r.c + at, r.ldc, rows, lane);
            UNROLL for (int i = 0; i < COUNT; i++) v[i] = fused(beta, x[i], v[i]);
        }
        if (bias) {
            UNROLL for (int j = 0; j < COLUMNS / 8; j++) {
                float two[2];
                load_pair(two, (const u16 *)r.bias + column + chunk * COLUMNS + 8 * j + lane % 4 * 2);
                UNROLL for (int e = 0; e < 4; e++) v[4 * j + e] += two[e % 2];
            }
        }
        u32 *half = own + chunk % 2 * HALF;
        if (r.flags & KEEP) {
            store_narrow<COLUMNS>((u16 *)r.aux + aux, r.ldaux, 1, v, own, rows, lane);
            half = own + HALF;
        }
        if (r.flags & GELU) {
            UNROLL for (int i = 0; i < COUNT; i++) v[i] = gelu(v[i]);
        }
        if (r.flags & GELU_GRADIENT) {
            load_narrow<COLUMNS>(x, (const u16 *)r.aux + aux, r.ldaux, rows, lane);
            UNROLL for (int i = 0; i < COUNT; i++) v[i] *= gelu_gradient(x[i]);
        }
        store_narrow<COLUMNS>((u16 *)r.c + at, r.ldc, 1, v, half, rows, lane);
    }
    warp_barrier();
}

// narrows says that finish_narrow does it: eight neighbours of a row lie at a multiple of their size in all matrices that a result is made of, and two of the
// bias.
DEVICE bool narrows(const result &r) {
    u64 at = (u64)r.c | (r.ldc | r.stride_c) * 2;
    if (r.flags & (KEEP | GELU_GRADIENT)) at |= (u64)r.aux | (r.ldaux | r.stride_aux) * 2;
    if (r.flags & ADD_BIAS) at |= (u64)r.bias << 2;
    return KIND != FLOAT32 && r.type == KIND && at % 16 == 0;
}

// store_plain stores 16 rows of a warp, times a factor and with old numbers times another one, as fp32: four lanes have the 32 bytes that the memory takes at
// once. Old numbers are loaded before the first is used.
DEVICE void store_plain(float *all, i64 ld, float factor, float beta, const float (&sum)[TILE_N / 2], u32 rows, int lane) {
    UNROLL for (int high = 0; high < 2; high++) {
        const int row = row_of(slot_of(lane, high));
        if (row >= rows) return;
        float *to = all + row * ld + lane % 4 * 2;
        if (beta == 0) {
            UNROLL for (int j = 0; j < TILE_N / 8; j++) {
                const int at = 4 * j + 2 * high;
                store_pair((u32 *)(to + 8 * j), sum[at] * factor, sum[at + 1] * factor);
            }
            continue;
        }
        enum { AT_ONCE = 24 < TILE_N / 8 ? TILE_N / 16 : TILE_N / 8 };
        UNROLL for (int first = 0; first < TILE_N / 8; first += AT_ONCE) {
            pair old[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; j++) old[j] = *(const pair *)(to + 8 * (first + j));
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                const int at = 4 * (first + j) + 2 * high;
                store_pair((u32 *)(to + 8 * (first + j)), fused(beta, float_of(old[j].x[0]), sum[at] * factor),
                           fused(beta, float_of(old[j].x[1]), sum[at + 1] * factor));
            }
        }
    }
}

// store_sums finishes and stores 16 rows of a warp. Tiles within the result have short ways; all else goes through shared memory of the warp's own, so that
// neighbours store neighbours.
DEVICE void store_sums(const result &r, float (&sum)[TILE_N / 2], u32 *own, u32 row, u32 column, const tiles &all, u32 batch, u32 part, int lane) {
    enum { ACROSS = CHUNK / 4, AT_ONCE = 32 / ACROSS };  // lanes of a row, rows
    if (row >= all.m) return;
    const bool partial = r.flags & PARTIAL, within = column + TILE_N <= all.n;
    const i64 at = batch * r.stride_c + (i64)row * r.ldc + column;
    if (within && partial && all.n % 2 == 0) {
        const i64 place = (((i64)part * all.batches + batch) * all.m + row) * all.n + column;
        store_plain((float *)r.work + place, all.n, 1, 0, sum, all.m - row, lane);
        return;
    }
    if (within && !partial && factors(r) && r.type == FLOAT32) {
        store_plain((float *)r.c + at, r.ldc, (float)r.alpha, (float)r.beta, sum, all.m - row, lane);
        return;
    }
    if (within && !partial && narrows(r)) {
        finish_narrow(r, sum, own, at, batch * r.stride_aux + (i64)row * r.ldaux + column, column, all.m - row, lane);
        return;
    }
    const bool quads = !partial && wide(r);
    const int line = lane / ACROSS, across = lane % ACROSS * 4;
    NO_UNROLL for (int chunk = 0; chunk < TILE_N / CHUNK; chunk++) {
        UNROLL for (int c = 0; c < TILE_N / CHUNK; c++) {
            if (c != chunk) continue;
            UNROLL for (int j = 0; j < CHUNK / 8; j++) {
                UNROLL for (int high = 0; high < 2; high++) {
                    const int at = c * CHUNK / 2 + 4 * j + 2 * high;
                    store_pair(own + word_of(slot_of(lane, high), 8 * j + lane % 4 * 2), sum[at], sum[at + 1]);
                }
            }
        }
        warp_barrier();
        const u32 j = column + chunk * CHUNK + across;
        const u32 rows = all.m - row;
        if (quads && j + 3 < all.n) {
            const i64 at = batch * r.stride_c + row * r.ldc + j, aux = batch * r.stride_aux + row * r.ldaux + j;
            UNROLL_2 for (int i = 0; i < 16; i += AT_ONCE) {
                const int down = row_of(line + i);
                if (down < rows) finish_four(r, *(const quad *)(own + word_of(line + i, across)), at + down * r.ldc, aux + down * r.ldaux, j);
            }
        } else {
            NO_UNROLL for (int i = 0; i < 16; i += AT_ONCE) {
                const int down = row_of(line + i);
                if (down < rows) store_four(r, (const float *)(own + word_of(line + i, across)), row + down, j, all.m, all.n, batch, all.batches, part);
            }
        }
        warp_barrier();
    }
}

// A crossed product has the sums of the result's transpose: what has one side of the result here has the other one there.

// store_crossed_plain is store_plain for them: a lane has two neighbours of a row of the result.
DEVICE void store_crossed_plain(float *to, i64 ld, float factor, float beta, const float (&sum)[TILE_N / 2], u32 columns, int lane) {
    to += row_of(slot_of(lane, 0)) + lane % 4 * 2 * ld;
    UNROLL for (int e = 0; e < 2; e++, to += ld) {
        enum { AT_ONCE = TILE_N / 16 };
        UNROLL for (int first = 0; first < TILE_N / 8; first += AT_ONCE) {
            pair old[AT_ONCE];
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                old[j] = pair{{0, 0}};
                if (beta != 0 && 8 * (first + j) + lane % 4 * 2 + e < columns) old[j] = *(const pair *)(to + 8 * (first + j) * ld);
            }
            UNROLL for (int j = 0; j < AT_ONCE; j++) {
                const int at = 4 * (first + j) + e;
                if (8 * (first + j) + lane % 4 * 2 + e >= columns) continue;
                store_pair((u32 *)(to + 8 * (first + j) * ld), fused(beta, float_of(old[j].x[0]), sum[at] * factor),
                           fused(beta, float_of(old[j].x[1]), sum[at + 2] * factor));
            }
        }
    }
}

// Where the sums of a column of a crossed product are in the warp's shared memory: 16 of them, with parts of four in another order.
DEVICE int crossed_word_of(int slot, int column) { return column * 16 + (slot / 4 ^ column / 2 % 4) * 4 + slot % 4; }

DEVICE void store_crossed(const result &r, float (&sum)[TILE_N / 2], u32 *own, u32 row, u32 column, const tiles &all, u32 batch, u32 part, int lane) {
    if (row >= all.m || column >= all.n) return;
    const bool partial = r.flags & PARTIAL, within = row + row_of(15) < all.m;
    if (within && partial && all.m % 2 == 0) {
        const i64 place = (((i64)part * all.batches + batch) * all.n + column) * all.m + row;
        store_crossed_plain((float *)r.work + place, all.m, 1, 0, sum, all.n - column, lane);
        return;
    }
    if (within && !partial && factors(r)) {
        store_crossed_plain((float *)r.c + batch * r.stride_c + (i64)column * r.ldc + row, r.ldc, (float)r.alpha, (float)r.beta, sum, all.n - column, lane);
        return;
    }
    const bool quads = !partial && wide(r);
    const u32 j = row + row_of(lane % 4 * 4);
    NO_UNROLL for (int chunk = 0; chunk < TILE_N / CHUNK; chunk++) {
        UNROLL for (int c = 0; c < TILE_N / CHUNK; c++) {
            if (c != chunk) continue;
            UNROLL for (int j = 0; j < CHUNK / 8; j++) {
                UNROLL for (int e = 0; e < 2; e++) {
                    const int at = c * CHUNK / 2 + 4 * j + e;
                    store_pair(own + crossed_word_of(slot_of(lane, 0), 8 * j + lane % 4 * 2 + e), sum[at], sum[at + 2]);
                }
            }
        }
        warp_barrier();
        NO_UNROLL for (int i = lane / 4; i < CHUNK; i += 8) {
            const u32 down = column + chunk * CHUNK + i;
            if (down >= all.n) continue;
            const u32 *from = own + crossed_word_of(lane % 4 * 4, i);
            if (quads && j + 3 < all.m) {
                finish_four(r, *(const quad *)from, batch * r.stride_c + down * r.ldc + j, batch * r.stride_aux + down * r.ldaux + j, j);
            } else {
                store_four(r, (const float *)from, down, j, all.n, all.m, batch, all.batches, part);
            }
        }
        warp_barrier();
    }
}

}  // namespace

// a and b are the operands' memory, which the maps describe.
KERNEL BOUNDS2(THREADS, 1) void NAME(tensor_map map_a, tensor_map map_b, const void *a, const void *b, u32 m, u32 n, u32 k, u32 part_k, u32 parts, u32 batches,
                                     u32 batch_a, u32 batch_b, RESULT_PARAMETERS) {
    const u32 memory = shared_address(group_memory()), stages = memory, barriers = memory + STAGES * STAGE_BYTES;
    if (thread_x() == 0) {
        UNROLL for (int i = 0; i < STAGES; i++) {
            barrier_init(filled(barriers, i), 1);
            barrier_init(emptied(barriers, i), CONSUMERS * 4);
            if (THREE) barrier_init(divided(barriers, i), DIVIDERS / 32);
        }
        shared_fence();
    }
    warp_barrier();
    barrier();
    if (thread_x() >= CONSUMERS * 128) {
        if (MOVES) registers_down<40>();
        if (thread_x() == CONSUMERS * 128) {
            const tiles all(m, n, k, part_k, parts, batches);
            produce(all, PARAMETER_ADDRESS(NAME, 0), PARAMETER_ADDRESS(NAME, 1), batch_a, batch_b, stages, barriers);
        }
        if (THREE && thread_x() >= THREADS - DIVIDERS) divide(tiles(m, n, k, part_k, parts, batches), barriers, thread_x() - (THREADS - DIVIDERS));
    } else {
        if (MOVES) registers_up<232>();
        u32 total = 0;
        NO_UNROLL for (u32 number = block_x();; number += grid_x()) {
            tile t;
            {
                const tiles all(again(m), again(n), k, part_k, parts, batches);
                if (number >= all.count()) break;
                t = tile(all, number);
            }
            sums sum;
            UNROLL for (int i = 0; i < PRODUCTS; i++)
                UNROLL for (int j = 0; j < TILE_N / 2; j++) sum[i][j] = 0;
            if (LEFT_IN_REGISTERS) consume_registers(sum, total, t.steps, thread_again() / 128 * ROWS, stages, barriers);
            else consume(sum, total, t.steps, thread_again() / 128 * ROWS, stages, barriers);
            total += t.steps;
            const tiles all(again(m), again(n), k, part_k, parts, batches);
            if (!EARLY) t = tile(all, again(number));
            const u32 thread = thread_again(), warp = thread / 32;
            const result r = RESULT;
            u32 *own = (u32 *)(group_memory() + STAGES * STAGE_BYTES + BARRIER_BYTES) + warp * WARP_WORDS;
            UNROLL for (int i = 0; i < PRODUCTS; i++) {
                const u32 row = t.row + warp / 4 * ROWS + i * 64 + first_of(warp % 4);
                if (CROSSED) store_crossed(r, sum[i], own, row, t.column, all, t.batch, t.part, thread % 32);
                else store_sums(r, sum[i], own, row, t.column, all, t.batch, t.part, thread % 32);
            }
        }
    }
}
