// Contexts: primary ones, created ones, and the stack of each thread.
#include "state.h"

#include <string.h>

static _Thread_local struct thread *self;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;

static void thread_ends(void *argument) {
    struct thread *thread = argument;
    lock_world();
    *thread->link = thread->next;
    if (thread->next) thread->next->link = thread->link;
    unlock_world();
    free(thread);
}

static void make_key(void) {
    if (pthread_key_create(&thread_key, thread_ends) != 0) abort();
}

// glibc's list of what ends with a thread has no bound. A process has 1,024 keys, and tests that are repeated load more copies of the library.
extern int __cxa_thread_atexit_impl(void (*end)(void *), void *argument, void *library) __attribute__((weak));
extern void *__dso_handle __attribute__((visibility("hidden")));

static void call_at_end(struct thread *thread) {
    if (__cxa_thread_atexit_impl) {
        if (__cxa_thread_atexit_impl(thread_ends, thread, &__dso_handle) != 0) abort();
        return;
    }
    pthread_once(&thread_once, make_key);
    pthread_setspecific(thread_key, thread);
}

// The calling thread's record. The library is never unloaded, so thread_ends is always there.
struct thread *this_thread(void) {
    if (self) return self;
    self = make(sizeof *self);
    self->link = &world.threads;
    self->next = world.threads;
    if (self->next) self->next->link = &self->next;
    world.threads = self;
    call_at_end(self);
    return self;
}

// After a reset: no thread has a context.
void threads_forget(void) {
    for (struct thread *thread = world.threads; thread; thread = thread->next) {
        thread->depth = 0;
        thread->capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
    }
}

// A context that is not there any more stays on the stacks it was on.
CUresult current_result(struct context **context) {
    struct thread *thread = this_thread();
    if (thread->depth == 0 || !thread->contexts[thread->depth - 1]) return CUDA_ERROR_INVALID_CONTEXT;
    *context = object_at(thread->contexts[thread->depth - 1], CONTEXT);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct context *current(void) {
    struct context *context = NULL;
    return current_result(&context) == CUDA_SUCCESS ? context : NULL;
}

static struct context *context_new(int device, unsigned flags, uintptr_t id) {
    struct context *context = make(sizeof *context);
    object_name(&context->object, CONTEXT, id);
    context->device = device;
    context->flags = flags;
    context->legacy = stream_new(context, CU_STREAM_DEFAULT, 0, false);
    context->per_thread = stream_new(context, CU_STREAM_DEFAULT, 0, false);
    return context;
}

static void free_stream_of(struct object *object, void *context) {
    struct stream *stream = (struct stream *)object;
    if (stream->context != context) return;
    world.lost++;
    stream_retire(stream);
}

static void free_event_of(struct object *object, void *context) {
    struct event *event = (struct event *)object;
    if (event->context != context) return;
    world.lost++;
    event_free(event);
}

static void free_module_of(struct object *object, void *context) {
    struct module *module = (struct module *)object;
    if (module->context != context) return;
    world.lost++;
    module_retire(module);
}

// Work still runs to its end; then all that the context has goes with it. Virtual memory belongs to no context. The
// record itself stays until a reset: calls on other threads may still wait with it.
void context_retire(struct context *context) {
    object_unname(&context->object);
    drain_where(context, -1);
    object_each(MODULE, free_module_of, context);
    for (size_t i = world.regions.count; i-- > 0;) {
        struct region *region = (struct region *)world.regions.items[i];
        if (region->context != context) continue;
        world.lost++;
        region_free(region);
    }
    object_each(STREAM, free_stream_of, context);
    object_each(EVENT, free_event_of, context);
    stream_retire(context->legacy);
    stream_retire(context->per_thread);
    context->next = world.retired_contexts;
    world.retired_contexts = context;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    ENTER(STARTED);
    if (!context) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    struct device *d = &world.devices[device];
    if (!d->primary) {
        d->primary = context_new(device, d->primary_flags, d->primary_id);
        d->primary->primary = true;
        d->primary_id = d->primary->object.id;
    }
    d->primary->retained++;
    *context = (CUcontext)d->primary->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    ENTER(STARTED);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    struct context *context = world.devices[device].primary;
    if (!context || context->retained == 0) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (--context->retained == 0) {
        world.devices[device].primary = NULL;
        context_retire(context);
    }
    return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    ENTER(STARTED);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    struct context *context = world.devices[device].primary;
    if (context) {
        world.devices[device].primary = NULL;
        context_retire(context);
    }
    return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
    ENTER(STARTED);
    if (!flags || !active) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    *flags = world.devices[device].primary_flags;
    *active = world.devices[device].primary != NULL;
    return leave(CUDA_SUCCESS);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned int flags) {
    ENTER(STARTED);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    world.devices[device].primary_flags = flags;
    if (world.devices[device].primary) world.devices[device].primary->flags = flags;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device) {
    ENTER(STARTED);
    if (!context) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    struct thread *thread = this_thread();
    if (thread->depth == CONTEXT_DEPTH) return leave(CUDA_ERROR_OUT_OF_MEMORY);
    struct context *made = context_new(device, flags, 0);
    thread->contexts[thread->depth++] = made->object.id;
    *context = (CUcontext)made->object.id;
    return leave(CUDA_SUCCESS);
}

// Destroying the calling thread's current context takes it off the stack; other threads keep a dead one.
CUresult cuCtxDestroy_v2(CUcontext handle) {
    ENTER(STARTED);
    if (!handle) return leave(CUDA_ERROR_INVALID_VALUE);
    struct context *context = object_at((uintptr_t)handle, CONTEXT);
    if (!context || context->primary) return leave(CUDA_ERROR_INVALID_CONTEXT);
    struct thread *thread = this_thread();
    if (thread->depth > 0 && thread->contexts[thread->depth - 1] == (uintptr_t)handle) thread->depth--;
    context_retire(context);
    return leave(CUDA_SUCCESS);
}

// The device whose primary context has this handle, retained or not; -1 where there is none.
static int device_of_primary(uintptr_t id) {
    for (int i = 0; i < world.device_count; i++)
        if (id && world.devices[i].primary_id == id) return i;
    return -1;
}

// A primary context's handle stays good while nobody retains it, and is refused when it is used.
static bool known(uintptr_t id) { return object_at(id, CONTEXT) || device_of_primary(id) >= 0; }

CUresult cuCtxSetCurrent(CUcontext context) {
    ENTER(STARTED);
    struct thread *thread = this_thread();
    if (context && !known((uintptr_t)context)) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (!context) {
        if (thread->depth > 0) thread->depth--;
        return leave(CUDA_SUCCESS);
    }
    if (thread->depth == 0) thread->depth = 1;
    thread->contexts[thread->depth - 1] = (uintptr_t)context;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetCurrent(CUcontext *context) {
    ENTER(STARTED);
    if (!context) return leave(CUDA_ERROR_INVALID_VALUE);
    struct thread *thread = this_thread();
    *context = thread->depth > 0 ? (CUcontext)thread->contexts[thread->depth - 1] : NULL;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    ENTER(STARTED);
    struct thread *thread = this_thread();
    if (!context) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!known((uintptr_t)context)) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (thread->depth == CONTEXT_DEPTH) return leave(CUDA_ERROR_INVALID_VALUE);
    thread->contexts[thread->depth++] = (uintptr_t)context;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    ENTER(STARTED);
    struct thread *thread = this_thread();
    if (thread->depth == 0) return leave(CUDA_ERROR_INVALID_CONTEXT);
    uintptr_t id = thread->contexts[--thread->depth];
    if (context) *context = (CUcontext)id;
    return leave(CUDA_SUCCESS);
}

// A primary context that nobody retains any more still says which device it is of.
CUresult cuCtxGetDevice(CUdevice *device) {
    ENTER(STARTED);
    if (!device) return leave(CUDA_ERROR_INVALID_VALUE);
    struct context *context = NULL;
    CUresult result = current_result(&context);
    int released = -1;
    if (result == CUDA_ERROR_CONTEXT_IS_DESTROYED) {
        struct thread *thread = this_thread();
        released = device_of_primary(thread->contexts[thread->depth - 1]);
    }
    if (!context && released < 0) return leave(result);
    *device = context ? context->device : released;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned int *flags) {
    ENTER(STARTED | CURRENT);
    if (!flags) return leave(CUDA_ERROR_INVALID_VALUE);
    *flags = current()->flags;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int *version) {
    ENTER(STARTED);
    struct context *context = handle ? object_at((uintptr_t)handle, CONTEXT) : current();
    if (!context) return leave(CUDA_ERROR_INVALID_CONTEXT);
    if (!version) return leave(CUDA_ERROR_INVALID_VALUE);
    *version = 3020;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER(STARTED | CURRENT);
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return leave(CUDA_SUCCESS);
}

CUresult cuCtxSynchronize(void) {
    ENTER(USUAL | CURRENT | UNCAPTURED);
    struct context *context = current();
    CUresult captured = capture_in(context);
    if (captured != CUDA_SUCCESS) return leave(captured);
    drain_where(context, -1);
    return leave(context->sticky);
}
