// The calls on events. What an event has recorded is a marker in a stream's queue; recording again leaves the old marker
// to those who wait for it.
#include "state.h"

#include <string.h>
#include <unistd.h>

static struct event *event_at(CUevent handle) { return object_alive((uintptr_t)handle, EVENT); }

void event_free(struct event *event) {
    marker_free(event->marker);
    nodes_clear(&event->before);
    object_free(event);
}

CUresult cuEventCreate(CUevent *handle, unsigned int flags) {
    ENTER(USUAL | CURRENT);
    bool shared = flags & CU_EVENT_INTERPROCESS;
    if (!handle || flags > 7 || (shared && !(flags & CU_EVENT_DISABLE_TIMING))) return leave(CUDA_ERROR_INVALID_VALUE);
    struct event *event = object_new(sizeof *event, EVENT);
    event->context = current();
    event->flags = flags;
    *handle = (CUevent)event->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuEventDestroy_v2(CUevent handle) {
    ENTER(STARTED);
    struct event *event = event_at(handle);
    if (!event) return leave(CUDA_ERROR_INVALID_HANDLE);
    event_free(event);
    return leave(CUDA_SUCCESS);
}

static CUresult record(CUevent handle, CUstream stream_handle) {
    struct event *event = event_at(handle);
    if (!event) return CUDA_ERROR_INVALID_HANDLE;
    struct stream *stream;
    CUresult result = stream_at(stream_handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (stream->context != event->context) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) return capture_event(stream, event);
    event->capture = NULL;
    nodes_clear(&event->before);
    struct marker *marker = make(sizeof *marker);
    marker->references = 2; // the event's and the operation's
    marker->timed = !(event->flags & CU_EVENT_DISABLE_TIMING);
    marker_free(event->marker);
    event->marker = marker;
    struct operation *operation = operation_new(RECORD);
    operation->marker = marker;
    return submit(stream, operation);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    ENTER(USUAL);
    return leave(record(event, stream));
}

// What an event answers that was recorded in a capture: the question spoils that. When it has ended, the event is good only to
// record again.
static CUresult captured(const struct event *event) {
    if (event->capture->ended || event->capture->invalid) return CUDA_ERROR_INVALID_VALUE;
    capture_spoil(event->capture);
    return CUDA_ERROR_CAPTURED_EVENT;
}

// An event that was never recorded has passed.
CUresult cuEventQuery(CUevent handle) {
    ENTER(USUAL | UNCAPTURED);
    struct event *event = event_at(handle);
    if (!event) return leave(CUDA_ERROR_INVALID_HANDLE);
    if (event->context->sticky) return leave(event->context->sticky);
    if (event->capture) return leave(captured(event));
    if (!event->marker || event->marker->done) return leave(CUDA_SUCCESS);
    if (event->marker->stream) asked(event->marker->stream);
    return leave(CUDA_ERROR_NOT_READY);
}

CUresult cuEventSynchronize(CUevent handle) {
    ENTER(USUAL | UNCAPTURED);
    struct event *event = event_at(handle);
    if (!event) return leave(CUDA_ERROR_INVALID_HANDLE);
    struct context *context = event->context;
    if (event->capture) return leave(captured(event));
    if (event->marker) await_marker(event->marker);
    return leave(context->sticky);
}

CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags) {
    ENTER(USUAL);
    if (flags > 1) return leave(CUDA_ERROR_INVALID_VALUE);
    struct event *event = event_at(handle);
    if (!event) return leave(CUDA_ERROR_INVALID_HANDLE);
    struct stream *stream;
    CUresult result = stream_at(stream_handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (stream == stream->context->legacy && (result = capture_implicit(stream->context)) != CUDA_SUCCESS)
        return leave(result);
    if (event->capture) return leave(capture_join(stream, event));
    if (stream->capture && stream->capture->invalid) return leave(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    if (stream->capture && event->marker) {
        capture_spoil(stream->capture);
        return leave(CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    }
    if (!event->marker || event->marker->done) return leave(CUDA_SUCCESS);
    struct operation *operation = operation_new(AWAIT_MARKER);
    operation->marker = event->marker;
    event->marker->references++;
    return leave(submit(stream, operation));
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end) {
    struct event *a = event_at(start), *b = event_at(end);
    if (!milliseconds) return CUDA_ERROR_INVALID_VALUE;
    if (!a || !b || !a->marker || !b->marker || !a->marker->timed || !b->marker->timed) return CUDA_ERROR_INVALID_HANDLE;
    if (!a->marker->done || !b->marker->done) return CUDA_ERROR_NOT_READY;
    *milliseconds = (float)((double)(b->marker->at.tv_sec - a->marker->at.tv_sec) * 1e3 +
                            (double)(b->marker->at.tv_nsec - a->marker->at.tv_nsec) / 1e6);
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    ENTER(USUAL);
    return leave(elapsed(milliseconds, start, end));
}

CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) __attribute__((visibility("default")));
CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end) {
    ENTER(USUAL);
    return leave(elapsed(milliseconds, start, end));
}

// A descriptor of an event: who made it, and its handle there.
struct descriptor {
    char word[16];
    uint64_t owner, event, check;
};
_Static_assert(sizeof(struct descriptor) <= sizeof(CUipcEventHandle), "CUipcEventHandle");

// Two processes may have the library at one address.
static uint64_t this_process(void) { return (uintptr_t)&world ^ (uint64_t)getpid() << 48; }

static const char descriptor_word[16] = "fakecuda event ";

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event_handle) {
    ENTER(USUAL);
    struct event *event = event_at(event_handle);
    if (!event) return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!handle) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!(event->flags & CU_EVENT_INTERPROCESS)) return leave(CUDA_ERROR_INVALID_HANDLE);
    struct descriptor d = {.owner = this_process(), .event = event->object.id, .check = this_process() ^ event->object.id};
    memcpy(d.word, descriptor_word, sizeof d.word);
    memset(handle, 0, sizeof *handle);
    memcpy(handle, &d, sizeof d);
    memset(handle->reserved + 56, 0x5a, 8); // the last word shows whether all of it came back
    return leave(CUDA_SUCCESS);
}

// Another copy of the library is another process. Its event says nothing of its work here: it has always passed, unless a test holds it.
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
    ENTER(USUAL | CURRENT);
    struct descriptor d;
    memcpy(&d, &handle, sizeof d);
    bool whole = handle.reserved[56] == 0x5a && handle.reserved[63] == 0x5a;
    if (!event || !whole || memcmp(d.word, descriptor_word, sizeof d.word) != 0 || (d.owner ^ d.event) != d.check)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (d.owner == this_process()) return leave(CUDA_ERROR_INVALID_CONTEXT);
    struct event *opened = object_new(sizeof *opened, EVENT);
    opened->context = current();
    opened->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
    if ((opened->marker = world.unreached)) world.unreached->references++;
    *event = (CUevent)opened->object.id;
    return leave(CUDA_SUCCESS);
}
