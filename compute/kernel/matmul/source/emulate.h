// The kernels on a host, for tests: a block's threads are coroutines of one thread, which change at barriers and where a warp acts together.
// Matrix instructions are computed from what all lanes of the warp have brought. Nothing runs at the same time, so that a missing barrier may go
// unseen; a barrier that not all threads reach is an error.
#pragma once
#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

// g++ compiles the kernels without optimisation, in a third of the time, and optimises what is defined here: most of what runs.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("O1")
#endif

#define KERNEL static
#define BOUNDS(threads)
#define BOUNDS2(threads, blocks)
#define DEVICE static inline
#define MEMBER inline
#define SHARED static
#define UNROLL
#define UNROLL_4
#define NO_UNROLL

namespace emulated {

enum { MOST_THREADS = 1024, STACK_BYTES = 64 << 10, SHARED_BYTES = 232448 };

// What a lane brings to an instruction of its warp.
struct brought {
    u32 a[4], b[2];
    const void *row;
    double value;
};

struct coroutine {
    jmp_buf at;
    ucontext_t first;
    bool begun, done;
    int barriers, meetings;  // how many it has come to
    brought with;
    int came() const { return barriers + meetings; }
};

// Asynchronous copies of a thread, which are performed where it waits for them.
struct copy {
    void *to;
    const void *from;
    u32 width, bytes;
    int group;
};
struct copies {
    enum { MOST = 1024 };
    copy all[MOST];
    int count, group;
};

struct machine {
    coroutine threads[MOST_THREADS];
    copies waiting[MOST_THREADS];
    jmp_buf out;
    char *stacks;
    unsigned count, now, grid[3], block[3];
    void (*body)(const void *);
    const void *params;
    alignas(1024) char dynamic[SHARED_BYTES];
};
static machine *m;

static inline coroutine &self() { return m->threads[m->now]; }

static void entry() {
    m->body(m->params);
    self().done = true;
    _longjmp(m->out, 1);
}

static inline void yield() {
    if (_setjmp(self().at) == 0) _longjmp(m->out, 1);
}

// meet waits until the lanes of the warp, or all threads, have come as often as this one.
static void meet(int coroutine::*count, unsigned from, unsigned to) {
    int mine = ++(self().*count);
    for (bool wait = true; wait;) {
        wait = false;
        for (unsigned i = from; i < to && !wait; i++) wait = m->threads[i].*count < mine;
        if (wait) yield();
    }
}
static inline void meet_warp() {
    unsigned from = m->now / 32 * 32;
    meet(&coroutine::meetings, from, from + 32 < m->count ? from + 32 : m->count);
}

// run_block runs the threads round by round. It returns false where a round changes nothing: some wait for others that never come.
static bool run_block() {
    for (unsigned i = 0; i < m->count; i++) {
        memset(&m->threads[i], 0, sizeof(coroutine));
        m->waiting[i].count = m->waiting[i].group = 0;
    }
    for (unsigned left = m->count;;) {
        int before = 0, after = 0;
        unsigned had = left;
        for (unsigned i = 0; i < m->count; i++) before += m->threads[i].came();
        for (volatile unsigned i = 0; i < m->count; i++) {
            if (m->threads[i].done) continue;
            m->now = i;
            if (_setjmp(m->out) == 0) {
                if (self().begun) _longjmp(self().at, 1);
                self().begun = true;
                getcontext(&self().first);
                self().first.uc_stack.ss_sp = m->stacks + (size_t)i * STACK_BYTES;
                self().first.uc_stack.ss_size = STACK_BYTES;
                self().first.uc_link = NULL;
                makecontext(&self().first, entry, 0);
                setcontext(&self().first);
            }
            if (m->threads[i].done) left--;
        }
        if (left == 0) return true;
        for (unsigned i = 0; i < m->count; i++) after += m->threads[i].came();
        if (after == before && left == had && left < m->count) return false;
    }
}

static unsigned grid_width;

static int run(void (*body)(const void *), const unsigned grid[3], const unsigned block[3], unsigned shared_bytes, const void *params) {
    if (!m) {
        m = (machine *)aligned_alloc(alignof(machine), sizeof *m);
        memset(m, 0, sizeof *m);
        m->stacks = (char *)malloc((size_t)MOST_THREADS * STACK_BYTES);
    }
    if (block[0] > MOST_THREADS || block[1] != 1 || block[2] != 1 || shared_bytes > SHARED_BYTES) return 1;
    m->count = block[0];
    grid_width = grid[0];
    m->body = body;
    m->params = params;
    for (m->grid[2] = 0; m->grid[2] < grid[2]; m->grid[2]++)
        for (m->grid[1] = 0; m->grid[1] < grid[1]; m->grid[1]++)
            for (m->grid[0] = 0; m->grid[0] < grid[0]; m->grid[0]++) {
                memset(m->dynamic, 0xff, shared_bytes);  // no zeros: not a number
                if (!run_block()) return 719;
            }
    return 0;
}

}  // namespace emulated

DEVICE u32 thread_x() { return emulated::m->now; }
DEVICE u32 block_x() { return emulated::m->grid[0]; }
DEVICE u32 block_y() { return emulated::m->grid[1]; }
DEVICE u32 block_z() { return emulated::m->grid[2]; }
DEVICE u32 grid_x() { return emulated::grid_width; }
DEVICE void barrier() { emulated::meet(&emulated::coroutine::barriers, 0, emulated::m->count); }
DEVICE void warp_barrier() { emulated::meet_warp(); }
DEVICE char *dynamic_memory() { return emulated::m->dynamic; }

DEVICE void copy_later(void *to, const void *from, u32 width, u32 bytes) {
    emulated::copies &c = emulated::m->waiting[emulated::m->now];
    if ((uintptr_t)to % width || (bytes && (uintptr_t)from % width) || bytes > width || c.count == emulated::copies::MOST) abort();
    c.all[c.count++] = emulated::copy{to, from, width, bytes, c.group};
}
DEVICE void copy16_if(bool does, void *to, const void *from) {
    if (does) copy_later(to, from, 16, 16);
}
DEVICE void copy16_of(void *to, const void *from, u32 bytes) { copy_later(to, from, 16, bytes); }
DEVICE void copy4_of(void *to, const void *from, u32 bytes) { copy_later(to, from, 4, bytes); }
DEVICE void copies_commit() { emulated::m->waiting[emulated::m->now].group++; }
template <int N> DEVICE void copies_wait() {
    emulated::copies &c = emulated::m->waiting[emulated::m->now];
    int left = 0;
    for (int i = 0; i < c.count; i++) {
        const emulated::copy one = c.all[i];
        if (one.group >= c.group - N) {
            c.all[left++] = one;
            continue;
        }
        memcpy(one.to, one.from, one.bytes);
        memset((char *)one.to + one.bytes, 0, one.width - one.bytes);
    }
    c.count = left;
}

DEVICE float float_of(u32 bits) { float v; memcpy(&v, &bits, 4); return v; }
DEVICE u32 bits_of(float v) { u32 bits; memcpy(&bits, &v, 4); return bits; }
DEVICE float power_of_two(float x) { return exp2f(x); }
DEVICE float quotient(float a, float b) { return a / b; }
DEVICE float fused(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE double fused(double a, double b, double c) { return fma(a, b, c); }
DEVICE u32 to_tf32(float v) {
    u32 bits = bits_of(v);
    return (bits & 0x7f800000) == 0x7f800000 ? bits : (bits + 0x1000) & ~0x1fffu;
}
DEVICE float from_f16(u16 h) { _Float16 v; memcpy(&v, &h, 2); return (float)v; }
DEVICE u16 to_f16(float v) { _Float16 h = (_Float16)v; u16 bits; memcpy(&bits, &h, 2); return bits; }

DEVICE emulated::brought &lane_of(int lane) { return emulated::m->threads[emulated::m->now / 32 * 32 + lane].with; }

DEVICE void read_matrices(u32 (&r)[4], const void *row, bool transposed) {
    using namespace emulated;
    if ((uintptr_t)row % 16) abort();
    self().with.row = row;
    meet_warp();
    const int lane = m->now % 32;
    for (int i = 0; i < 4; i++) {
        u16 half[2];
        for (int e = 0; e < 2; e++) {
            int of = lane / 4, at = lane % 4 * 2 + e;
            half[e] = transposed ? ((const u16 *)lane_of(8 * i + at).row)[of] : ((const u16 *)lane_of(8 * i + of).row)[at];
        }
        r[i] = (u32)half[1] << 16 | half[0];
    }
    meet_warp();
}
DEVICE void load_matrices(u32 (&r)[4], const void *row) { read_matrices(r, row, false); }
DEVICE void load_matrices_transposed(u32 (&r)[4], const void *row) { read_matrices(r, row, true); }

// Instructions of 16 x 8 x 8 (words) or 16 x 8 x 16 (halves): a lane has the columns 2(lane%4) and the next of the rows lane/4 and that + 8.
template <class F> static void multiply_warp(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2], int depth, F number) {
    using namespace emulated;
    memcpy(self().with.a, a, sizeof a);
    memcpy(self().with.b, b, sizeof b);
    meet_warp();
    const int lane = m->now % 32;
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4, high = e / 2, column = lane % 4 * 2 + e % 2;
        double sum = d[e];
        for (int k = 0; k < depth; k++) {
            const int word = depth == 16 ? k / 2 : k, of = word % 4, second = word / 4;
            sum += (double)number(lane_of(row * 4 + of).a[high + 2 * second], k % 2) * number(lane_of(column * 4 + of).b[second], k % 2);
        }
        d[e] = (float)sum;
    }
    meet_warp();
}
DEVICE float from_bf16(u16 h);
DEVICE void multiply_tf32(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    multiply_warp(d, a, b, 8, [](u32 w, int) { return float_of(w & 0xffffe000); });  // the units read no more bits
}
DEVICE void multiply_bf16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    multiply_warp(d, a, b, 16, [](u32 w, int high) { return from_bf16((u16)(high ? w >> 16 : w)); });
}
DEVICE void multiply_f16(float (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    multiply_warp(d, a, b, 16, [](u32 w, int high) { return from_f16((u16)(high ? w >> 16 : w)); });
}
template <class T> static T sum_warp(T v) {
    using namespace emulated;
    self().with.value = v;
    meet_warp();
    T all[32];
    for (int i = 0; i < 32; i++) all[i] = (T)lane_of(i).value;
    meet_warp();
    for (int at = 16; at > 0; at /= 2)
        for (int i = 0; i < at; i++) all[i] += all[i + at];
    return all[0];
}
DEVICE float lane_sum(float v) { return sum_warp(v); }
DEVICE double lane_sum(double v) { return sum_warp(v); }

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#endif
