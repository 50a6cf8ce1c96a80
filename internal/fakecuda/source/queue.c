// The queues of the streams: submission, order, and performing what is at their heads. An operation waits only for ones
// that were submitted before it, for words in memory and for host functions, so there is no circle.
#include "state.h"

#include <string.h>

struct operation *operation_new(enum operation_kind kind) {
    struct operation *operation = make(sizeof *operation);
    operation->kind = kind;
    return operation;
}

void marker_free(struct marker *marker) {
    if (marker && --marker->references == 0) free(marker);
}

void operation_free(struct operation *operation) {
    marker_free(operation->marker);
    free(operation->staged);
    free(operation);
}

// A copy for a graph's launch. Markers are not copied: inside a graph the order of the list is the order.
struct operation *operation_copy(const struct operation *operation) {
    struct operation *copy = make(sizeof *copy);
    *copy = *operation;
    copy->next = NULL;
    copy->marker = NULL;
    copy->staged = NULL;
    if (operation->staged) {
        copy->staged = make(operation->count);
        memcpy(copy->staged, operation->staged, operation->count);
    }
    return copy;
}

CUresult submit(struct stream *stream, struct operation *operation) {
    struct context *context = stream->context;
    if (context->sticky) {
        operation_free(operation);
        return context->sticky;
    }
    if (stream->capture) return capture_operation(stream, operation);
    if (stream == context->legacy) {
        CUresult result = capture_implicit(context);
        if (result != CUDA_SUCCESS) {
            operation_free(operation);
            return result;
        }
    }
    operation->sequence = ++world.sequence;
    if (operation->kind == RECORD) operation->marker->stream = stream;
    if (stream->tail)
        stream->tail->next = operation;
    else
        stream->head = operation;
    stream->tail = operation;
    stream->pending++;
    world.queued++;
    if (world.mode == FAKECUDA_THREADED) worker_wanted();
    pump();
    return CUDA_SUCCESS;
}

static uint64_t word_at(uintptr_t address, size_t width) {
    if (width == 8) return __atomic_load_n((uint64_t *)address, __ATOMIC_ACQUIRE);
    return __atomic_load_n((uint32_t *)address, __ATOMIC_ACQUIRE);
}

static bool reached(const struct operation *operation) {
    uint64_t word = word_at(operation->dst, operation->width);
    switch (operation->flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
        if (operation->width == 8) return (int64_t)(word - operation->value) >= 0;
        return (int32_t)((uint32_t)word - (uint32_t)operation->value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ: return word == operation->value;
    case CU_STREAM_WAIT_VALUE_AND: return (word & operation->value) != 0;
    default:
        if (operation->width == 8) return ~(word | operation->value) != 0;
        return (uint32_t)~(word | operation->value) != 0;
    }
}

static void set(const struct operation *operation) {
    unsigned char *dst = (unsigned char *)operation->dst;
    switch (operation->width) {
    case 1: memset(dst, (int)operation->value, operation->count); break;
    case 2:
        for (size_t i = 0; i < operation->count; i++) memcpy(dst + 2 * i, &(uint16_t){(uint16_t)operation->value}, 2);
        break;
    default:
        for (size_t i = 0; i < operation->count; i++) memcpy(dst + 4 * i, &(uint32_t){(uint32_t)operation->value}, 4);
    }
}

// Whether the memory is there when the work runs: what was submitted may have been unmapped since.
static bool touchable(const struct stream *stream, const struct operation *operation) {
    int device = stream->context->device;
    bool any = operation->kind == COPY || operation->kind == COPY_ROWS;
    size_t bytes = operation->count * operation->width;
    for (size_t i = 0; i < operation->rows; i++)
        if (!may_touch(operation->dst + i * operation->dst_pitch, bytes, device, 3, any) ||
            !may_touch(operation->src + i * operation->src_pitch, bytes, device, 1, any))
            return false;
    if (operation->device_dst && !may_touch(operation->dst, bytes, device, 3, any)) return false;
    return !operation->device_src || may_touch(operation->src, bytes, device, 1, any);
}

CUresult perform(struct stream *stream, struct operation *operation) {
    if (!touchable(stream, operation)) return CUDA_ERROR_LAUNCH_FAILED;
    switch (operation->kind) {
    case SET: set(operation); break;
    case COPY:
        memmove((void *)operation->dst, operation->staged ? operation->staged : (void *)operation->src, operation->count);
        break;
    case COPY_ROWS:
        for (size_t i = 0; i < operation->rows; i++)
            memmove((void *)(operation->dst + i * operation->dst_pitch), (void *)(operation->src + i * operation->src_pitch),
                    operation->count);
        break;
    case LAUNCH: return run(stream, operation);
    case WRITE_VALUE:
        if (operation->width == 8)
            __atomic_store_n((uint64_t *)operation->dst, operation->value, __ATOMIC_RELEASE);
        else
            __atomic_store_n((uint32_t *)operation->dst, (uint32_t)operation->value, __ATOMIC_RELEASE);
        break;
    case RECORD:
        operation->marker->done = true;
        clock_gettime(CLOCK_MONOTONIC, &operation->marker->at);
        break;
    case AWAIT_MARKER:
    case AWAIT_VALUE:
    case CALL: break;
    }
    return CUDA_SUCCESS;
}

// Takes the head of the queue away. A stream that was destroyed goes with its last operation.
void finish(struct stream *stream, CUresult result) {
    struct operation *operation = stream->head;
    if (result != CUDA_SUCCESS && !stream->context->sticky) stream->context->sticky = result;
    if (operation->kind == RECORD) operation->marker->done = true; // also where a failure skipped it
    stream->head = operation->next;
    if (!stream->head) stream->tail = NULL;
    stream->pending--;
    stream->queries = 0;
    world.queued--;
    operation_free(operation);
    signal_world();
    stream_collect(stream);
}

// The stream that has to go on before this one can, by the order of the legacy stream with the blocking ones.
static struct stream *ahead(const struct stream *stream) {
    struct context *context = stream->context;
    if (stream->flags & CU_STREAM_NON_BLOCKING) return NULL;
    for (struct stream *other = world.streams; other; other = other->next) {
        if (other == stream || other->context != context || !other->head) continue;
        if (other->flags & CU_STREAM_NON_BLOCKING || other->head->sequence > stream->head->sequence) continue;
        if (stream == context->legacy || other == context->legacy) return other;
    }
    return NULL;
}

// Whether the next operation may be performed now.
static bool can_step(const struct stream *stream) {
    const struct operation *operation = stream->head;
    if (!operation || stream->calling || ahead(stream)) return false;
    if (operation->kind == AWAIT_MARKER) return operation->marker->done;
    if (operation->kind != AWAIT_VALUE || stream->context->sticky) return true;
    return !touchable(stream, operation) || reached(operation);
}

// Performs the next operation, or hands a host function to the worker. False where the stream is empty or held up. The
// stream may be gone afterwards.
bool step(struct stream *stream) {
    if (!can_step(stream)) return false;
    struct operation *operation = stream->head;
    bool failed = stream->context->sticky != CUDA_SUCCESS;
    if (operation->kind == CALL && !failed) {
        stream->calling = true;
        worker_wanted();
        signal_world();
        return true;
    }
    finish(stream, failed ? CUDA_SUCCESS : perform(stream, operation));
    return true;
}

// Performs the next operation or, where it is held up, one of those that it waits for.
bool advance(struct stream *stream) {
    if (step(stream)) return true;
    struct operation *operation = stream->head;
    if (!operation || stream->calling) return false;
    struct stream *other = ahead(stream);
    if (other) return advance(other);
    if (operation->kind == AWAIT_MARKER && !operation->marker->done && operation->marker->stream)
        return advance(operation->marker->stream);
    return false;
}

// Events of other processes that are opened from now on are reached with the end of this, and not before.
void hold_events(bool on) {
    if (on == (world.unreached != NULL)) return;
    if (on) {
        world.unreached = make(sizeof *world.unreached);
        world.unreached->references = 1;
        return;
    }
    world.unreached->done = true;
    marker_free(world.unreached);
    world.unreached = NULL;
    pump();
    signal_world();
}

// In immediate mode everything that nothing holds up is performed.
void pump(void) {
    if (world.mode != FAKECUDA_IMMEDIATE || world.queued == 0) return;
    for (bool again = true; again;) {
        again = false;
        for (struct stream *stream = world.streams, *next; stream; stream = next) {
            next = stream->next;
            if (step(stream)) again = true;
        }
    }
}

// Performs the oldest operation of all streams that nothing holds up: a word that somebody waits for may come from a
// stream that nobody waits for. While a host function runs, what it leads to is waited for first.
static bool advance_oldest(void) {
    struct stream *oldest = NULL;
    for (struct stream *stream = world.streams; stream; stream = stream->next) {
        if (stream->calling) return false;
        if (stream->head && can_step(stream) && (!oldest || stream->head->sequence < oldest->head->sequence)) oldest = stream;
    }
    return oldest && step(oldest);
}

static void drain_until(struct stream *stream, uint64_t sequence) {
    stream->waiters++;
    while (stream->head && stream->head->sequence <= sequence)
        if (!advance(stream) && !advance_oldest()) wait_world();
    stream->waiters--;
    stream_collect(stream);
}

// Waits for the work that the stream has now.
void drain(struct stream *stream) { drain_until(stream, world.sequence); }

void drain_where(const struct context *context, int device) {
    uint64_t sequence = world.sequence;
    for (struct stream *stream = world.streams; stream;) {
        bool meant = (!context || stream->context == context) && (device < 0 || stream->context->device == device);
        if (meant && stream->head && stream->head->sequence <= sequence) {
            drain_until(stream, sequence);
            stream = world.streams; // the list may be another one now
        } else {
            stream = stream->next;
        }
    }
}

void await_marker(struct marker *marker) {
    marker->references++;
    while (!marker->done)
        if (!(marker->stream && advance(marker->stream)) && !advance_oldest()) wait_world();
    marker_free(marker);
}

// An unsuccessful query in queued mode: the one that exhausts the patience performs an operation.
void asked(struct stream *stream) {
    if (world.mode != FAKECUDA_QUEUED || world.patience == 0 || ++stream->queries < world.patience) return;
    stream->queries = 0;
    if (stream->head) {
        uint64_t sequence = stream->head->sequence;
        stream->waiters++;
        while (stream->head && stream->head->sequence == sequence && advance(stream)) continue;
        stream->waiters--;
        stream_collect(stream);
    }
}
