// What tests steer and see: see fakecuda.h.
#include "state.h"

#include <stdio.h>
#include <string.h>

static void free_context(struct object *object, void *unused) {
    (void)unused;
    context_retire((struct context *)object);
}

static void free_graph(struct object *object, void *unused) {
    (void)unused;
    graph_clear((struct graph *)object);
    object_free(object);
}

static void free_exec(struct object *object, void *unused) {
    (void)unused;
    exec_free((struct exec *)object);
}

static void free_handle(struct object *object, void *unused) {
    (void)unused;
    physical_free(((struct handle *)object)->physical);
    object_free(object);
}

static long live_of(int kind) {
    long count = 0;
    switch (kind) {
    case FAKECUDA_CONTEXTS: return object_count(CONTEXT);
    case FAKECUDA_STREAMS: return object_count(STREAM);
    case FAKECUDA_EVENTS: return object_count(EVENT);
    case FAKECUDA_HANDLES: return object_count(HANDLE);
    case FAKECUDA_GRAPHS: return object_count(GRAPH) + object_count(EXEC);
    case FAKECUDA_MODULES: return object_count(MODULE) + object_count(LINK);
    case FAKECUDA_MAPPINGS: return (long)world.mappings.count;
    default: break;
    }
    for (size_t i = 0; i < world.regions.count; i++) {
        const struct region *region = (struct region *)world.regions.items[i];
        bool pinned = region->kind == PINNED || region->kind == REGISTERED;
        count += (kind == FAKECUDA_ALLOCATIONS && region->kind == PLAIN) ||
                 (kind == FAKECUDA_RESERVATIONS && region->kind == RESERVATION) || (kind == FAKECUDA_PINNED && pinned);
    }
    return count;
}

static long live(int kind) {
    if (kind >= 0) return live_of(kind);
    long count = 0;
    for (int i = 0; i < FAKECUDA_KINDS; i++) count += live_of(i);
    return count;
}

// A stream that waits for a word that nobody writes would keep a reset for ever: failed contexts perform nothing.
static void fail_context(struct object *object, void *unused) {
    (void)unused;
    ((struct context *)object)->sticky = CUDA_ERROR_DEINITIALIZED;
}

long fakecuda_reset(void) {
    lock_world();
    long count = live(-1);
    object_each(CONTEXT, fail_context, NULL);
    hold_events(false);
    object_each(CONTEXT, free_context, NULL);
    drain_where(NULL, -1);
    worker_stop();
    capture_forget();
    while (world.streams) {
        struct stream *stream = world.streams;
        stream_collect(stream);
        if (world.streams == stream) wait_world(); // somebody still waits for it, against the rules
    }
    object_each(GRAPH, free_graph, NULL);
    object_each(EXEC, free_exec, NULL);
    link_forget();
    while (world.mappings.count > 0) unmap((struct mapping *)world.mappings.items[world.mappings.count - 1]);
    while (world.regions.count > 0) {
        region_free((struct region *)world.regions.items[world.regions.count - 1]);
    }
    object_each(HANDLE, free_handle, NULL);
    for (struct context *context = world.retired_contexts, *next; context; context = next) {
        next = context->next;
        free(context);
    }
    threads_forget();
    object_forget();
    for (struct call *call = world.calls; call; call = call->next) call->count = 0;
    free(world.regions.items);
    free(world.mappings.items);
    struct call *calls = world.calls;
    struct thread *threads = world.threads;
    memset(&world, 0, sizeof world);
    world.calls = calls;
    world.threads = threads;
    unlock_world();
    return count;
}

void fakecuda_set_runner(fakecuda_runner runner) {
    lock_world();
    world.runner = runner;
    unlock_world();
}

void fakecuda_set_devices(int count) {
    lock_world();
    world.device_count = count < 0 ? 0 : count > DEVICE_LIMIT ? DEVICE_LIMIT : count;
    unlock_world();
}

void fakecuda_set_capacity(int device, size_t bytes) {
    lock_world();
    if (device >= 0 && device < DEVICE_LIMIT) world.devices[device].capacity_bytes = bytes;
    unlock_world();
}

void fakecuda_occupy(int device, size_t bytes) {
    lock_world();
    if (device >= 0 && device < DEVICE_LIMIT) world.devices[device].occupied_bytes = bytes;
    unlock_world();
}

void fakecuda_set_version(int version) {
    lock_world();
    world.version = version;
    unlock_world();
}

void fakecuda_set_attribute(int device, int attribute, int value) {
    lock_world();
    if (device >= 0 && device < DEVICE_LIMIT && attribute > 0 && attribute < ATTRIBUTE_LIMIT)
        world.devices[device].attributes[attribute] = value;
    unlock_world();
}

void fakecuda_set_mode(int mode) {
    lock_world();
    world.mode = mode;
    if (mode == FAKECUDA_THREADED) worker_wanted();
    unlock_world();
}

void fakecuda_hold_events(int on) {
    lock_world();
    hold_events(on != 0);
    unlock_world();
}

void fakecuda_set_patience(unsigned queries) {
    lock_world();
    world.patience = queries;
    unlock_world();
}

void fakecuda_reuse_handles(int on) {
    lock_world();
    world.reuse_handles = on != 0;
    unlock_world();
}

int fakecuda_step(CUstream handle) {
    lock_world();
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    int done = result == CUDA_SUCCESS && step(stream);
    unlock_world();
    return done;
}

long fakecuda_pending(CUstream handle) {
    lock_world();
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    long pending = result == CUDA_SUCCESS ? stream->pending : 0;
    unlock_world();
    return pending;
}

int fakecuda_fail(const char *name, unsigned occurrence, int result) {
    lock_world();
    int room = 1;
    if (result == CUDA_SUCCESS) {
        for (int i = world.rule_count; i-- > 0;)
            if (strcmp(world.rules[i].name, name) == 0) world.rules[i] = world.rules[--world.rule_count];
    } else if (world.rule_count < RULE_LIMIT) {
        struct rule *rule = &world.rules[world.rule_count++];
        snprintf(rule->name, sizeof rule->name, "%s", name);
        rule->occurrence = occurrence;
        rule->result = (CUresult)result;
    } else {
        room = 0;
    }
    unlock_world();
    return room;
}

unsigned long fakecuda_calls(const char *name) {
    lock_world();
    unsigned long count = 0;
    for (struct call *call = world.calls; call; call = call->next)
        if (!name || same_symbol(call->name, name)) count += call->count;
    unlock_world();
    return count;
}

long fakecuda_live(int kind) {
    lock_world();
    long count = live(kind);
    unlock_world();
    return count;
}

long fakecuda_lost(void) {
    lock_world();
    long lost = world.lost;
    unlock_world();
    return lost;
}

int fakecuda_report(char *text, size_t room) {
    static const char *const names[FAKECUDA_KINDS] = {"contexts",    "streams",      "events",   "handles", "graphs",
                                                      "allocations", "reservations", "mappings", "pinned",  "modules"};
    lock_world();
    size_t length = 0;
    if (room > 0) text[0] = 0;
    for (int kind = 0; kind < FAKECUDA_KINDS; kind++) {
        long count = live_of(kind);
        if (count == 0) continue;
        char one[64];
        int written = snprintf(one, sizeof one, "%s%s %ld", length ? ", " : "", names[kind], count);
        if (length + (size_t)written < room) memcpy(text + length, one, (size_t)written + 1);
        length += (size_t)written;
    }
    unlock_world();
    return (int)length;
}
