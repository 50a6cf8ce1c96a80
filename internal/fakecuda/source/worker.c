// The worker: one thread that calls host functions in every mode, as the driver calls them on a thread of its own, and
// performs the work in threaded mode. It is started when it is first needed and ends with a reset.
#include "state.h"

#include <sched.h>

static pthread_t thread;
static bool running, stopping;
static _Thread_local bool calling;

// Whether this thread is inside a host function, where no call of the driver is allowed.
bool on_worker_call(void) { return calling; }

static struct stream *caller(void) {
    for (struct stream *stream = world.streams; stream; stream = stream->next)
        if (stream->calling && !stream->taken) return stream;
    return NULL;
}

static void call(struct stream *stream) {
    stream->taken = true;
    struct operation *operation = stream->head;
    unlock_world();
    calling = true;
    operation->function(operation->argument);
    calling = false;
    lock_world();
    stream->calling = stream->taken = false;
    finish(stream, CUDA_SUCCESS);
    pump();
}

// A turn of threaded mode: one operation of each stream.
static bool turn(void) {
    bool moved = false;
    for (struct stream *stream = world.streams, *next; stream; stream = next) {
        next = stream->next;
        if (step(stream)) moved = true;
    }
    return moved;
}

static void *work(void *unused) {
    (void)unused;
    lock_world();
    while (!stopping) {
        struct stream *stream = caller();
        if (stream) {
            call(stream);
        } else if (world.mode == FAKECUDA_THREADED && turn()) {
            unlock_world();
            sched_yield();
            lock_world();
        } else if (world.mode == FAKECUDA_THREADED && world.queued > 0) {
            wait_world();
        } else {
            rest_world();
        }
    }
    unlock_world();
    return NULL;
}

void worker_wanted(void) {
    if (running) {
        signal_world();
        return;
    }
    running = pthread_create(&thread, NULL, work, NULL) == 0;
    if (!running) abort();
}

// Called and returning with the world locked.
void worker_stop(void) {
    if (!running) return;
    stopping = true;
    signal_world();
    unlock_world();
    pthread_join(thread, NULL);
    lock_world();
    running = stopping = false;
}
