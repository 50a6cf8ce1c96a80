// The calls on graphs: what a capture has made is counted, made executable, launched and destroyed.
#include "state.h"

static struct graph *graph_at(CUgraph handle) { return object_at((uintptr_t)handle, GRAPH); }

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
        nodes[i] = (CUgraphNode)operation;
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

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags) {
    ENTER(USUAL);
    struct graph *graph = graph_at(handle);
    if (!out || !graph || flags > 15) return leave(CUDA_ERROR_INVALID_VALUE);
    struct exec *exec = object_new(sizeof *exec, EXEC);
    struct operation **link = &exec->graph.head;
    for (struct operation *operation = graph->head; operation; operation = operation->next) {
        *link = exec->graph.tail = operation_copy(operation);
        link = &exec->graph.tail->next;
        exec->graph.count++;
    }
    *out = (CUgraphExec)exec->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
    ENTER(USUAL);
    struct exec *exec = object_at((uintptr_t)handle, EXEC);
    struct stream *stream;
    CUresult result = stream_at(stream_handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!exec) return leave(CUDA_ERROR_INVALID_VALUE);
    for (struct operation *operation = exec->graph.head; operation && result == CUDA_SUCCESS; operation = operation->next)
        result = submit(stream, operation_copy(operation));
    return leave(result);
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
    ENTER(STARTED);
    struct exec *exec = object_at((uintptr_t)handle, EXEC);
    if (!exec) return leave(CUDA_ERROR_INVALID_VALUE);
    graph_clear(&exec->graph);
    object_free(exec);
    return leave(CUDA_SUCCESS);
}
