// The calls on graphs: what a capture has made is counted, made executable, launched and destroyed.
#include "state.h"

#include <string.h>

static struct graph *graph_at(CUgraph handle) { return object_alive((uintptr_t)handle, GRAPH); }

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags) {
    ENTER(USUAL);
    if (!graph || flags) return leave(CUDA_ERROR_INVALID_VALUE);
    *graph = (CUgraph)((struct graph *)object_new(sizeof(struct graph), GRAPH))->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
    ENTER(USUAL);
    struct graph *graph = graph_at(handle);
    if (!graph || !count) return leave(CUDA_ERROR_INVALID_VALUE);
    struct operation *operation = graph->head;
    for (size_t i = 0; nodes && i < *count; i++) {
        nodes[i] = operation ? (CUgraphNode)operation->node : NULL;
        if (operation) operation = operation->next;
    }
    if (!nodes || *count > graph->count) *count = graph->count;
    return leave(CUDA_SUCCESS);
}

CUresult cuGraphDestroy(CUgraph handle) {
    ENTER(STARTED);
    struct graph *graph = graph_at(handle);
    if (!graph) return leave(CUDA_ERROR_INVALID_VALUE);
    graph_clear(graph);
    object_free(graph);
    return leave(CUDA_SUCCESS);
}

// What is looked for among the nodes of all graphs.
struct search {
    uintptr_t node;
    const struct operation *found;
};

static void look(struct object *object, void *argument) {
    struct search *search = argument;
    for (const struct operation *operation = ((struct graph *)object)->head; operation; operation = operation->next)
        if (operation->node == search->node) search->found = operation;
}

static const struct operation *node_at(CUgraphNode handle) {
    struct search search = {.node = (uintptr_t)handle};
    if (handle) object_each(GRAPH, look, &search);
    return search.found;
}

static CUgraphNodeType type_of(const struct operation *operation) {
    switch (operation->kind) {
    case LAUNCH: return CU_GRAPH_NODE_TYPE_KERNEL;
    case COPY:
    case COPY_ROWS: return CU_GRAPH_NODE_TYPE_MEMCPY;
    case SET: return CU_GRAPH_NODE_TYPE_MEMSET;
    case CALL: return CU_GRAPH_NODE_TYPE_HOST;
    case AWAIT_VALUE:
    case WRITE_VALUE: return CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    default: return CU_GRAPH_NODE_TYPE_EMPTY;
    }
}

CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType *type) {
    ENTER(USUAL);
    const struct operation *operation = node_at(handle);
    if (!operation || !type) return leave(CUDA_ERROR_INVALID_VALUE);
    *type = type_of(operation);
    return leave(CUDA_SUCCESS);
}

static struct exec *exec_at(CUgraphExec handle) { return object_alive((uintptr_t)handle, EXEC); }

static void copy_nodes(struct graph *to, const struct graph *from) {
    for (const struct operation *operation = from->head; operation; operation = operation->next)
        graph_append(to, operation_copy(operation));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    ENTER(USUAL | UNCAPTURED);
    struct graph *graph = graph_at(handle);
    if (!out || !graph || flags > 15) return leave(CUDA_ERROR_INVALID_VALUE);
    struct exec *exec = object_new(sizeof *exec, EXEC);
    copy_nodes(&exec->graph, graph);
    *out = (CUgraphExec)exec->object.id;
    return leave(CUDA_SUCCESS);
}

void exec_free(struct exec *exec) {
    graph_clear(&exec->graph);
    marker_free(exec->marker);
    object_free(exec);
}

// Nodes are compared one by one in the order in which they were made: what depends on what is not looked at.
static int difference(const struct graph *a, const struct graph *b) {
    enum { SAME = 0, TOPOLOGY = 2, TYPE = 3 };
    if (a->count != b->count) return TOPOLOGY;
    const struct operation *x = a->head, *y = b->head;
    for (; x && y; x = x->next, y = y->next)
        if (type_of(x) != type_of(y)) return TYPE;
    return SAME;
}

CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info) {
    ENTER(USUAL);
    struct exec *exec = exec_at(handle);
    struct graph *graph = graph_at(graph_handle);
    if (!exec || !graph || !info) return leave(CUDA_ERROR_INVALID_VALUE);
    *info = (CUgraphExecUpdateResultInfo){.result = difference(&exec->graph, graph)};
    if (info->result != 0) return leave(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    struct graph updated = {0};
    copy_nodes(&updated, graph);
    struct operation *old = exec->graph.head;
    for (struct operation *operation = updated.head; operation; operation = operation->next, old = old->next)
        operation->node = old->node; // nodes are those of the graph that it was made of
    graph_clear(&exec->graph);
    exec->graph.head = updated.head;
    exec->graph.tail = updated.tail;
    exec->graph.count = updated.count;
    return leave(CUDA_SUCCESS);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params) {
    ENTER(USUAL);
    struct exec *exec = exec_at(handle);
    const struct operation *wanted = node_at(node);
    if (!exec || !wanted || wanted->kind != LAUNCH || !params) return leave(CUDA_ERROR_INVALID_VALUE);
    struct operation *mine = exec->graph.head;
    while (mine && mine->node != wanted->node) mine = mine->next;
    if (!mine) return leave(CUDA_ERROR_INVALID_VALUE);
    struct operation *launch;
    CUresult result = launch_new(params, NULL, &launch);
    if (result != CUDA_SUCCESS) return leave(result);
    free(mine->staged);
    mine->staged = launch->staged;
    mine->count = launch->count;
    mine->program = launch->program;
    mine->threads = launch->threads;
    mine->kernel = launch->kernel;
    memcpy(mine->grid, launch->grid, sizeof mine->grid);
    memcpy(mine->block, launch->block, sizeof mine->block);
    mine->shared_bytes = launch->shared_bytes;
    launch->staged = NULL;
    operation_free(launch);
    return leave(CUDA_SUCCESS);
}

static CUresult submit_nodes(struct stream *stream, const struct graph *graph) {
    CUresult result = CUDA_SUCCESS;
    for (struct operation *operation = graph->head; operation && result == CUDA_SUCCESS; operation = operation->next)
        result = submit(stream, operation_copy(operation));
    return result;
}

static CUresult submit_marker(struct stream *stream, enum operation_kind kind, struct marker *marker) {
    struct operation *operation = operation_new(kind);
    operation->marker = marker;
    marker->references++;
    return submit(stream, operation);
}

// A launch waits for the launch before it, on whatever stream. On a stream that is captured it is refused in all modes.
static CUresult launch(struct exec *exec, struct stream *stream) {
    if (capture_blocks(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    CUresult result = CUDA_SUCCESS;
    if (exec->marker && !exec->marker->done && exec->marker->stream != stream)
        result = submit_marker(stream, AWAIT_MARKER, exec->marker);
    if (result == CUDA_SUCCESS) result = submit_nodes(stream, &exec->graph);
    if (result != CUDA_SUCCESS) return result;
    marker_free(exec->marker);
    exec->marker = make(sizeof *exec->marker);
    exec->marker->references = 1;
    return submit_marker(stream, RECORD, exec->marker);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    ENTER(USUAL);
    struct exec *exec = exec_at(handle);
    struct stream *stream;
    CUresult result = stream_at(stream_handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!exec) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(launch(exec, stream));
}

// There is nothing to do ahead of a launch here.
CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
    ENTER(USUAL);
    struct stream *stream;
    CUresult result = stream_at(stream_handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!exec_at(handle)) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(capture_blocks(stream) ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS);
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    ENTER(STARTED | UNCAPTURED);
    struct exec *exec = exec_at(handle);
    if (!exec) return leave(CUDA_ERROR_INVALID_VALUE);
    exec_free(exec);
    return leave(CUDA_SUCCESS);
}
