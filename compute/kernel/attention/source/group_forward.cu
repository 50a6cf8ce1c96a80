// The forward pass by warpgroups (FlashAttention-3, Shah and others 2024, algorithm 2), for compute capability 9.0 alone: each consumer has 64 rows of
// queries. All go over the same tiles of keys and values, from the last to the first, which a producer brings to a ring of slots. The matrix units compute the
// scores of a tile and add the values of the one before; a consumer's softmax runs while they work.
//
// A block computes one tile of rows after the other. Under the causal mask it has the tile with the fewest keys after the one with the most, so that all
// blocks have the same work. Rows beyond the edges arrive as 0.
//
// More macros than group.h has: KEYS: of a tile; SLOTS; TURNS: 1 where consumers take turns to issue products.
#include "group.h"

namespace {

enum {
    ROWS = GROUP_ROWS * CONSUMERS, OWN_BYTES = GROUP_ROWS * DIM * 2, QUERY_BYTES = ROWS * DIM * 2, SLOT_BYTES = KEYS * DIM * 2,
    AT_SLOTS = 2 * QUERY_BYTES, AT_BARRIERS = AT_SLOTS + SLOTS * SLOT_BYTES,  // after queries and outputs
};

// The barriers: of queries, and of slots.
DEVICE u32 queries_there(u32 memory) { return memory + AT_BARRIERS; }
DEVICE u32 queries_read(u32 memory) { return memory + AT_BARRIERS + 8; }
DEVICE u32 filled(u32 memory, u32 slot) { return memory + AT_BARRIERS + 16 + slot * 8; }
DEVICE u32 emptied(u32 memory, u32 slot) { return memory + AT_BARRIERS + 16 + (SLOTS + slot) * 8; }
DEVICE u32 slot_at(u32 memory, u32 slot) { return memory + AT_SLOTS + slot * SLOT_BYTES; }

struct shape {
    u32 heads, group, queries, keys, causal, blocks, items;
};

// task is a tile of rows. Number n of a block is half n % 2 of an item under the causal mask.
struct task {
    u32 head, batch;
    int row, tiles;
    bool exists;

    MEMBER task(const shape &s, u32 n) {
        const u32 halves = s.causal ? 2 : 1, item = block_x() + n / halves * grid_x(), each = (s.blocks + halves - 1) / halves, other = item / each;
        const u32 in = item % each, block = n % halves ? in : s.blocks - 1 - in;
        exists = item < s.items;
        head = other % s.heads, batch = other / s.heads, row = (int)block * ROWS;
        int seen = (int)s.keys;
        if (s.causal) seen = (int)smaller(smaller(row + ROWS, (int)s.queries) + (int)s.keys - (int)s.queries, seen);
        tiles = seen > 0 ? (seen + KEYS - 1) / KEYS : 0;
        if (n % halves && s.blocks - 1 - in == in) row = -1;  // it was the first half
    }
};

DEVICE void produce(const shape &s, u64 map_q, u64 map_k, u64 map_v, u32 memory) {
    ring<SLOTS> at;
    u32 turn = 0;
    NO_UNROLL for (u32 n = 0;; n++) {
        const task t(s, n);
        if (!t.exists) break;
        if (t.row < 0 || t.tiles == 0) continue;
        barrier_wait(queries_read(memory), (turn++ & 1) ^ 1);
        barrier_expect(queries_there(memory), QUERY_BYTES);
        UNROLL for (int i = 0; i < CONSUMERS; i++)
            copy_rows<GROUP_ROWS>(memory + i * OWN_BYTES, map_q, t.row + i * GROUP_ROWS, t.head, t.batch, queries_there(memory));
        // The keys of a tile, then the values of the one before: as they are used.
        const u32 head = t.head / s.group;
        NO_UNROLL for (int i = t.tiles; i >= 0; i--) {
            if (i > 0) {
                barrier_wait(emptied(memory, at.slot), at.parity ^ 1);
                barrier_expect(filled(memory, at.slot), SLOT_BYTES);
                copy_rows<KEYS>(slot_at(memory, at.slot), map_k, (i - 1) * KEYS, head, t.batch, filled(memory, at.slot));
                at.next();
            }
            if (i < t.tiles) {
                barrier_wait(emptied(memory, at.slot), at.parity ^ 1);
                barrier_expect(filled(memory, at.slot), SLOT_BYTES);
                copy_rows<KEYS>(slot_at(memory, at.slot), map_v, i * KEYS, head, t.batch, filled(memory, at.slot));
                at.next();
            }
        }
    }
}

// state has the sums of a thread's two rows, or of its columns of them.
struct state {
    float out[DIM / 2], greatest[2], sum[2];

    MEMBER state() {
        UNROLL for (int i = 0; i < DIM / 2; i++) out[i] = 0;
        UNROLL for (int half = 0; half < 2; half++) greatest[half] = -INFINITE, sum[half] = 0;
    }
    MEMBER float base(int half, float scale) const { return greatest[half] == -INFINITE ? 0 : greatest[half] * scale; }

    // softmax makes probabilities of scores, and rescales the sum. The output is to be multiplied by the factors.
    MEMBER void softmax(float (&s)[KEYS / 2], float (&factor)[2], float scale) {
        UNROLL for (int half = 0; half < 2; half++) {
            const float before = greatest[half];
            float now[2] = {before, before};
            UNROLL for (int j = 0; j < KEYS / 8; j++) {
                now[0] = greater(now[0], s[4 * j + 2 * half]);
                now[1] = greater(now[1], s[4 * j + 2 * half + 1]);
            }
            greatest[half] = row_max(greater(now[0], now[1]));
            const float from = base(half, scale);
            factor[half] = power_of_two(before * scale - from);
            float total[2] = {sum[half] * factor[half], 0};
            UNROLL for (int j = 0; j < KEYS / 8; j++) {
                UNROLL for (int e = 0; e < 2; e++) {
                    float &p = s[4 * j + 2 * half + e];
                    p = power_of_two(fused(p, scale, -from));
                    total[e] += p;
                }
            }
            sum[half] = total[0] + total[1];
        }
    }
    MEMBER void rescale(const float (&factor)[2]) {
        UNROLL for (int i = 0; i < DIM / 2; i++) out[i] *= factor[i / 2 % 2];
    }
};

// hide makes the scores of keys -Inf that a row does not see: those from its limit on. key is the thread's first one.
DEVICE void hide(float (&s)[KEYS / 2], int key, const int (&limit)[2]) {
    UNROLL for (int i = 0; i < KEYS / 2; i++) {
        if (key + i / 4 * 8 + i % 2 >= limit[i / 2 % 2]) s[i] = -INFINITE;
    }
}

DEVICE void leave(u32 barrier) {
    if (thread_x() % 32 == 0) barrier_arrive(barrier);
}

}  // namespace

// q, k and v are the operands' memory, which the maps describe.
KERNEL BOUNDS2(THREADS, 1) void NAME(tensor_map map_q, tensor_map map_k, tensor_map map_v, const element *q, const element *k, const element *v, element *o,
                                     float *lse, strides of_o, strides of_lse, u32 heads, u32 group, u32 queries, u32 keys, u32 causal, float scale,
                                     u32 blocks, u32 items) {
    const u32 memory = shared_address(group_memory());
    if (thread_x() == 0) {
        barrier_init(queries_there(memory), 1);
        barrier_init(queries_read(memory), CONSUMERS * 4);
        UNROLL for (int i = 0; i < SLOTS; i++) barrier_init(filled(memory, i), 1), barrier_init(emptied(memory, i), CONSUMERS * 4);
        shared_fence();
    }
    warp_barrier();
    barrier();
    const shape s = {heads, group, queries, keys, causal, blocks, items};
    if (thread_x() >= PRODUCER) {
        registers_down<PRODUCER_REGISTERS>();
        if (thread_x() == PRODUCER) produce(s, PARAMETER_ADDRESS(NAME, 0), PARAMETER_ADDRESS(NAME, 1), PARAMETER_ADDRESS(NAME, 2), memory);
    } else {
        registers_up<CONSUMER_REGISTERS>();
        const int number = __nvvm_shfl_sync_idx_i32(-1, thread_x() / GROUP, 0, 31), lane = thread_x() % 32, row_in = thread_x() % GROUP / 32 * 16;
        const u32 own = memory + number * OWN_BYTES;
        const tile own_out = memory + QUERY_BYTES + number * OWN_BYTES;
        // Who issues products next waits at the barrier with its number.
        if (TURNS && number == CONSUMERS - 1) arrive_at<2 * GROUP>(1);
        ring<SLOTS> at;
        u32 turn = 0;
        NO_UNROLL for (u32 n = 0;; n++) {
            const task t(s, n);
            if (!t.exists) break;
            if (t.row < 0) continue;
            const int row = t.row + number * GROUP_ROWS + row_in + lane / 4, column = lane % 4 * 2;
            int limit[2];
            UNROLL for (int half = 0; half < 2; half++)
                limit[half] = causal ? (int)smaller((int)keys, row + 8 * half + (int)keys - (int)queries + 1) : (int)keys;
            // A tile that ends at this key or before it is seen by all rows of the warpgroup.
            const int seen_by_all = causal ? (int)smaller((int)keys, t.row + number * GROUP_ROWS + (int)keys - (int)queries + 1) : (int)keys;
            state x;
            if (t.tiles > 0) {
                float sums[KEYS / 2];
                u32 p[KEYS / 4];
                float factor[2];
                barrier_wait(queries_there(memory), turn++ & 1);
                barrier_wait(filled(memory, at.slot), at.parity);
                group_fence();
                multiply_across<KEYS>(sums, own, slot_at(memory, at.slot));
                group_commit();
                group_wait<0>();
                settle(sums);
                leave(emptied(memory, at.slot));
                at.next();
                int first = (t.tiles - 1) * KEYS;
                if (first + KEYS > seen_by_all) hide(sums, first + column, limit);
                x.softmax(sums, factor, scale);
                round(p, sums);
                NO_UNROLL while (first > 0) {
                    first -= KEYS;
                    barrier_wait(filled(memory, at.slot), at.parity);
                    if (TURNS) barrier_of<2 * GROUP>(1 + number);
                    settle(x.out), settle(p);
                    group_fence();
                    multiply_across<KEYS>(sums, own, slot_at(memory, at.slot));
                    group_commit();
                    const u32 slot_of_keys = at.slot;
                    at.next();
                    barrier_wait(filled(memory, at.slot), at.parity);
                    multiply_down<KEYS>(x.out, p, slot_at(memory, at.slot));
                    group_commit();
                    if (TURNS) arrive_at<2 * GROUP>(1 + (number == CONSUMERS - 1 ? 0 : number + 1));
                    group_wait<1>();
                    settle(sums);
                    leave(emptied(memory, slot_of_keys));
                    if (first + KEYS > seen_by_all) hide(sums, first + column, limit);
                    x.softmax(sums, factor, scale);
                    group_wait<0>();
                    settle(x.out), settle(sums);
                    leave(emptied(memory, at.slot));
                    at.next();
                    x.rescale(factor);
                    round(p, sums);
                }
                leave(queries_read(memory));
                barrier_wait(filled(memory, at.slot), at.parity);
                settle(x.out), settle(p);
                group_fence();
                multiply_down<KEYS>(x.out, p, slot_at(memory, at.slot));
                group_commit();
                group_wait<0>();
                settle(x.out);
                leave(emptied(memory, at.slot));
                at.next();
            }
            float by[2], logarithm[2];
            UNROLL for (int half = 0; half < 2; half++) {
                const float sum = row_sum(x.sum[half]);
                by[half] = sum == 0 ? 0 : 1 / sum;
                logarithm[half] = x.base(half, scale) + logarithm_of_two(sum);
            }
            const int first_row = t.row + number * GROUP_ROWS;
            write_group(o + t.batch * of_o.batch + t.head * of_o.head + first_row * of_o.row, of_o.row, own_out, x.out, by[0], by[1], (int)queries - first_row);
            UNROLL for (int half = 0; half < 2; half++) {
                if (lse && lane % 4 == 0 && row + 8 * half < (int)queries)
                    lse[t.batch * of_lse.batch + t.head * of_lse.head + (row + 8 * half) * of_lse.row] = logarithm[half] * LN_2;
            }
        }
        if (TURNS && number == 0) barrier_of<2 * GROUP>(1);  // nobody arrives at a barrier that is not waited at
    }
}
