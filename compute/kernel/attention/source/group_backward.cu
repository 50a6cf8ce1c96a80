// The backward pass by warpgroups, for compute capability 9.0 alone. As in backward.cu one kernel has rows of queries and sums up their gradient, and the
// other has rows of keys and sums up the gradients of keys and values. A block owns rows of two matrices, 64 for each consumer. A producer brings them, and
// tiles of two others to a ring of stages.
//
//                owned rows                  streamed rows
//   by queries   queries, output gradients   keys, values                  dQ = dS K
//   by keys      keys, values                queries, output gradients     dK = dS' Q, dV = P' dO
//
// The matrix units work while a consumer computes probabilities and their gradients: by queries on the product with the tile of keys before, by keys on the
// next products of the same tile. A block computes one tile of rows after the other, as in group_forward.cu.
//
// More macros than group.h has: BY_KEYS: 1 or 0; TILE_ROWS: of a streamed tile; STAGES; TURNS: 1 where consumers take turns to issue products; DELTA: the
// name of the kernel of numbers, where BY_KEYS is 0.
#include "group.h"

namespace {

enum {
    ROWS = GROUP_ROWS * CONSUMERS, OWN_BYTES = GROUP_ROWS * DIM * 2, MATRIX_BYTES = ROWS * DIM * 2, TILE_BYTES = TILE_ROWS * DIM * 2,
    NUMBER_BYTES = BY_KEYS ? 8 * TILE_ROWS : 0,  // of two numbers for each query
    AT_OUT = 2 * MATRIX_BYTES, AT_STAGES = AT_OUT + MATRIX_BYTES, AT_NUMBERS = AT_STAGES + STAGES * 2 * TILE_BYTES,
    AT_BARRIERS = AT_NUMBERS + STAGES * NUMBER_BYTES,
};

// The barriers: of owned rows, of the two tiles of a stage, and of a stage that has been read.
DEVICE u32 owned_there(u32 memory) { return memory + AT_BARRIERS; }
DEVICE u32 owned_read(u32 memory) { return memory + AT_BARRIERS + 8; }
DEVICE u32 filled(u32 memory, u32 stage, int which) { return memory + AT_BARRIERS + 16 + (2 * stage + which) * 8; }
DEVICE u32 emptied(u32 memory, u32 stage) { return memory + AT_BARRIERS + 16 + (2 * STAGES + stage) * 8; }
DEVICE u32 tile_at(u32 memory, u32 stage, int which) { return memory + AT_STAGES + (2 * stage + which) * TILE_BYTES; }
DEVICE u32 numbers_at(u32 memory, u32 stage) { return memory + AT_NUMBERS + stage * NUMBER_BYTES; }

struct shape {
    u32 heads, group, queries, keys, causal, padded, blocks, items;
};

// task is a tile of owned rows, and the streamed tiles that see them or are seen: by keys of each head that shares the keys. Number n of a block is half
// n % 2 of an item under the causal mask.
struct task {
    u32 head, batch;
    int row, first, tiles;
    bool exists;

    MEMBER task(const shape &s, u32 n) {
        const u32 halves = s.causal ? 2 : 1, item = block_x() + n / halves * grid_x(), each = (s.blocks + halves - 1) / halves, other = item / each;
        const u32 in = item % each, block = (n % halves != 0) == BY_KEYS ? s.blocks - 1 - in : in, heads = BY_KEYS ? s.heads / s.group : s.heads;
        exists = item < s.items;
        head = other % heads, batch = other / heads, row = (int)block * ROWS;
        const int shift = (int)s.keys - (int)s.queries;
        int seen = BY_KEYS ? (int)s.queries : (int)s.keys, unseen = 0;
        if (s.causal && BY_KEYS) unseen = row - shift;
        if (s.causal && !BY_KEYS) seen = (int)smaller(smaller(row + ROWS, (int)s.queries) + shift, seen);
        first = unseen > 0 ? unseen / TILE_ROWS : 0;
        tiles = seen > 0 ? (seen + TILE_ROWS - 1) / TILE_ROWS - first : 0;
        if (tiles < 0) tiles = 0;
        if (n % halves && s.blocks - 1 - in == in) row = -1;  // it was the first half
    }
    MEMBER int all(const shape &s) const { return BY_KEYS ? tiles * (int)s.group : tiles; }
};

DEVICE void produce(const shape &s, u64 own, u64 own_2, u64 streamed, u64 streamed_2, u64 numbers, u32 memory) {
    ring<STAGES> at;
    u32 turn = 0;
    NO_UNROLL for (u32 n = 0;; n++) {
        const task t(s, n);
        if (!t.exists) break;
        if (t.row < 0 || t.tiles == 0) continue;
        barrier_wait(owned_read(memory), (turn++ & 1) ^ 1);
        barrier_expect(owned_there(memory), 2 * MATRIX_BYTES);
        UNROLL for (int i = 0; i < CONSUMERS; i++) {
            copy_rows<GROUP_ROWS>(memory + i * OWN_BYTES, own, t.row + i * GROUP_ROWS, t.head, t.batch, owned_there(memory));
            copy_rows<GROUP_ROWS>(memory + MATRIX_BYTES + i * OWN_BYTES, own_2, t.row + i * GROUP_ROWS, t.head, t.batch, owned_there(memory));
        }
        const int heads = BY_KEYS ? (int)s.group : 1;
        NO_UNROLL for (int of_head = 0; of_head < heads; of_head++) {
            const u32 head = BY_KEYS ? t.head * s.group + of_head : t.head / s.group;
            NO_UNROLL for (int i = 0; i < t.tiles; i++) {
                const int row = (t.first + i) * TILE_ROWS;
                barrier_wait(emptied(memory, at.slot), at.parity ^ 1);
                barrier_expect(filled(memory, at.slot, 0), TILE_BYTES + NUMBER_BYTES);
                copy_rows<TILE_ROWS>(tile_at(memory, at.slot, 0), streamed, row, head, t.batch, filled(memory, at.slot, 0));
                if (BY_KEYS) bulk_copy_1(numbers_at(memory, at.slot), numbers, ((t.batch * s.heads + head) * s.padded + row) * 2, filled(memory, at.slot, 0));
                barrier_expect(filled(memory, at.slot, 1), TILE_BYTES);
                copy_rows<TILE_ROWS>(tile_at(memory, at.slot, 1), streamed_2, row, head, t.batch, filled(memory, at.slot, 1));
                at.next();
            }
        }
    }
}

typedef float products[TILE_ROWS / 2];
typedef u32 operand[TILE_ROWS / 4];

// consumer is a warpgroup with its place in the ring.
struct consumer {
    u32 memory, own;
    int number;
    ring<STAGES> at;

    MEMBER void leave(u32 stage) const {
        if (thread_x() % 32 == 0) barrier_arrive(emptied(memory, stage));
    }
    // scores and gradients begin the products of owned rows and the two tiles of a stage.
    MEMBER void scores(products &s) const {
        barrier_wait(filled(memory, at.slot, 0), at.parity);
        multiply_across<TILE_ROWS>(s, own, tile_at(memory, at.slot, 0));
        group_commit();
    }
    MEMBER void gradients(products &d) const {
        barrier_wait(filled(memory, at.slot, 1), at.parity);
        multiply_across<TILE_ROWS>(d, own + MATRIX_BYTES, tile_at(memory, at.slot, 1));
        group_commit();
    }
    // Consumers issue products in turn: who is next waits at the barrier with its number.
    MEMBER void take_turn() const {
        if (TURNS) barrier_of<2 * GROUP>(1 + number);
    }
    MEMBER void give_turn() const {
        if (TURNS) arrive_at<2 * GROUP>(1 + (number == CONSUMERS - 1 ? 0 : number + 1));
    }
};

DEVICE void write(const consumer &c, const float (&x)[DIM / 2], float factor, element *to, strides by, u32 batch, u32 head, int first_row, int count) {
    write_group(to + batch * by.batch + head * by.head + first_row * by.row, by.row, c.memory + AT_OUT + c.number * OWN_BYTES, x, factor, factor,
                count - first_row);
}

}  // namespace

// own, own_2, streamed, streamed_2: the operands' memory, which the maps describe; numbers: pairs of numbers for each query, as DELTA writes them.
KERNEL BOUNDS2(THREADS, 1) void NAME(tensor_map map_own, tensor_map map_own_2, tensor_map map_streamed, tensor_map map_streamed_2, tensor_map map_numbers,
                                     const element *own, const element *own_2, const element *streamed, const element *streamed_2, const pair *numbers,
                                     element *d_first, element *d_second, strides of_first, strides of_second, u32 heads, u32 group, u32 queries, u32 keys,
                                     u32 causal, float scale, u32 padded, u32 blocks, u32 items) {
    const u32 memory = shared_address(group_memory());
    if (thread_x() == 0) {
        barrier_init(owned_there(memory), 1);
        barrier_init(owned_read(memory), CONSUMERS * 4);
        UNROLL for (int i = 0; i < STAGES; i++) {
            UNROLL for (int which = 0; which < 2; which++) barrier_init(filled(memory, i, which), 1);
            barrier_init(emptied(memory, i), CONSUMERS * 4);
        }
        shared_fence();
    }
    warp_barrier();
    barrier();
    const shape s = {heads, group, queries, keys, causal, padded, blocks, items};
    if (thread_x() >= PRODUCER) {
        registers_down<PRODUCER_REGISTERS>();
        if (thread_x() == PRODUCER)
            produce(s, PARAMETER_ADDRESS(NAME, 0), PARAMETER_ADDRESS(NAME, 1), PARAMETER_ADDRESS(NAME, 2), PARAMETER_ADDRESS(NAME, 3),
                    PARAMETER_ADDRESS(NAME, 4), memory);
        return;
    }
    registers_up<CONSUMER_REGISTERS>();
    const int lane = thread_x() % 32, row_in = thread_x() % GROUP / 32 * 16, shift = (int)keys - (int)queries;
    consumer c;
    c.memory = memory, c.number = __nvvm_shfl_sync_idx_i32(-1, thread_x() / GROUP, 0, 31), c.own = memory + c.number * OWN_BYTES;
    const float scale_of_two = scale * LOG2_E;
    if (TURNS && c.number == CONSUMERS - 1) arrive_at<2 * GROUP>(1);
    u32 turn = 0;
    NO_UNROLL for (u32 n = 0;; n++) {
        const task t(s, n);
        if (!t.exists) break;
        if (t.row < 0) continue;
        const int first_row = t.row + c.number * GROUP_ROWS, row = first_row + row_in + lane / 4;
#if BY_KEYS
        float dk[DIM / 2], dv[DIM / 2];
        UNROLL for (int i = 0; i < DIM / 2; i++) dk[i] = dv[i] = 0;
        if (t.tiles > 0) {
            // The first query that sees a row, and the first one that sees all rows of the warpgroup.
            const int limit[2] = {causal ? row - shift : 0, causal ? row + 8 - shift : 0}, seen_by = causal ? first_row + GROUP_ROWS - 1 - shift : 0;
            barrier_wait(owned_there(memory), turn++ & 1);
            products p, d;
            operand a;
            u32 before = 0;
            int tile_row = t.first * TILE_ROWS, left = t.tiles;
            NO_UNROLL for (int i = t.all(s); i > 0; i--) {
                c.take_turn();
                group_fence();
                c.scores(p);
                c.gradients(d);
                c.give_turn();
                group_wait<1>();  // and of all products before
                settle(p), settle(dk);
                if (i < t.all(s)) c.leave(before);
                before = c.at.slot;
                const u32 numbers_of = numbers_at(memory, c.at.slot) + lane % 4 * 16;
                UNROLL for (int j = 0; j < TILE_ROWS / 8; j++) {
                    UNROLL for (int e = 0; e < 2; e++) {
                        const float log = shared_at<float>(numbers_of + 64 * j + 8 * e)[0];
                        UNROLL for (int half = 0; half < 2; half++) {
                            float &x = p[4 * j + 2 * half + e];
                            x = power_of_two(fused(x, scale_of_two, log));
                        }
                    }
                }
                if (tile_row < seen_by) {
                    UNROLL for (int j = 0; j < TILE_ROWS / 2; j++) {
                        if (tile_row + j / 4 * 8 + lane % 4 * 2 + j % 2 < limit[j / 2 % 2]) p[j] = 0;
                    }
                }
                round(a, p);
                settle(a), settle(dv);
                group_fence();
                multiply_down<TILE_ROWS>(dv, a, tile_at(memory, c.at.slot, 1));
                group_commit();
                group_wait<1>();
                settle(d);
                UNROLL for (int j = 0; j < TILE_ROWS / 8; j++) {
                    UNROLL for (int e = 0; e < 2; e++) {
                        const float delta = shared_at<float>(numbers_of + 64 * j + 8 * e)[1];
                        UNROLL for (int half = 0; half < 2; half++) {
                            const int x = 4 * j + 2 * half + e;
                            d[x] = p[x] * (d[x] - delta);
                        }
                    }
                }
                if (tile_row < seen_by) {
                    UNROLL for (int j = 0; j < TILE_ROWS / 2; j++) {
                        if (tile_row + j / 4 * 8 + lane % 4 * 2 + j % 2 < limit[j / 2 % 2]) d[j] = 0;
                    }
                }
                group_wait<0>();  // else ptxas has each product wait for the one before: registers for one are written while others are on their way
                settle(dv), settle(d);
                round(a, d);
                settle(a);
                group_fence();
                multiply_down<TILE_ROWS>(dk, a, tile_at(memory, c.at.slot, 0));
                group_commit();
                c.at.next();
                tile_row += TILE_ROWS;
                if (--left == 0) left = t.tiles, tile_row = t.first * TILE_ROWS;  // of the next head
            }
            group_wait<0>();
            settle(dk);
            c.leave(before);
            if (lane == 0) barrier_arrive(owned_read(memory));
        }
        write(c, dk, scale, d_first, of_first, t.batch, t.head, first_row, (int)keys);
        write(c, dv, 1, d_second, of_second, t.batch, t.head, first_row, (int)keys);
#else
        float dq[DIM / 2];
        UNROLL for (int i = 0; i < DIM / 2; i++) dq[i] = 0;
        if (t.tiles > 0) {
            // The first key that a row does not see, and that some row of the warpgroup does not see.
            float log[2], delta[2];
            int limit[2];
            UNROLL for (int half = 0; half < 2; half++) {
                const int r = row + 8 * half;
                const pair x = numbers[(i64)(t.batch * heads + t.head) * padded + r];
                log[half] = float_of(x.x[0]), delta[half] = float_of(x.x[1]);
                limit[half] = causal ? (int)smaller((int)keys, r + shift + 1) : (int)keys;
            }
            const int seen_by_all = causal ? (int)smaller((int)keys, first_row + shift + 1) : (int)keys;
            barrier_wait(owned_there(memory), turn++ & 1);
            products p, d;
            operand a;
            u32 before = 0;
            int tile_row = 0;
#define PROBABILITIES                                                                                          \
    UNROLL for (int j = 0; j < TILE_ROWS / 2; j++) p[j] = power_of_two(fused(p[j], scale_of_two, log[j / 2 % 2]));
#define DIFFERENCES                                                                                             \
    UNROLL for (int j = 0; j < TILE_ROWS / 2; j++) d[j] = p[j] * (d[j] - delta[j / 2 % 2]);                      \
    if (tile_row + TILE_ROWS > seen_by_all) {                                                                    \
        UNROLL for (int j = 0; j < TILE_ROWS / 2; j++) {                                                         \
            if (tile_row + j / 4 * 8 + lane % 4 * 2 + j % 2 >= limit[j / 2 % 2]) d[j] = 0;                       \
        }                                                                                                        \
    }
            group_fence();
            c.scores(p);
            c.gradients(d);
            group_wait<0>();
            settle(p), settle(d);
            PROBABILITIES
            DIFFERENCES
            before = c.at.slot;
            c.at.next();
            round(a, d);
            NO_UNROLL for (int i = t.tiles - 1; i > 0; i--) {
                tile_row += TILE_ROWS;
                c.take_turn();
                settle(dq), settle(a);
                group_fence();
                c.scores(p);
                c.gradients(d);
                multiply_down<TILE_ROWS>(dq, a, tile_at(memory, before, 0));
                group_commit();
                c.give_turn();
                group_wait<2>();
                settle(p);
                PROBABILITIES
                group_wait<1>();
                settle(p), settle(d);
                DIFFERENCES
                group_wait<0>();
                settle(dq), settle(d);
                c.leave(before);
                before = c.at.slot;
                c.at.next();
                round(a, d);
            }
            if (lane == 0) barrier_arrive(owned_read(memory));
            settle(dq), settle(a);
            group_fence();
            multiply_down<TILE_ROWS>(dq, a, tile_at(memory, before, 0));
            group_commit();
            group_wait<0>();
            settle(dq);
            c.leave(before);
        }
        write(c, dq, scale, d_first, of_first, t.batch, t.head, first_row, (int)queries);
#endif
    }
    if (TURNS && c.number == 0) barrier_of<2 * GROUP>(1);  // nobody arrives at a barrier that is not waited at
}

#if !BY_KEYS
// Two numbers for each query: the summand of exponents of base 2, and the sum of the output times its gradient. As many lanes as a row has vectors add up one.
// Rows from queries to padded have probabilities 0.
KERNEL BOUNDS(THREADS) void DELTA(const element *o, const element *grad, const float *lse, pair *numbers, strides of_o, strides of_grad, strides of_lse,
                                  u32 heads, u32 queries, u32 padded, u32 rows) {
    const u32 vector = thread_x() % VECTORS, at = block_x() * (THREADS / VECTORS) + thread_x() / VECTORS;
    const u32 row = at < rows ? at : rows - 1, query = row % padded, head = row / padded % heads, batch = row / padded / heads;
    float sum = 0, log = -INFINITE;
    if (query < queries) {
        const quad x = *(const quad *)(o + batch * of_o.batch + head * of_o.head + query * of_o.row + vector * VECTOR);
        const quad y = *(const quad *)(grad + batch * of_grad.batch + head * of_grad.head + query * of_grad.row + vector * VECTOR);
        log = lse[batch * of_lse.batch + head * of_lse.head + query * of_lse.row];
        if (log != -INFINITE) log *= -LOG2_E;
        UNROLL for (int i = 0; i < 4; i++) {
            sum = fused(wide((u16)x.x[i]), wide((u16)y.x[i]), sum);
            sum = fused(wide((u16)(x.x[i] >> 16)), wide((u16)(y.x[i] >> 16)), sum);
        }
    }
    UNROLL for (int distance = VECTORS / 2; distance > 0; distance /= 2) sum += from_lane(sum, distance);
    if (at < rows && vector == 0) numbers[row] = {{bits_of(log), bits_of(sum)}};
}
#endif
