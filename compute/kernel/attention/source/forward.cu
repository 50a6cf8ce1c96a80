// The forward pass (FlashAttention-2, Dao 2023, algorithm 1): a block has rows of queries of one head and goes over tiles of keys and values, which
// asynchronous copies fetch one tile ahead. Softmax is rescaled from tile to tile, in base 2: the scale includes the logarithm of e.
//
// More macros than attend.h has: DOWN: by how many times 16 rows a warp has; KEYS: of a tile; BLOCKS: how many a multiprocessor is to run at once;
// SPLIT: 1 where all warps have the same 16 rows, and each a part of every tile of keys. Blocks then divide the keys, too, and have the rows of all
// heads that share keys: row r is query r / group of head r % group.
#include "attend.h"

#define KEEP (DIM == 64)  // fragments of queries stay in registers

namespace {

enum {
    ROWS = SPLIT ? 16 : 16 * DOWN * WARPS, WARP_KEYS = SPLIT ? KEYS / WARPS : KEYS, ACROSS = WARP_KEYS / 8,
    TILE = KEYS * DIM * 2, STAGE = 2 * TILE,
};
static_assert(WARP_KEYS % 16 == 0, "a fragment of probabilities has 16 keys");

// state has the sums of a warp over the keys so far, for 16 * DOWN rows.
struct state {
    sums out[DOWN][COLUMNS_DIM];
    float greatest[DOWN][2], sum[DOWN][2];  // of each half of rows; sum: of this lane's columns

    MEMBER state() {
        UNROLL for (int i = 0; i < DOWN; i++) {
            clear(out[i]);
            UNROLL for (int half = 0; half < 2; half++) greatest[i][half] = -INFINITE, sum[i][half] = 0;
        }
    }
    // base is subtracted from scaled scores. Rows without a score above -Inf subtract nothing.
    MEMBER float base(int i, int half, float scale) const { return greatest[i][half] == -INFINITE ? 0 : greatest[i][half] * scale; }

    // softmax makes probabilities of scores, and rescales the sums.
    MEMBER void softmax(sums (&s)[DOWN][ACROSS], float scale) {
        UNROLL for (int i = 0; i < DOWN; i++) {
            UNROLL for (int half = 0; half < 2; half++) {
                const float before = greatest[i][half];
                float now = before;
                UNROLL for (int j = 0; j < ACROSS; j++) now = greater(now, greater(s[i][j][2 * half], s[i][j][2 * half + 1]));
                greatest[i][half] = row_max(now);
                const float from = base(i, half, scale), factor = power_of_two(before * scale - from);
                sum[i][half] *= factor;
                UNROLL for (int j = 0; j < COLUMNS_DIM; j++) out[i][j][2 * half] *= factor, out[i][j][2 * half + 1] *= factor;
                UNROLL for (int j = 0; j < ACROSS; j++) {
                    UNROLL for (int e = 2 * half; e < 2 * half + 2; e++) {
                        s[i][j][e] = power_of_two(fused(s[i][j][e], scale, -from));
                        sum[i][half] += s[i][j][e];
                    }
                }
            }
        }
    }
    // add adds the products of probabilities and values.
    MEMBER void add(const sums (&s)[DOWN][ACROSS], tile values, int first) {
        UNROLL for (int k = 0; k < WARP_KEYS / 16; k++) {
            u32 p[DOWN][4];
            UNROLL for (int i = 0; i < DOWN; i++) sums_fragment(p[i], s[i][2 * k], s[i][2 * k + 1]);
            UNROLL for (int j = 0; j < COLUMNS_DIM; j += 2) {
                u32 v[2][2];
                down_fragments(v, values, first + 16 * k, j);
                UNROLL for (int i = 0; i < DOWN; i++) multiply(out[i][j], p[i], v[0]), multiply(out[i][j + 1], p[i], v[1]);
            }
        }
    }
};

// add_scores adds the products of 16 columns of queries and of keys.
DEVICE void add_scores(sums (&s)[DOWN][ACROSS], const u32 (&q)[DOWN][4], tile keys, int first, int step) {
    UNROLL for (int j = 0; j < ACROSS; j += 2) {
        u32 b[2][2];
        across_fragments(b, keys, first + 8 * j, step);
        UNROLL for (int i = 0; i < DOWN; i++) multiply(s[i][j], q[i], b[0]), multiply(s[i][j + 1], q[i], b[1]);
    }
}

#if SPLIT
// lookup has the pages of this thread's rows in the next tile: they are read a tile ahead, so that no copy waits for the table.
struct lookup {
    enum { AT_ONCE = THREADS / VECTORS, EACH = KEYS / AT_ONCE };
    u32 page[EACH];

    MEMBER void read(const rows &from, int first) {
        const int row = first + (int)(thread_x() / VECTORS);
        UNROLL for (int i = 0; i < EACH; i++) page[i] = row + i * AT_ONCE < from.count ? from.page_of(row + i * AT_ONCE) : 0;
    }
    MEMBER void fetch(tile to, const rows &from, int first) const {
        const int vector = thread_x() % VECTORS, row = thread_x() / VECTORS, left = from.count - first - row;
        to += place(row, vector);
        UNROLL for (int i = 0; i < EACH; i++) {
            const bool exists = i * AT_ONCE < left;
            const element *at = exists ? from.in_page(page[i], first + row + i * AT_ONCE) : from.at;
            copy16_to(to + i * AT_ONCE * (2 * DIM), at + vector * VECTOR, exists ? 16 : 0);
        }
    }
};
#else
struct lookup {
    MEMBER void read(const rows &, int) {}
};
#endif

// fetch_both begins the copies of a tile of keys and values to a stage.
DEVICE void fetch_both(tile stage, const rows &k, const rows &v, lookup &pages, int first) {
#if SPLIT
    if (k.paged) {
        pages.fetch(stage, k, first);
        pages.fetch(stage + TILE, v, first);
        pages.read(k, first + KEYS);
        return;
    }
#endif
    fetch<KEYS>(stage, k, first);
    fetch<KEYS>(stage + TILE, v, first);
}

// A result over parts of the keys: o has results of DIM elements each, and logs the logarithms, of base 2, of the sums that they were divided by.
struct merged {
    float base, total;
    MEMBER merged(const float *logs, i64 step, int parts) {
        float greatest = -INFINITE;
        NO_UNROLL for (int p = 0; p < parts; p++) greatest = greater(greatest, logs[p * step]);
        base = greatest == -INFINITE ? 0 : greatest, total = 0;
        NO_UNROLL for (int p = 0; p < parts; p++) total += power_of_two(logs[p * step] - base);
    }
    MEMBER float logarithm() const { return base + logarithm_of_two(total); }
    // four adds up four neighbors.
    MEMBER quad four(const float *o, i64 step, const float *logs, i64 log_step, int parts) const {
        float x[4] = {0, 0, 0, 0};
        const float factor = total == 0 ? 0 : 1 / total;
        NO_UNROLL for (int p = 0; p < parts; p++) {
            const float weight = power_of_two(logs[p * log_step] - base) * factor;
            const quad q = *(const quad *)(o + p * step);
            UNROLL for (int e = 0; e < 4; e++) x[e] = fused(weight, float_of(q.x[e]), x[e]);
        }
        return {{bits_of(x[0]), bits_of(x[1]), bits_of(x[2]), bits_of(x[3])}};
    }
};
DEVICE pair narrow(const quad &q) { return {{packed(float_of(q.x[0]), float_of(q.x[1])), packed(float_of(q.x[2]), float_of(q.x[3]))}}; }

}  // namespace

#define PARAMETERS                                                                                                                                    \
    const element *q, const element *k, const element *v, element *o, float *lse, const u32 *query_offsets, const u32 *key_offsets,                    \
        const u32 *key_lengths, const u32 *table, strides of_q, strides of_k, strides of_v, strides of_o, strides of_lse, paging pages, u32 heads,     \
        u32 group, u32 queries, u32 keys, u32 all_queries, u32 all_keys, u32 causal, float scale
#define SEQUENCE                                                                                                                                      \
    const span of_queries = span_of(query_offsets, batch, queries, all_queries);                                                                       \
    span of_keys = span_of(key_offsets, batch, keys, all_keys);                                                                                        \
    if (key_lengths) {                                                                                                                                 \
        if (key_lengths[batch] > keys) __builtin_trap();                                                                                               \
        of_keys.count = (int)key_lengths[batch];                                                                                                       \
    }

KERNEL BOUNDS2(THREADS, BLOCKS) void NAME(PARAMETERS, float *parts_o, float *parts_log, u32 blocks, u32 parts) {
    // The last rows, which see the most keys, begin first.
    const u32 block = blocks - 1 - block_x() % blocks, part = block_x() / blocks % parts;
    const u32 key_heads = heads / group, of_heads = SPLIT ? key_heads : heads;
    const u32 head = block_x() / blocks / parts % of_heads, batch = block_x() / blocks / parts / of_heads, packing = SPLIT ? group : 1;
    SEQUENCE
    const int first_row = (int)block * ROWS, count = of_queries.count * (int)packing, shift = of_keys.count - of_queries.count;
    if (first_row >= count) return;

    const tile tile_q = shared_address(group_memory()), stages = tile_q + ROWS * DIM * 2;
    const u32 key_head = SPLIT ? head : head / group;
    rows from_k = rows_of(k, of_k, table ? 0 : batch, key_head, of_keys), from_v = rows_of(v, of_v, table ? 0 : batch, key_head, of_keys);
    from_k.paged = from_v.paged = table != 0;
    from_k.table = from_v.table = table + batch * pages.width;
    from_k.page_step = of_k.batch, from_v.page_step = of_v.batch;
    from_k.pages = from_v.pages = pages;
    const element *from_q = q + batch * of_q.batch + (i64)head * packing * of_q.head + of_queries.first * of_q.row;
    const int warp = thread_x() / 32, lane = thread_x() % 32;
    const int row = SPLIT ? 0 : 16 * DOWN * warp, first_key = SPLIT ? WARP_KEYS * warp : 0;

    // Keys of this block: up to the last that its last row sees, in whole tiles for each part.
    const int last_row = ((int)smaller(first_row + ROWS, count) - 1) / (int)packing;
    int seen = causal ? (int)smaller(last_row + shift + 1, of_keys.count) : of_keys.count;
    if (seen < 0) seen = 0;
    const int tiles = (seen + KEYS - 1) / KEYS, each = (tiles + (int)parts - 1) / (int)parts;
    const int first = (int)part * each, last = (int)smaller(first + each, tiles);

    {
        const int vector = lane % VECTORS;
        NO_UNROLL for (int i = thread_x() / VECTORS; i < ROWS; i += THREADS / VECTORS) {
            const int r = first_row + i;
            const bool exists = r < count;
            const element *at = exists ? from_q + r % packing * of_q.head + (i64)(r / packing) * of_q.row + vector * VECTOR : from_q;
            copy16_to(tile_q + place(i, vector), at, exists ? 16 : 0);
        }
    }
    copies_commit();
    lookup pages_ahead;
    if (first < last) {
        if (from_k.paged) pages_ahead.read(from_k, first * KEYS);
        fetch_both(stages, from_k, from_v, pages_ahead, first * KEYS);
    }
    copies_commit();
#if KEEP
    copies_wait<1>();
    barrier();
    u32 kept[STEPS][DOWN][4];
    UNROLL for (int k = 0; k < STEPS; k++) {
        UNROLL for (int i = 0; i < DOWN; i++) rows_fragment(kept[k][i], tile_q, row + 16 * i, k);
    }
#endif

    state x;
    NO_UNROLL for (int n = first; n < last; n++) {
        const tile stage = stages + (n - first) % 2 * STAGE;
        copies_wait<0>();
        barrier();  // the tile is there for all, and nobody reads the one before any more, whose stage is filled next
        if (n + 1 < last) fetch_both(stages + (n + 1 - first) % 2 * STAGE, from_k, from_v, pages_ahead, (n + 1) * KEYS);
        copies_commit();
        sums s[DOWN][ACROSS];
        UNROLL for (int i = 0; i < DOWN; i++) clear(s[i]);
#if KEEP
        UNROLL for (int k = 0; k < STEPS; k++) add_scores(s, kept[k], stage, first_key, k);
#else
        UNROLL_4 for (int k = 0; k < STEPS; k++) {
            u32 fragment[DOWN][4];
            UNROLL for (int i = 0; i < DOWN; i++) rows_fragment(fragment[i], tile_q, row + 16 * i, k);
            add_scores(s, fragment, stage, first_key, k);
        }
#endif
        const int key = n * KEYS + first_key;
        if (key + WARP_KEYS > (causal ? smaller(of_keys.count, (first_row + row) / (int)packing + shift + 1) : of_keys.count)) {
            UNROLL for (int i = 0; i < DOWN; i++) {
                UNROLL for (int half = 0; half < 2; half++) {
                    const int r = (first_row + row + 16 * i + 8 * half + lane / 4) / (int)packing;
                    const int limit = causal ? (int)smaller(of_keys.count, r + shift + 1) : of_keys.count;
                    UNROLL for (int j = 0; j < ACROSS; j++) {
                        UNROLL for (int e = 0; e < 2; e++) {
                            if (key + 8 * j + lane % 4 * 2 + e >= limit) s[i][j][2 * half + e] = -INFINITE;
                        }
                    }
                }
            }
        }
        x.softmax(s, scale);
        x.add(s, stage + TILE, first_key);
    }

    float factor[DOWN][2], logarithm[DOWN][2];
    UNROLL for (int i = 0; i < DOWN; i++) {
        UNROLL for (int half = 0; half < 2; half++) {
            const float sum = row_sum(x.sum[i][half]);
            factor[i][half] = sum == 0 ? 0 : 1 / sum;
            logarithm[i][half] = x.base(i, half, scale) + logarithm_of_two(sum);
        }
    }
#if SPLIT
    // Warps have different keys: their results are merged in shared memory, once all have read the last tile.
    enum { PITCH = DIM + 8 };
    float *all = (float *)(group_memory() + ROWS * DIM * 2), *logs = all + WARPS * ROWS * PITCH;
    barrier();
    UNROLL for (int half = 0; half < 2; half++) {
        const int r = warp * ROWS + 8 * half + lane / 4;
        UNROLL for (int j = 0; j < COLUMNS_DIM; j++) {
            *(pair *)(all + r * PITCH + 8 * j + lane % 4 * 2) = {{bits_of(x.out[0][j][2 * half] * factor[0][half]), bits_of(x.out[0][j][2 * half + 1] * factor[0][half])}};
        }
        if (lane % 4 == 0) logs[r] = logarithm[0][half];
    }
    barrier();
    NO_UNROLL for (int i = thread_x(); i < ROWS * DIM / 4; i += THREADS) {
        const int r = i / (DIM / 4), at = first_row + r, column = i % (DIM / 4) * 4;
        if (at >= count) break;
        const merged m(logs + r, ROWS, WARPS);
        const quad sum = m.four(all + r * PITCH + column, ROWS * PITCH, logs + r, ROWS, WARPS);
        const int of_head = at % (int)group, query = at / (int)group;
        if (parts == 1) {
            const i64 its_head = (i64)head * group + of_head, its_row = of_queries.first + query;
            *(pair *)(o + batch * of_o.batch + its_head * of_o.head + its_row * of_o.row + column) = narrow(sum);
            if (lse && column == 0) lse[batch * of_lse.batch + its_head * of_lse.head + its_row * of_lse.row] = m.logarithm() * LN_2;
        } else {
            // In the order of combine: of part, batch, head and query.
            const i64 result = (((i64)part * (grid_x() / (blocks * parts * of_heads)) + batch) * heads + head * group + of_head) * queries + query;
            *(quad *)(parts_o + result * DIM + column) = sum;
            if (column == 0) parts_log[result] = m.logarithm();
        }
    }
#else
    // A warp stores its rows where it read its queries from.
    const i64 to_row = of_queries.first + first_row;
    element *to = o + batch * of_o.batch + head * of_o.head + to_row * of_o.row;
    warp_barrier();  // all lanes have read the queries: without keys no other barrier says so
    UNROLL for (int i = 0; i < DOWN; i++) put(tile_q, row + 16 * i, x.out[i], factor[i][0], factor[i][1]);
    warp_barrier();
    UNROLL for (int i = 0; i < DOWN; i++) {
        store(to, of_o.row, tile_q, row + 16 * i, count - first_row);
        UNROLL for (int half = 0; half < 2; half++) {
            const int r = row + 16 * i + 8 * half + lane / 4;
            if (lse && lane % 4 == 0 && first_row + r < count)
                lse[batch * of_lse.batch + head * of_lse.head + (to_row + r) * of_lse.row] = logarithm[i][half] * LN_2;
        }
    }
#endif
}

#if SPLIT
// Adds up the parts of each row: a thread has four elements.
KERNEL BOUNDS(THREADS) void COMBINE(element *o, float *lse, const u32 *query_offsets, strides of_o, strides of_lse, u32 heads, u32 queries, u32 all_queries,
                                    u32 rows, const float *parts_o, const float *parts_log, u32 parts) {
    const u32 at = block_x() * THREADS + thread_x(), row = at / (DIM / 4), column = at % (DIM / 4) * 4;
    if (row >= rows) return;
    const u32 query = row % queries, head = row / queries % heads, batch = row / queries / heads;
    const span of_queries = span_of(query_offsets, batch, queries, all_queries);
    if ((int)query >= of_queries.count) return;
    const merged m(parts_log + row, rows, (int)parts);
    const i64 its_row = of_queries.first + query;
    *(pair *)(o + batch * of_o.batch + head * of_o.head + its_row * of_o.row + column) =
        narrow(m.four(parts_o + (i64)row * DIM + column, (i64)rows * DIM, parts_log + row, rows, (int)parts));
    if (lse && column == 0) lse[batch * of_lse.batch + head * of_lse.head + its_row * of_lse.row] = m.logarithm() * LN_2;
}
#endif
