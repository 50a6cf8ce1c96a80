// The backward pass (FlashAttention-2, Dao 2023, algorithm 2) without atomic operations: one kernel has rows of queries, goes over keys and sums up the
// gradient of the queries; the other has rows of keys, goes over queries and sums up the gradients of keys and values. Both compute the probabilities again from
// the logarithms of the sums that the forward pass left. The two are the same text: a block owns rows of two matrices, and two others stream past.
//
//                owned rows                  streamed rows
//   by queries   queries, output gradients   keys, values                  dQ = dS K
//   by keys      keys, values                queries, output gradients     dK = dS' Q, dV = P' dO
//
// dS = P (dP - delta), where dP is the product of output gradients and values, and delta the row sums of output times its gradient.
//
// More macros than attend.h has: BY_KEYS: 1 or 0; TILE_ROWS: of a streamed tile; BLOCKS; DELTA: the name of the kernel of delta, where BY_KEYS is 0.
#include "attend.h"

namespace {

enum {
    ROWS = 16 * WARPS, ACROSS = TILE_ROWS / 8, OWNED = ROWS * DIM * 2, TILE = TILE_ROWS * DIM * 2,
    STAGE = 2 * TILE + (BY_KEYS ? 2 * TILE_ROWS * 4 : 0),  // of two matrices, and of logarithms and deltas of queries
};

// negated_log makes of a logarithm of a sum the summand of exponents of base 2. A row without a sum has probabilities 0.
DEVICE float negated_log(float lse) { return lse == -INFINITE ? -INFINITE : -lse * LOG2_E; }

// add adds the products of sums, rounded, and a streamed tile.
DEVICE void add(sums (&to)[COLUMNS_DIM], const sums (&x)[ACROSS], tile streamed) {
    UNROLL for (int k = 0; k < TILE_ROWS / 16; k++) {
        u32 a[4];
        sums_fragment(a, x[2 * k], x[2 * k + 1]);
        UNROLL for (int j = 0; j < COLUMNS_DIM; j += 2) {
            u32 b[2][2];
            down_fragments(b, streamed, 16 * k, j);
            multiply(to[j], a, b[0]), multiply(to[j + 1], a, b[1]);
        }
    }
}

// multiply_tiles adds the products of 16 owned rows and the rows of a streamed tile.
DEVICE void multiply_tiles(sums (&to)[ACROSS], tile owned, int row, tile streamed) {
    UNROLL_4 for (int k = 0; k < STEPS; k++) {
        u32 a[4];
        rows_fragment(a, owned, row, k);
        UNROLL for (int j = 0; j < ACROSS; j += 2) {
            u32 b[2][2];
            across_fragments(b, streamed, 8 * j, k);
            multiply(to[j], a, b[0]), multiply(to[j + 1], a, b[1]);
        }
    }
}

}  // namespace

KERNEL BOUNDS2(THREADS, BLOCKS) void NAME(const element *q, const element *k, const element *v, const element *grad, const float *lse, const float *delta,
                                          element *d_first, element *d_second, const u32 *query_offsets, const u32 *key_offsets, strides of_q,
                                          strides of_k, strides of_v, strides of_grad, strides of_lse, strides of_delta, strides of_first,
                                          strides of_second, u32 heads, u32 group, u32 queries, u32 keys, u32 all_queries, u32 all_keys, u32 causal,
                                          float scale, u32 blocks) {
    // The blocks with the most tiles begin first.
    const u32 of_heads = BY_KEYS ? heads / group : heads, at = block_x() % blocks, block = BY_KEYS ? at : blocks - 1 - at;
    const u32 head = block_x() / blocks % of_heads, batch = block_x() / blocks / of_heads;
    const span of_queries = span_of(query_offsets, batch, queries, all_queries), of_keys = span_of(key_offsets, batch, keys, all_keys);
    const int first_row = (int)block * ROWS, count = BY_KEYS ? of_keys.count : of_queries.count, shift = of_keys.count - of_queries.count;
    if (first_row >= count) return;

    const tile owned = shared_address(group_memory()), stages = owned + 2 * OWNED;
    const int lane = thread_x() % 32, row = thread_x() / 32 * 16;
    const u32 key_head = BY_KEYS ? head : head / group;
    const rows from_k = rows_of(k, of_k, batch, key_head, of_keys), from_v = rows_of(v, of_v, batch, key_head, of_keys);
    const u32 first_head = BY_KEYS ? head * group : head;
    const rows from_q = rows_of(q, of_q, batch, first_head, of_queries), from_grad = rows_of(grad, of_grad, batch, first_head, of_queries);
    const float *from_lse = lse + batch * of_lse.batch + first_head * of_lse.head + of_queries.first * of_lse.row;
    const float *from_delta = delta + batch * of_delta.batch + first_head * of_delta.head + of_queries.first * of_delta.row;

    // The streamed rows that see an owned one, or are seen, in whole tiles; by keys for each head that shares the keys.
    const int last_row = (int)smaller(first_row + ROWS, count) - 1;
    int seen = BY_KEYS ? of_queries.count : of_keys.count, unseen = 0;
    if (causal && BY_KEYS) unseen = first_row - shift;
    if (causal && !BY_KEYS) seen = (int)smaller(seen, last_row + shift + 1);
    const int first = unseen > 0 ? unseen / TILE_ROWS : 0, tiles = (int)(seen > 0 ? (seen + TILE_ROWS - 1) / TILE_ROWS - first : 0);
    const int all = tiles < 0 ? 0 : BY_KEYS ? tiles * (int)group : tiles;

// Begins the copies of a streamed tile.
#define FETCH(n)                                                                                                                                      \
    {                                                                                                                                                  \
        const tile to = stages + (n) % 2 * STAGE;                                                                                                      \
        const int of_head = BY_KEYS ? (n) / tiles : 0, from_row = (first + (n) - of_head * tiles) * TILE_ROWS;                                          \
        rows one = BY_KEYS ? from_q : from_k, two = BY_KEYS ? from_grad : from_v;                                                                      \
        if (BY_KEYS) {                                                                                                                                 \
            one.at += of_head * of_q.head, two.at += of_head * of_grad.head;                                                                           \
            const int i = thread_x() % TILE_ROWS;                                                                                                      \
            const bool exists = from_row + i < of_queries.count;                                                                                       \
            const float *l = from_lse + of_head * of_lse.head, *d = from_delta + of_head * of_delta.head;                                              \
            if (thread_x() < TILE_ROWS) copy4_to(to + 2 * TILE + 4 * i, exists ? l + (from_row + i) * of_lse.row : l, exists ? 4 : 0);                  \
            else if (thread_x() < 2 * TILE_ROWS)                                                                                                       \
                copy4_to(to + 2 * TILE + 4 * (TILE_ROWS + i), exists ? d + (from_row + i) * of_delta.row : d, exists ? 4 : 0);                          \
        }                                                                                                                                              \
        fetch<TILE_ROWS>(to, one, from_row);                                                                                                           \
        fetch<TILE_ROWS>(to + TILE, two, from_row);                                                                                                    \
    }
    static_assert(!BY_KEYS || THREADS >= 2 * TILE_ROWS, "a thread copies one logarithm or delta");
    fetch<ROWS>(owned, BY_KEYS ? from_k : from_q, first_row);
    fetch<ROWS>(owned + OWNED, BY_KEYS ? from_v : from_grad, first_row);
    if (all > 0) FETCH(0)
    copies_commit();
    // limit: by queries the first key that a row does not see, by keys the first query that sees it.
    float log_of_row[2], delta_of_row[2];
    int limit[2];
    UNROLL for (int half = 0; half < 2; half++) {
        const int r = first_row + row + lane / 4 + 8 * half;
        if (BY_KEYS) {
            limit[half] = causal ? r - shift : 0;
        } else {
            limit[half] = causal ? (int)smaller(of_keys.count, r + shift + 1) : of_keys.count;
            log_of_row[half] = r < count ? negated_log(from_lse[r * of_lse.row]) : -INFINITE;
            delta_of_row[half] = r < count ? from_delta[r * of_delta.row] : 0;
        }
    }

    const float scale_of_two = scale * LOG2_E;
    sums out[COLUMNS_DIM], out_v[BY_KEYS ? COLUMNS_DIM : 1];
    clear(out), clear(out_v);
    NO_UNROLL for (int n = 0; n < all; n++) {
        const tile stage = stages + n % 2 * STAGE;
        copies_wait<0>();
        barrier();  // the tile is there for all, and nobody reads the one before any more, whose stage is filled next
        if (n + 1 < all) FETCH(n + 1)
        copies_commit();
        sums p[ACROSS], ds[ACROSS];
        clear(p), clear(ds);
        multiply_tiles(p, owned, row, stage);
        multiply_tiles(ds, owned + OWNED, row, stage + TILE);
        // A streamed row is a column here: this lane's first one is the first of the tile and twice lane % 4.
        const int column = (first + (BY_KEYS ? n % tiles : n)) * TILE_ROWS + lane % 4 * 2;
        UNROLL for (int half = 0; half < 2; half++) {
            const int border = limit[half] - column;
            UNROLL for (int j = 0; j < ACROSS; j++) {
                UNROLL for (int e = 2 * half; e < 2 * half + 2; e++) {
                    const int i = 8 * j + e % 2;
                    const auto *of_column = shared_at<float>(stage + 2 * TILE + 4 * (lane % 4 * 2) + 4 * i);
                    const float log = BY_KEYS ? negated_log(of_column[0]) : log_of_row[half], its_delta = BY_KEYS ? of_column[TILE_ROWS] : delta_of_row[half];
                    const bool sees = BY_KEYS ? i >= border : i < border;
                    p[j][e] = sees ? power_of_two(fused(p[j][e], scale_of_two, log)) : 0;
                    ds[j][e] = sees ? p[j][e] * (ds[j][e] - its_delta) : 0;
                }
            }
        }
        if (BY_KEYS) add((sums(&)[COLUMNS_DIM])out_v, p, stage + TILE);
        add(out, ds, stage);
    }
    copies_wait<0>();
    barrier();
    put(owned, row, out, scale, scale);
    if (BY_KEYS) put(owned + OWNED, row, (sums(&)[COLUMNS_DIM])out_v, 1, 1);
    warp_barrier();
    const i64 to_row = (BY_KEYS ? of_keys.first : of_queries.first) + first_row;
    store(d_first + batch * of_first.batch + head * of_first.head + to_row * of_first.row, of_first.row, owned, row, count - first_row);
    if (BY_KEYS)
        store(d_second + batch * of_second.batch + head * of_second.head + to_row * of_second.row, of_second.row, owned + OWNED, row, count - first_row);
}

#if !BY_KEYS
// The sums of each row of the output times its gradient: as many lanes as a row has vectors add up one. The row number has the query last.
KERNEL BOUNDS(THREADS) void DELTA(const element *o, const element *grad, float *delta, const u32 *query_offsets, strides of_o, strides of_grad,
                                  strides of_delta, u32 heads, u32 queries, u32 all_queries, u32 rows) {
    const u32 vector = thread_x() % VECTORS, at = block_x() * (THREADS / VECTORS) + thread_x() / VECTORS;
    const u32 row = at < rows ? at : rows - 1, query = row % queries, head = row / queries % heads, batch = row / queries / heads;
    const span of_queries = span_of(query_offsets, batch, queries, all_queries);
    const bool exists = at < rows && (int)query < of_queries.count;
    float sum = 0;
    if (exists) {
        const i64 its_row = of_queries.first + query;
        const quad x = *(const quad *)(o + batch * of_o.batch + head * of_o.head + its_row * of_o.row + vector * VECTOR);
        const quad y = *(const quad *)(grad + batch * of_grad.batch + head * of_grad.head + its_row * of_grad.row + vector * VECTOR);
        UNROLL for (int i = 0; i < 4; i++) {
            sum = fused(wide((u16)x.x[i]), wide((u16)y.x[i]), sum);
            sum = fused(wide((u16)(x.x[i] >> 16)), wide((u16)(y.x[i] >> 16)), sum);
        }
    }
    UNROLL for (int distance = VECTORS / 2; distance > 0; distance /= 2) sum += from_lane(sum, distance);
    if (exists && vector == 0) delta[batch * of_delta.batch + head * of_delta.head + (of_queries.first + query) * of_delta.row] = sum;
}
#endif
