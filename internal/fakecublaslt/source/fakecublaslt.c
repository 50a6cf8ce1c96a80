// A fake of cuBLASLt over the fake of libcuda: see doc.go.
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, ARCH_MISMATCH = 8, EXECUTION_FAILED = 13, NOT_SUPPORTED = 15 };
enum { FINDS_NONE = -1, FINDS_UNUSABLE = -2, FINDS_LARGER = -3, FINDS_WITHOUT = -4 };
enum { R32 = 0, R64 = 1, R16 = 2, RB16 = 14 };
enum { HANDLE = 0x48414e44, DESC = 0x44455343, LAYOUT = 0x4c41594f, PREFERENCE = 0x50524546 };
enum { WORKSPACE_BYTES = 4096, BIAS = 4, GELU = 32, AUX = 128, DGELU = 192 };
enum { SPLIT_NONE = 0, SPLIT_INPLACE = 1, SPLIT_COMPUTE_TYPE = 2, SPLIT_OUTPUT_TYPE = 4, LONG_K = 64 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long live;
static struct counter {
    char name[48];
    long calls;
    long failing; // the call of that number fails; 0: none
    int status;
} counters[32];

struct object {
    uint32_t kind;
    int32_t compute, scale, trans_a, trans_b, epilogue, bias_type; // of DESC
    uint64_t bias, aux;
    int64_t aux_ld, aux_stride;
    int32_t type, batch; // of LAYOUT
    uint64_t rows, columns;
    int64_t ld, stride;
    uint64_t workspace_bytes; // of PREFERENCE
    uint32_t alignment[4], reductions;
};
struct algorithm {
    uint64_t sum, alignment_a, alignment_b, reduction, workspace_bytes, rest[3];
};
struct heuristic {
    struct algorithm algorithm;
    uint64_t workspace_bytes;
    int32_t state;
    float waves;
    int32_t reserved[4];
};

static struct counter *counter_of(const char *name) {
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        if (!counters[i].name[0]) strncpy(counters[i].name, name, sizeof counters[i].name - 1);
        if (strcmp(counters[i].name, name) == 0) return &counters[i];
    }
    abort();
}

// The driver's functions, by their names.
static void *driver(const char *name) {
    static void *library;
    if (!library) library = dlopen(LIBCUDA, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, name) : NULL;
}

// Counts a call. A result that is not 0 is the call's, or below 0 says how it succeeds.
static int enter(const char *name) {
    pthread_mutex_lock(&mutex);
    struct counter *c = counter_of(name);
    int status = ++c->calls == c->failing ? c->status : SUCCESS;
    pthread_mutex_unlock(&mutex);
    int (*current)(void **) = (int (*)(void **))driver("cuCtxGetCurrent");
    void *context = NULL;
    if (status == SUCCESS && (!current || current(&context) != 0 || !context)) return NOT_INITIALIZED;
    return status;
}
#define ENTER()                              \
    do {                                     \
        int entered_ = enter(__func__);      \
        if (entered_) return entered_;       \
    } while (0)

EXPORT int fakecublaslt_fail(const char *name, int occurrence, int status) {
    pthread_mutex_lock(&mutex);
    struct counter *c = counter_of(name);
    c->failing = c->calls + occurrence;
    c->status = status;
    pthread_mutex_unlock(&mutex);
    return 1;
}
EXPORT long fakecublaslt_live(void) { return __atomic_load_n(&live, __ATOMIC_SEQ_CST); }
EXPORT long fakecublaslt_calls(const char *name) {
    pthread_mutex_lock(&mutex);
    long calls = counter_of(name)->calls;
    pthread_mutex_unlock(&mutex);
    return calls;
}
EXPORT void fakecublaslt_reset(void) {
    pthread_mutex_lock(&mutex);
    memset(counters, 0, sizeof counters);
    pthread_mutex_unlock(&mutex);
}

static struct object *object_new(uint32_t kind) {
    struct object *o = calloc(1, sizeof *o);
    if (!o) abort();
    o->kind = kind;
    __atomic_add_fetch(&live, 1, __ATOMIC_SEQ_CST);
    return o;
}
static int object_free(struct object *o, uint32_t kind) {
    if (!o || o->kind != kind) return INVALID_VALUE;
    o->kind = 0;
    free(o);
    __atomic_sub_fetch(&live, 1, __ATOMIC_SEQ_CST);
    return SUCCESS;
}

EXPORT size_t cublasLtGetVersion(void) { return 130100; }
EXPORT int cublasLtCreate(struct object **handle) {
    ENTER();
    if (!handle) return INVALID_VALUE;
    *handle = object_new(HANDLE);
    return SUCCESS;
}
EXPORT int cublasLtDestroy(struct object *handle) {
    ENTER();
    return object_free(handle, HANDLE);
}
EXPORT int cublasLtMatmulDescCreate(struct object **desc, int compute, int scale) {
    ENTER();
    if (!desc || (compute != 68 && compute != 77 && compute != 70) || scale != (compute == 70 ? R64 : R32)) return INVALID_VALUE;
    *desc = object_new(DESC);
    (*desc)->compute = compute;
    (*desc)->scale = scale;
    (*desc)->epilogue = 1;
    (*desc)->bias_type = -1;
    return SUCCESS;
}
EXPORT int cublasLtMatmulDescDestroy(struct object *desc) {
    ENTER();
    return object_free(desc, DESC);
}
static int set(void *to, size_t want, const void *value, size_t bytes) {
    if (bytes != want || !value) return INVALID_VALUE;
    memcpy(to, value, bytes);
    return SUCCESS;
}
EXPORT int cublasLtMatmulDescSetAttribute(struct object *d, int attribute, const void *value, size_t bytes) {
    ENTER();
    if (!d || d->kind != DESC) return INVALID_VALUE;
    switch (attribute) {
    case 3: return set(&d->trans_a, 4, value, bytes);
    case 4: return set(&d->trans_b, 4, value, bytes);
    case 7: return set(&d->epilogue, 4, value, bytes);
    case 8: return set(&d->bias, 8, value, bytes);
    case 11: return set(&d->aux, 8, value, bytes);
    case 12: return set(&d->aux_ld, 8, value, bytes);
    case 13: return set(&d->aux_stride, 8, value, bytes);
    case 26: return set(&d->bias_type, 4, value, bytes);
    default: return INVALID_VALUE;
    }
}
EXPORT int cublasLtMatrixLayoutCreate(struct object **layout, int type, uint64_t rows, uint64_t columns, int64_t ld) {
    ENTER();
    if (!layout || rows == 0 || columns == 0 || ld < (int64_t)rows) return INVALID_VALUE;
    *layout = object_new(LAYOUT);
    (*layout)->type = type;
    (*layout)->rows = rows;
    (*layout)->columns = columns;
    (*layout)->ld = ld;
    (*layout)->batch = 1;
    return SUCCESS;
}
EXPORT int cublasLtMatrixLayoutDestroy(struct object *layout) {
    ENTER();
    return object_free(layout, LAYOUT);
}
EXPORT int cublasLtMatrixLayoutSetAttribute(struct object *l, int attribute, const void *value, size_t bytes) {
    ENTER();
    if (!l || l->kind != LAYOUT) return INVALID_VALUE;
    switch (attribute) {
    case 5: return set(&l->batch, 4, value, bytes);
    case 6: return set(&l->stride, 8, value, bytes);
    default: return INVALID_VALUE;
    }
}
EXPORT int cublasLtMatmulPreferenceCreate(struct object **preference) {
    ENTER();
    if (!preference) return INVALID_VALUE;
    *preference = object_new(PREFERENCE);
    for (int i = 0; i < 4; i++) (*preference)->alignment[i] = 256;
    (*preference)->reductions = SPLIT_INPLACE | SPLIT_COMPUTE_TYPE | SPLIT_OUTPUT_TYPE;
    return SUCCESS;
}
EXPORT int cublasLtMatmulPreferenceDestroy(struct object *preference) {
    ENTER();
    return object_free(preference, PREFERENCE);
}
EXPORT int cublasLtMatmulPreferenceSetAttribute(struct object *p, int attribute, const void *value, size_t bytes) {
    ENTER();
    if (!p || p->kind != PREFERENCE) return INVALID_VALUE;
    if (attribute == 1) return set(&p->workspace_bytes, 8, value, bytes);
    if (attribute == 3) return set(&p->reductions, 4, value, bytes);
    if (attribute >= 5 && attribute <= 8) return set(&p->alignment[attribute - 5], 4, value, bytes);
    return INVALID_VALUE;
}

// How a product is split into parts of K: the least exact way that the preference allows, for a long K.
static uint64_t reduction_of(const struct object *p, uint64_t k) {
    if (k < LONG_K) return SPLIT_NONE;
    if (p->reductions & SPLIT_OUTPUT_TYPE) return SPLIT_OUTPUT_TYPE;
    if (p->reductions & SPLIT_INPLACE) return SPLIT_INPLACE;
    return p->reductions & SPLIT_COMPUTE_TYPE;
}

// What an algorithm is for: all but addresses.
static uint64_t sum_of(const struct object *d, const struct object *a, const struct object *b, const struct object *c) {
    uint64_t values[] = {(uint64_t)d->compute, (uint64_t)d->trans_a, (uint64_t)d->trans_b, (uint64_t)d->epilogue, (uint64_t)d->aux_ld,
                         a->rows, a->columns, (uint64_t)a->ld, (uint64_t)a->type, (uint64_t)a->batch, (uint64_t)a->stride,
                         b->rows, b->columns, (uint64_t)b->ld, (uint64_t)b->type, (uint64_t)b->batch, (uint64_t)b->stride,
                         c->rows, c->columns, (uint64_t)c->ld, (uint64_t)c->type, (uint64_t)c->batch, (uint64_t)c->stride};
    uint64_t sum = 14695981039346656037u;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) sum = (sum ^ values[i]) * 1099511628211u;
    return sum;
}

// The sizes fit each other.
static int fits(const struct object *d, const struct object *a, const struct object *b, const struct object *c) {
    if (!d || !a || !b || !c || d->kind != DESC || a->kind != LAYOUT || b->kind != LAYOUT || c->kind != LAYOUT) return INVALID_VALUE;
    uint64_t m = d->trans_a ? a->columns : a->rows, k = d->trans_a ? a->rows : a->columns;
    uint64_t k2 = d->trans_b ? b->columns : b->rows, n = d->trans_b ? b->rows : b->columns;
    if (m != c->rows || n != c->columns || k != k2 || a->batch != c->batch || b->batch != c->batch) return INVALID_VALUE;
    if (a->type != b->type || (c->type != a->type && c->type != R32)) return NOT_SUPPORTED;
    if (d->epilogue & BIAS && !d->bias) return INVALID_VALUE;
    if (d->epilogue & AUX && (!d->aux || d->aux_ld % 8 || d->aux_ld < (int64_t)m)) return NOT_SUPPORTED;
    return SUCCESS;
}

EXPORT int cublasLtMatmulAlgoGetHeuristic(struct object *handle, struct object *d, struct object *a, struct object *b, struct object *c, struct object *e,
                                          struct object *p, int wanted, struct heuristic *out, int *count) {
    int answer = enter(__func__);
    if (answer > 0) return answer;
    if (!handle || handle->kind != HANDLE || c != e || !p || p->kind != PREFERENCE || wanted < 1 || !out || !count) return INVALID_VALUE;
    int status = fits(d, a, b, c);
    if (status) return status;
    memset(out, 0, sizeof *out);
    out->algorithm.sum = sum_of(d, a, b, c);
    out->algorithm.alignment_a = p->alignment[0];
    out->algorithm.alignment_b = p->alignment[1];
    out->algorithm.reduction = reduction_of(p, d->trans_a ? a->rows : a->columns);
    out->workspace_bytes = p->workspace_bytes < WORKSPACE_BYTES ? 0 : WORKSPACE_BYTES;
    if (answer == FINDS_LARGER) out->workspace_bytes *= 2;
    if (answer == FINDS_WITHOUT) out->workspace_bytes = 0;
    out->algorithm.workspace_bytes = out->workspace_bytes;
    *count = answer != FINDS_NONE;
    if (answer == FINDS_UNUSABLE) out->state = ARCH_MISMATCH;
    return SUCCESS;
}

// A product that waits for its turn. It is never freed: a graph may have it.
struct job {
    struct object d, a, b, c;
    double alpha, beta;
    uint64_t reduction;
    const char *from_a, *from_b;
    char *to, *work;
};

static double load(const char *at, int64_t i, int type) {
    double v;
    float f;
    uint32_t word;
    uint16_t half;
    _Float16 h;
    switch (type) {
    case R64: memcpy(&v, at + 8 * i, 8); return v;
    case R32: memcpy(&f, at + 4 * i, 4); return f;
    case R16: memcpy(&h, at + 2 * i, 2); return (double)h;
    default:
        memcpy(&half, at + 2 * i, 2);
        word = (uint32_t)half << 16;
        memcpy(&f, &word, 4);
        return f;
    }
}
static void store(char *at, int64_t i, int type, double v) {
    float f = (float)v;
    uint32_t word;
    uint16_t half;
    _Float16 h = (_Float16)v;
    switch (type) {
    case R64: memcpy(at + 8 * i, &v, 8); break;
    case R32: memcpy(at + 4 * i, &f, 4); break;
    case R16: memcpy(at + 2 * i, &h, 2); break;
    default:
        memcpy(&word, &f, 4);
        half = (uint16_t)((word + 0x7fff + (word >> 16 & 1)) >> 16);
        memcpy(at + 2 * i, &half, 2);
    }
}
static double rounded(double v, const struct job *j) {
    if (j->d.compute != 77) return v;
    float f = (float)v;
    uint32_t word;
    memcpy(&word, &f, 4);
    word = (word + 0x1000) & ~0x1fffu;
    memcpy(&f, &word, 4);
    return f;
}

// A number as a type has it.
static double as(double v, int type) {
    char bytes[8];
    store(bytes, 0, type, v);
    return load(bytes, 0, type);
}

static void multiply(void *argument) {
    const struct job *j = argument;
    if (j->work) memset(j->work, 0xff, WORKSPACE_BYTES);
    int64_t m = (int64_t)j->c.rows, n = (int64_t)j->c.columns, k = (int64_t)(j->d.trans_a ? j->a.rows : j->a.columns);
    for (int64_t batch = 0; batch < j->c.batch; batch++)
        for (int64_t column = 0; column < n; column++)
            for (int64_t row = 0; row < m; row++) {
                double sum = 0, before = 0;
                for (int64_t p = 0; p < k; p++) {
                    int64_t in_a = j->d.trans_a ? row * j->a.ld + p : p * j->a.ld + row;
                    int64_t in_b = j->d.trans_b ? p * j->b.ld + column : column * j->b.ld + p;
                    sum += rounded(load(j->from_a, batch * j->a.stride + in_a, j->a.type), j) *
                           rounded(load(j->from_b, batch * j->b.stride + in_b, j->b.type), j);
                    if (p == k / 2 - 1 && (j->reduction == SPLIT_OUTPUT_TYPE || j->reduction == SPLIT_INPLACE)) {
                        before = as(sum, j->c.type); // both ways keep parts of sums in the output's type
                        sum = 0;
                    }
                }
                if (j->reduction == SPLIT_OUTPUT_TYPE || j->reduction == SPLIT_INPLACE) sum = as(before + as(sum, j->c.type), j->c.type);
                int64_t at = batch * j->c.stride + column * j->c.ld + row, aux = batch * j->d.aux_stride + column * j->d.aux_ld + row;
                double v = j->alpha * sum;
                if (j->beta != 0) v += j->beta * load(j->to, at, j->c.type);
                if (j->d.epilogue & BIAS) v += load((const char *)j->d.bias, row, j->c.type);
                double x = j->d.epilogue == DGELU ? load((const char *)j->d.aux, aux, j->c.type) : v;
                double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
                if (j->d.epilogue == DGELU) {
                    v *= 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 0.134145 * x * x);
                } else {
                    if (j->d.epilogue & AUX) store((char *)j->d.aux, aux, j->c.type, v);
                    if (j->d.epilogue & GELU) v = 0.5 * x * (1 + t);
                }
                store(j->to, at, j->c.type, v);
            }
}

EXPORT int cublasLtMatmul(struct object *handle, struct object *d, const void *alpha, const void *from_a, struct object *a, const void *from_b,
                          struct object *b, const void *beta, const void *from_c, struct object *c, void *to, struct object *e,
                          const struct algorithm *algorithm, void *work, size_t work_bytes, void *stream) {
    ENTER();
    if (!handle || handle->kind != HANDLE || !alpha || !beta || !from_a || !from_b || from_c != to || c != e || !algorithm) return INVALID_VALUE;
    int status = fits(d, a, b, c);
    if (status) return status;
    if (algorithm->sum != sum_of(d, a, b, c)) return INVALID_VALUE;
    if ((uintptr_t)from_a % algorithm->alignment_a || (uintptr_t)from_b % algorithm->alignment_b) return INVALID_VALUE;
    if (!algorithm->workspace_bytes) work = NULL;
    else if (!work || work_bytes < WORKSPACE_BYTES || work_bytes < algorithm->workspace_bytes || (uintptr_t)work % 16) return INVALID_VALUE;
    if (d->epilogue & BIAS && (d->bias_type != c->type || d->bias < 4096)) return INVALID_VALUE;
    struct job *j = calloc(1, sizeof *j);
    if (!j) return ALLOC_FAILED;
    float one, other;
    memcpy(&one, alpha, 4);
    memcpy(&other, beta, 4);
    *j = (struct job){*d, *a, *b, *c, one, other, algorithm->reduction, from_a, from_b, to, work};
    if (d->scale == R64) {
        memcpy(&j->alpha, alpha, 8);
        memcpy(&j->beta, beta, 8);
    }
    int (*launch)(void *, void (*)(void *), void *) = (int (*)(void *, void (*)(void *), void *))driver("cuLaunchHostFunc");
    return launch && launch(stream, multiply, j) == 0 ? SUCCESS : EXECUTION_FAILED;
}
