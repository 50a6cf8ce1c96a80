// The calls on streams.
#include "state.h"

#include <string.h>

struct stream *stream_new(struct context *context, unsigned flags, int priority, bool named) {
    struct stream *stream = make(sizeof *stream);
    if (named) object_name(&stream->object, STREAM, 0);
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->link = &world.streams;
    stream->next = world.streams;
    if (stream->next) stream->next->link = &stream->next;
    world.streams = stream;
    return stream;
}

// Takes the handle away. What is queued still runs.
void stream_retire(struct stream *stream) {
    object_unname(&stream->object);
    stream->destroyed = true;
    capture_retire(stream);
    stream_collect(stream);
}

// Frees a destroyed stream that nothing needs any more.
void stream_collect(struct stream *stream) {
    if (!stream->destroyed || stream->head || stream->waiters > 0 || stream->capture) return;
    *stream->link = stream->next;
    if (stream->next) stream->next->link = stream->link;
    free(stream);
}

// The stream behind a handle: 0 and 1 are the current context's legacy stream, 2 is its per-thread one, which all threads
// share here.
CUresult stream_at(CUstream handle, struct stream **stream) {
    struct context *context = NULL;
    if ((uintptr_t)handle <= 2) {
        CUresult result = current_result(&context);
        if (result != CUDA_SUCCESS) return result;
        *stream = handle == CU_STREAM_PER_THREAD ? context->per_thread : context->legacy;
        return context->sticky;
    }
    *stream = object_alive((uintptr_t)handle, STREAM);
    return *stream ? (*stream)->context->sticky : CUDA_ERROR_INVALID_HANDLE;
}

// The stream, for calls that a capture forbids: they spoil the capture.
static CUresult idle_stream_at(CUstream handle, struct stream **stream) {
    CUresult result = stream_at(handle, stream);
    if (result != CUDA_SUCCESS) return result;
    if (*stream == (*stream)->context->legacy && (result = capture_implicit((*stream)->context)) != CUDA_SUCCESS) return result;
    return capture_blocks(*stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority) {
    ENTER(USUAL | CURRENT);
    if (!handle || flags > CU_STREAM_NON_BLOCKING) return leave(CUDA_ERROR_INVALID_VALUE);
    if (priority > 0) priority = 0; // out of range is brought into it
    if (priority < -5) priority = -5;
    *handle = (CUstream)stream_new(current(), flags, priority, true)->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamCreate(CUstream *handle, unsigned int flags) {
    ENTER(USUAL | CURRENT);
    if (!handle || flags > CU_STREAM_NON_BLOCKING) return leave(CUDA_ERROR_INVALID_VALUE);
    *handle = (CUstream)stream_new(current(), flags, 0, true)->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamDestroy_v2(CUstream handle) {
    ENTER(STARTED);
    struct stream *stream = object_alive((uintptr_t)handle, STREAM);
    if (!stream) return leave(CUDA_ERROR_INVALID_HANDLE);
    stream_retire(stream);
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamQuery(CUstream handle) {
    ENTER(USUAL | UNCAPTURED);
    struct stream *stream;
    CUresult result = idle_stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    struct context *context = stream->context;
    if (stream->pending > 0) {
        asked(stream);
        result = CUDA_ERROR_NOT_READY;
    }
    return leave(context->sticky ? context->sticky : result);
}

CUresult cuStreamSynchronize(CUstream handle) {
    ENTER(USUAL | UNCAPTURED);
    struct stream *stream;
    CUresult result = idle_stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    struct context *context = stream->context;
    drain(stream);
    return leave(context->sticky);
}

CUresult cuStreamGetPriority(CUstream handle, int *priority) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!priority) return leave(CUDA_ERROR_INVALID_VALUE);
    *priority = stream->priority;
    return leave(CUDA_SUCCESS);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned int *flags) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!flags) return leave(CUDA_ERROR_INVALID_VALUE);
    *flags = stream->flags;
    return leave(CUDA_SUCCESS);
}

static CUresult call_on(CUstream handle, struct operation wanted) {
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!wanted.function) return CUDA_ERROR_INVALID_VALUE;
    struct operation *operation = operation_new(wanted.kind);
    *operation = wanted;
    return submit(stream, operation);
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *userData) {
    ENTER(USUAL);
    return leave(call_on(handle, (struct operation){.kind = CALL, .function = function, .argument = userData}));
}

// A word that work waits for or writes: in memory of the device or in pinned memory, aligned to its width.
static CUresult word_on(CUstream handle, struct operation wanted) {
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (wanted.dst % wanted.width != 0) return CUDA_ERROR_INVALID_VALUE;
    if (!may_touch(wanted.dst, wanted.width, stream->context->device, 3, false)) return CUDA_ERROR_INVALID_VALUE;
    wanted.count = 1;
    wanted.device_dst = true;
    struct operation *operation = operation_new(wanted.kind);
    *operation = wanted;
    return submit(stream, operation);
}

#define WORD_CALL(name, bits, operation_kind, allowed)                                                           \
    CUresult name(CUstream handle, CUdeviceptr p, cuuint##bits##_t value, unsigned int flags)                    \
        __attribute__((visibility("default")));                                                                  \
    CUresult name(CUstream handle, CUdeviceptr p, cuuint##bits##_t value, unsigned int flags) {                  \
        ENTER(USUAL);                                                                                            \
        if (flags & ~(unsigned)(allowed)) return leave(CUDA_ERROR_INVALID_VALUE);                                \
        return leave(word_on(handle, (struct operation){                                                         \
                                         .kind = operation_kind, .dst = p, .value = value, .width = bits / 8, .flags = flags})); \
    }

#undef cuStreamWaitValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue32
#undef cuStreamWriteValue64
WORD_CALL(cuStreamWaitValue32_v2, 32, AWAIT_VALUE, 3 | CU_STREAM_WAIT_VALUE_FLUSH)
WORD_CALL(cuStreamWaitValue64_v2, 64, AWAIT_VALUE, 3 | CU_STREAM_WAIT_VALUE_FLUSH)
WORD_CALL(cuStreamWriteValue32_v2, 32, WRITE_VALUE, 0) // only the first version can do without a barrier
WORD_CALL(cuStreamWriteValue64_v2, 64, WRITE_VALUE, 0)
WORD_CALL(cuStreamWaitValue32, 32, AWAIT_VALUE, 3 | CU_STREAM_WAIT_VALUE_FLUSH)
WORD_CALL(cuStreamWaitValue64, 64, AWAIT_VALUE, 3 | CU_STREAM_WAIT_VALUE_FLUSH)
WORD_CALL(cuStreamWriteValue32, 32, WRITE_VALUE, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
WORD_CALL(cuStreamWriteValue64, 64, WRITE_VALUE, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
