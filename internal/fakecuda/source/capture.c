// Capturing a stream's work as a graph, and launching graphs. A graph is a list of operations in the order of their
// submission, which is one of the orders that its dependencies allow.
#include "state.h"

#include <string.h>

void graph_clear(struct graph *graph) {
    for (struct operation *operation = graph->head, *next; operation; operation = next) {
        next = operation->next;
        operation_free(operation);
    }
    graph->head = graph->tail = NULL;
    graph->count = 0;
}

// Puts an operation behind the others, as a node with a name of its own unless it has one.
void graph_append(struct graph *graph, struct operation *operation) {
    operation->next = NULL;
    if (!operation->node) operation->node = ((uintptr_t)0x6e0 << 36) + (uintptr_t)(++world.nodes << 4);
    if (graph->tail)
        graph->tail->next = operation;
    else
        graph->head = operation;
    graph->tail = operation;
    graph->count++;
}

static void nodes_reach(struct nodes *nodes, size_t count) {
    if (nodes->count >= count) return;
    uint64_t *words = make(count * sizeof *words);
    if (nodes->count > 0) memcpy(words, nodes->words, nodes->count * sizeof *words);
    free(nodes->words);
    nodes->words = words;
    nodes->count = count;
}

static void nodes_add(struct nodes *nodes, size_t number) {
    nodes_reach(nodes, number / 64 + 1);
    nodes->words[number / 64] |= (uint64_t)1 << number % 64;
}

static void nodes_join(struct nodes *nodes, const struct nodes *others) {
    nodes_reach(nodes, others->count);
    for (size_t i = 0; i < others->count; i++) nodes->words[i] |= others->words[i];
}

void nodes_clear(struct nodes *nodes) {
    free(nodes->words);
    *nodes = (struct nodes){0};
}

// Whether all of the first count operations are there.
static bool nodes_whole(const struct nodes *nodes, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (i / 64 >= nodes->count || !(nodes->words[i / 64] >> i % 64 & 1)) return false;
    return true;
}

void capture_spoil(struct capture *capture) { capture->invalid = true; }

CUresult capture_operation(struct stream *stream, struct operation *operation) {
    struct capture *capture = stream->capture;
    if (capture->invalid) {
        operation_free(operation);
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    nodes_add(&stream->before, capture->graph->count);
    graph_append(capture->graph, operation);
    return CUDA_SUCCESS;
}

CUresult capture_event(struct stream *stream, struct event *event) {
    if (stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    marker_free(event->marker);
    event->marker = NULL;
    event->capture = stream->capture;
    nodes_clear(&event->before);
    nodes_join(&event->before, &stream->before);
    return CUDA_SUCCESS;
}

// A stream that waits for a captured event becomes part of the capture, or joins the event's stream to its own.
CUresult capture_join(struct stream *stream, struct event *event) {
    struct capture *capture = event->capture;
    if (stream->capture && stream->capture->invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (capture->ended || capture->invalid) {
        if (stream->capture) capture_spoil(stream->capture);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (stream == stream->context->legacy) {
        capture_spoil(capture);
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    if (!stream->capture) {
        stream->capture = capture;
        nodes_join(&stream->before, &event->before);
        return CUDA_SUCCESS;
    }
    if (stream->capture != capture) {
        capture_spoil(capture);
        capture_spoil(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_MERGE;
    }
    nodes_join(&stream->before, &event->before);
    return CUDA_SUCCESS;
}

// Whether a capture is under way that a call on this stream spoils.
bool capture_blocks(struct stream *stream) {
    if (stream->capture) capture_spoil(stream->capture);
    return stream->capture != NULL;
}

// Unsafe calls are refused, by CUDA's rules, while this thread captures, or any thread does in global mode, save in a
// thread that has exchanged its mode.
CUresult capture_forbids(void) {
    struct thread *thread = this_thread();
    if (thread->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
    CUresult result = CUDA_SUCCESS;
    for (struct capture *capture = world.captures; capture; capture = capture->next) {
        if (capture->ended || capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED) continue;
        bool own = pthread_equal(capture->thread, pthread_self());
        bool global = capture->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                      thread->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
        if (!own && !global) continue;
        capture_spoil(capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

static bool tied(const struct stream *stream, const struct context *context) {
    return stream->context == context && stream->capture && !(stream->flags & CU_STREAM_NON_BLOCKING);
}

// Work on the legacy stream would order itself with a blocking stream that is captured.
CUresult capture_implicit(const struct context *context) {
    CUresult result = CUDA_SUCCESS;
    for (struct stream *stream = world.streams; stream; stream = stream->next) {
        if (!tied(stream, context)) continue;
        capture_spoil(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
    return result;
}

// Captures in a context, whatever their modes and threads, forbid to wait for all of it.
CUresult capture_in(const struct context *context) {
    CUresult result = CUDA_SUCCESS;
    for (struct stream *stream = world.streams; stream; stream = stream->next) {
        if (stream->context != context || !stream->capture) continue;
        capture_spoil(stream->capture);
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return result;
}

CUresult cuStreamBeginCapture_v2(CUstream handle, CUstreamCaptureMode mode) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if ((unsigned)mode > 2) return leave(CUDA_ERROR_INVALID_VALUE);
    if (stream == stream->context->legacy) return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    if (stream->capture) return leave(CUDA_ERROR_ILLEGAL_STATE);
    struct capture *capture = make(sizeof *capture);
    capture->number = ++world.numbers;
    capture->origin = stream;
    capture->graph = make(sizeof *capture->graph);
    capture->mode = mode;
    capture->thread = pthread_self();
    capture->next = world.captures;
    world.captures = capture;
    stream->capture = capture;
    return leave(CUDA_SUCCESS);
}

void capture_end(struct capture *capture) {
    for (struct stream *stream = world.streams, *next; stream; stream = next) {
        next = stream->next;
        if (stream->capture != capture) continue;
        capture_leave(stream);
        stream_collect(stream);
    }
    capture->ended = true;
}

static CUresult end(struct capture *capture, struct graph **graph) {
    CUresult result = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                      : nodes_whole(&capture->origin->before, capture->graph->count)
                          ? CUDA_SUCCESS
                          : CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    capture_end(capture);
    if (result == CUDA_SUCCESS) {
        *graph = capture->graph;
        object_name(&(*graph)->object, GRAPH, 0);
    } else {
        graph_clear(capture->graph);
        free(capture->graph);
    }
    capture->graph = NULL;
    return result;
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *out) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!out) return leave(CUDA_ERROR_INVALID_VALUE);
    *out = NULL;
    struct capture *capture = stream->capture;
    if (!capture) return leave(CUDA_ERROR_ILLEGAL_STATE);
    if (capture->origin != stream) {
        capture_spoil(capture);
        return leave(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    }
    struct graph *graph = NULL;
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(capture->thread, pthread_self())) {
        capture_spoil(capture);
        end(capture, &graph); // the capture is over, and there is no graph
        return leave(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    }
    result = end(capture, &graph);
    if (graph) *out = (CUgraph)graph->object.id;
    return leave(result);
}

static CUstreamCaptureStatus status_of(const struct stream *stream) {
    if (!stream->capture) return CU_STREAM_CAPTURE_STATUS_NONE;
    return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!status) return leave(CUDA_ERROR_INVALID_VALUE);
    if (stream == stream->context->legacy) // to ask does a capture no harm
        for (const struct stream *other = world.streams; other; other = other->next)
            if (tied(other, stream->context)) return leave(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    *status = status_of(stream);
    return leave(CUDA_SUCCESS);
}

// Says whether and what; the graph in the making and its nodes are not shown.
CUresult cuStreamGetCaptureInfo_v2(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                   const CUgraphNode **dependencies, size_t *count) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!status) return leave(CUDA_ERROR_INVALID_VALUE);
    *status = status_of(stream);
    if (id) *id = stream->capture ? stream->capture->number : 0;
    if (graph) *graph = NULL;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return leave(CUDA_SUCCESS);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
    ENTER(STARTED);
    if (!mode || (unsigned)*mode > 2) return leave(CUDA_ERROR_INVALID_VALUE);
    struct thread *thread = this_thread();
    CUstreamCaptureMode before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
    return leave(CUDA_SUCCESS);
}

// Takes a stream out of its capture.
void capture_leave(struct stream *stream) {
    stream->capture = NULL;
    nodes_clear(&stream->before);
}

// A stream is destroyed: a capture that began with it is over, one that it has joined goes on.
void capture_retire(struct stream *stream) {
    struct capture *capture = stream->capture;
    if (!capture) return;
    capture_leave(stream);
    if (capture->origin == stream) capture_end(capture);
}

// After a reset: captures that never ended, and the records of those that did.
void capture_forget(void) {
    for (struct stream *stream = world.streams; stream; stream = stream->next) capture_leave(stream);
    for (struct capture *capture = world.captures, *next; capture; capture = next) {
        next = capture->next;
        if (capture->graph) {
            graph_clear(capture->graph);
            free(capture->graph);
        }
        free(capture);
    }
    world.captures = NULL;
}
