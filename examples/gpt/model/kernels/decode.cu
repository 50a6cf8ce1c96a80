// The kernels of decoding with keys and values in pages: make kernels compiles them.
//
// Macros: BITS: 16 for bfloat16, 32 for float32.
//
// A page has, for each layer, the keys and then the values of 1 << shift positions: [layer][keys, values][head][position][element]. table has the
// addresses of a sequence's pages. A row is one token of a sequence; its position is -1 where the row is not used.

typedef unsigned short u16;
typedef unsigned u32;
typedef long long i64;
typedef unsigned long long u64;
struct alignas(16) quad { u32 x[4]; };  // 16 bytes, which are loaded and stored at once

#define KERNEL extern "C" __attribute__((global))
#define BOUNDS(threads) __attribute__((launch_bounds(threads)))
#define DEVICE static __attribute__((device)) __attribute__((always_inline)) inline
#define SHARED __attribute__((shared))
#define UNROLL _Pragma("unroll")

#if BITS == 16
typedef u16 element;
#else
typedef float element;
#endif

namespace {

enum { VECTOR = 16 / (int)sizeof(element), ATTEND = 512, MOST_SIZE = 256, SAMPLE = 1024 };
const float LOG2_E = 1.44269504f, LN_2 = 0.693147182f, INFINITE = __builtin_inff();
const float LOWEST = -1e30f;  // below all scores, and finite: a difference of two is a number

DEVICE u32 thread() { return __nvvm_read_ptx_sreg_tid_x(); }
DEVICE u32 threads() { return __nvvm_read_ptx_sreg_ntid_x(); }
DEVICE u32 block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
DEVICE u32 block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
DEVICE float float_of(u32 bits) { return __builtin_bit_cast(float, bits); }
DEVICE u32 bits_of(float v) { return __builtin_bit_cast(u32, v); }
DEVICE u32 from_lane(u32 v, int distance) { return __nvvm_shfl_sync_bfly_i32(-1, v, distance, 31); }
DEVICE float from_lane(float v, int distance) { return float_of(from_lane(bits_of(v), distance)); }
DEVICE float greater(float a, float b) { return __builtin_fmaxf(a, b); }
DEVICE float power_of_two(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}
DEVICE float logarithm(float x) {
    float r;
    asm("lg2.approx.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r * LN_2;
}
#if BITS == 16
DEVICE float wide(u16 h) { return float_of((u32)h << 16); }
DEVICE u16 narrow(float v) {  // to the nearest, ties to even
    const u32 bits = bits_of(v);
    if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;  // not a number
    return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
DEVICE void widen(float (&to)[VECTOR], const quad &q) {
    UNROLL for (int i = 0; i < 4; i++) {
        to[2 * i] = float_of(q.x[i] << 16);
        to[2 * i + 1] = float_of(q.x[i] & 0xffff0000);
    }
}
#else
DEVICE float wide(float v) { return v; }
DEVICE float narrow(float v) { return v; }
DEVICE void widen(float (&to)[VECTOR], const quad &q) {
    UNROLL for (int i = 0; i < 4; i++) to[i] = float_of(q.x[i]);
}
#endif

DEVICE quad load(const element *p) { return *(const quad *)p; }

}  // namespace

// out = the rows of both tables for a token and its position. Position: positions[row], or with a null pointer first + row.
KERNEL BOUNDS(128) void embed(const element *tokens_table, const element *positions_table, const i64 *tokens, const int *positions, element *out,
                              int first, u32 width, u32 vocabulary, u32 context) {
    const u32 row = block_x();
    const int at = positions ? positions[row] : first + (int)row;
    element *to = out + (u64)row * width;
    if (at < 0) {
        for (u32 i = thread(); i < width; i += threads()) to[i] = narrow(0);
        return;
    }
    const i64 token = tokens[row];
    if (token < 0 || token >= vocabulary || at >= (int)context) __builtin_trap();
    const element *a = tokens_table + token * width, *b = positions_table + (u64)at * width;
    for (u32 i = thread(); i < width; i += threads()) to[i] = narrow(wide(a[i]) + wide(b[i]));
}

// Writes the keys and values of rows of one sequence, at the positions from first on, to its pages. layer: elements before the layer in a page.
KERNEL BOUNDS(128) void store(const element *qkv, const u64 *table, u64 layer, int first, u32 heads, u32 size, u32 shift, u32 pages) {
    const u32 row = block_x(), at = first + row, width = heads * size;
    if (at >> shift >= pages) __builtin_trap();
    element *page = (element *)table[at >> shift] + layer;
    const u64 part = ((u64)heads << shift) * size, inside = at & ((1u << shift) - 1);
    const element *from = qkv + (u64)row * 3 * width;
    for (u32 i = thread() * VECTOR; i < width; i += threads() * VECTOR) {
        const u64 to = (((u64)(i / size) << shift) + inside) * size + i % size;
        *(quad *)(page + to) = load(from + width + i);
        *(quad *)(page + part + to) = load(from + 2 * width + i);
    }
}

// out = attention of a row to the keys of its sequence up to its own. A block has one head of one row. Rows have tables stride entries apart. With
// stores the row's own key and value are in qkv alone, and the block writes them to the page: one row of a sequence in a launch.
// A group of size / VECTOR lanes has one key at a time, and each lane of it VECTOR elements. A block has 32 to ATTEND threads: a power of 2.
KERNEL BOUNDS(512) void attend(const element *qkv, element *out, const u64 *table, const int *positions, u64 layer, int first, u32 heads, u32 size,
                               u32 shift, u32 pages, u32 stride, u32 stores, float scale) {
    SHARED float sums[ATTEND / 32][2];
    SHARED float values[ATTEND / 32][MOST_SIZE];
    const u32 head = block_x(), row = block_y(), width = heads * size;
    const u32 lanes = size / VECTOR, lane = thread() % lanes, group = thread() / lanes, groups = threads() / lanes, warps = threads() / 32;
    const int at = positions ? positions[row] : first + (int)row;
    element *to = out + (u64)row * width + head * size;
    if (at < 0) {
        for (u32 i = thread(); i < size; i += threads()) to[i] = narrow(0);
        return;
    }
    if ((u32)at >> shift >= pages) __builtin_trap();
    const u64 *mine = table + (u64)row * stride;
    const u32 mask = (1u << shift) - 1;
    const u64 keys = layer + ((u64)head << shift) * size + lane * VECTOR, distance = ((u64)heads << shift) * size;
    const element *own = qkv + (u64)row * 3 * width + head * size + lane * VECTOR;
    float q[VECTOR], most = LOWEST, sum = 0, value[VECTOR];
    widen(q, load(own));
    UNROLL for (int i = 0; i < VECTOR; i++) {
        q[i] *= scale * LOG2_E;
        value[i] = 0;
    }
    if (stores && group == 0) {
        const quad k = load(own + width), v = load(own + 2 * width);
        element *page = (element *)mine[(u32)at >> shift] + keys + (u64)(at & mask) * size;
        *(quad *)page = k;
        *(quad *)(page + distance) = v;
        float own_k[VECTOR];
        widen(own_k, k);
        widen(value, v);
        most = 0;
        UNROLL for (int i = 0; i < VECTOR; i++) most += q[i] * own_k[i];
        sum = 1;
    }
    const u32 here = stores ? at : at + 1;  // keys in pages
    if (stores) {  // all lanes of the warp take part
        float score = group == 0 ? most : 0;
        for (u32 d = 1; d < lanes; d *= 2) score += from_lane(score, d);
        if (group == 0) most = score;
    }
    enum { STEPS = 4 };  // keys of a group that are loaded at once
    for (u32 base = 0; base < here; base += groups * STEPS) {
        quad k[STEPS], v[STEPS];
        float score[STEPS], now = most;
        UNROLL for (int s = 0; s < STEPS; s++) {
            const u32 key = base + s * groups + group;
            if (key < here) {
                const element *page = (const element *)mine[key >> shift] + keys + (u64)(key & mask) * size;
                k[s] = load(page);
                v[s] = load(page + distance);
            } else {
                k[s] = v[s] = quad{};
            }
        }
        UNROLL for (int s = 0; s < STEPS; s++) {
            float element_of[VECTOR];
            widen(element_of, k[s]);
            score[s] = 0;
            UNROLL for (int i = 0; i < VECTOR; i++) score[s] += q[i] * element_of[i];
        }
        for (u32 d = 1; d < lanes; d *= 2) {
            UNROLL for (int s = 0; s < STEPS; s++) score[s] += from_lane(score[s], d);
        }
        UNROLL for (int s = 0; s < STEPS; s++) {
            if (base + s * groups + group >= here) score[s] = -INFINITE;
            now = greater(now, score[s]);
        }
        const float less = power_of_two(most - now);
        most = now;
        sum *= less;
        UNROLL for (int i = 0; i < VECTOR; i++) value[i] *= less;
        UNROLL for (int s = 0; s < STEPS; s++) {
            const float weight = power_of_two(score[s] - now);
            float element_of[VECTOR];
            widen(element_of, v[s]);
            sum += weight;
            UNROLL for (int i = 0; i < VECTOR; i++) value[i] += weight * element_of[i];
        }
    }
    for (u32 d = lanes; d < 32; d *= 2) {  // the groups of a warp
        const float other = from_lane(most, d), now = greater(most, other);
        const float mine_less = power_of_two(most - now), other_less = power_of_two(other - now);
        sum = sum * mine_less + from_lane(sum, d) * other_less;
        UNROLL for (int i = 0; i < VECTOR; i++) value[i] = value[i] * mine_less + from_lane(value[i], d) * other_less;
        most = now;
    }
    const u32 warp = thread() / 32;
    if (thread() % 32 < lanes) {
        if (lane == 0) {
            sums[warp][0] = most;
            sums[warp][1] = sum;
        }
        UNROLL for (int i = 0; i < VECTOR; i++) values[warp][lane * VECTOR + i] = value[i];
    }
    __syncthreads();
    float all = LOWEST, total = 0;
    for (u32 w = 0; w < warps; w++) all = greater(all, sums[w][0]);
    for (u32 w = 0; w < warps; w++) total += sums[w][1] * power_of_two(sums[w][0] - all);
    for (u32 i = thread(); i < size; i += threads()) {
        float r = 0;
        for (u32 w = 0; w < warps; w++) r += values[w][i] * power_of_two(sums[w][0] - all);
        to[i] = narrow(r / total);
    }
}

namespace {

// key_of orders as the numbers do.
DEVICE u32 key_of(float v) {
    const u32 bits = bits_of(v);
    return bits >> 31 ? ~bits : bits | 0x80000000;
}

// each calls f with the numbers of a row and their indices: of this thread, in ascending order.
template <typename F> DEVICE void each(const element *x, u32 count, F f) {
    const u32 whole = count / VECTOR * VECTOR;
    for (u32 i = thread() * VECTOR; i < whole; i += threads() * VECTOR) {
        float v[VECTOR];
        widen(v, load(x + i));
        UNROLL for (int j = 0; j < VECTOR; j++) f(v[j], i + j);
    }
    for (u32 i = whole + thread(); i < count; i += threads()) f(wide(x[i]), i);
}

// least_of returns the key of the number number `top` from the greatest, two bits in a round: threads count the keys from three bounds on.
DEVICE u32 least_of(const element *x, u32 count, u32 top, u32 (*counts)[SAMPLE / 32]) {
    u32 least = 0;
    for (int shift = 30; shift >= 32 - BITS; shift -= 2) {
        u32 have[3] = {0, 0, 0};
        each(x, count, [&](float v, u32) {
            const u32 key = key_of(v);
            UNROLL for (u32 b = 0; b < 3; b++) have[b] += key >= (least | (b + 1) << shift);
        });
        UNROLL for (int b = 0; b < 3; b++) {
            for (int d = 16; d > 0; d /= 2) have[b] += from_lane(have[b], d);
        }
        __syncthreads();  // all have read the counts of the last round
        if (thread() % 32 == 0) {
            UNROLL for (int b = 0; b < 3; b++) counts[b][thread() / 32] = have[b];
        }
        __syncthreads();
        u32 bits = 0;
        for (u32 b = 0; b < 3; b++) {
            u32 all = 0;
            for (u32 w = 0; w < threads() / 32; w++) all += counts[b][w];
            if (all >= top) bits = b + 1;
        }
        least |= bits << shift;
    }
    return least;
}

// noise is a number of the standard Gumbel distribution for a seed, a position and a token: the token with the greatest sum of it and its
// logit divided by the temperature is drawn with the probability that softmax has.
DEVICE float noise(u64 seed, u32 at, u32 token) {
    u64 z = seed + ((u64)at << 32 | token) * 0x9e3779b97f4a7c15;  // splitmix64
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    const float uniform = ((float)(u32)(z >> 41) + 0.5f) * 0x1p-23f;  // above 0 and below 1
    return -logarithm(-logarithm(uniform));
}

}  // namespace

// Draws the next token of each row from its logits, writes it to tokens, and adds 1 to the row's position. Temperature 0: the first of the greatest.
// top > 0: of the so many greatest, and those equal to the last of them. Rows of logits begin at multiples of 16 bytes.
KERNEL BOUNDS(1024) void sample(const element *logits, i64 *tokens, int *positions, const u64 *seeds, const float *temperatures, const u32 *tops,
                                u32 count, u32 stride) {
    SHARED u32 counts[3][SAMPLE / 32];
    SHARED float scores[SAMPLE / 32];
    SHARED u32 indices[SAMPLE / 32];
    const u32 row = block_x();
    const int at = positions[row];
    if (at < 0) return;
    const element *x = logits + (u64)row * stride;
    const float temperature = temperatures[row];
    const u32 top = tops[row];
    const u64 seed = seeds[row];
    const bool draws = temperature > 0;
    const u32 least = draws && top > 0 && top < count ? least_of(x, count, top, counts) : 0;
    float best = -INFINITE;
    u32 index = count;
    each(x, count, [&](float v, u32 i) {
        if (key_of(v) < least) return;
        const float score = draws ? v / temperature + noise(seed, at, i) : v;
        if (score > best) best = score, index = i;
    });
    const auto take = [&](float score, u32 i) {
        if (score > best || (score == best && i < index)) best = score, index = i;
    };
    for (int d = 16; d > 0; d /= 2) take(from_lane(best, d), from_lane(index, d));
    if (thread() % 32 == 0) scores[thread() / 32] = best, indices[thread() / 32] = index;
    __syncthreads();
    if (thread() > 0) return;
    for (u32 w = 1; w < threads() / 32; w++) take(scores[w], indices[w]);
    tokens[row] = index < count ? index : 0;  // without a number among the logits
    positions[row] = at + 1;
}
