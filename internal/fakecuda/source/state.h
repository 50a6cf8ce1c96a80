// The fake's state and the words between its files. One mutex guards all of it: every exported call takes it in enter
// and gives it back in leave.
#ifndef FAKECUDA_STATE_H
#define FAKECUDA_STATE_H

#define _GNU_SOURCE // memfd_create, dladdr, MAP_NORESERVE
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#pragma GCC visibility push(default)
#include "fakecuda.h"
#pragma GCC visibility pop

enum {
    DEVICE_LIMIT = 8,     // enough for tests over several devices; a mapping keeps a byte of rights for each
    CONTEXT_DEPTH = 32,   // pushed contexts of a thread
    RULE_LIMIT = 64,      // injected failures
    NAME_ROOM = 64,       // the longest driver symbol has 55 characters
    ATTRIBUTE_LIMIT = 161 // device attributes, by number
};

#define GRANULE_BYTES ((size_t)2 << 20)
#define PLAIN_STEP_BYTES ((size_t)512)

// Objects that have handles: all in one table, by handle.
enum kind { CONTEXT, STREAM, EVENT, HANDLE, GRAPH, EXEC, MODULE, FUNCTION, LINK, KINDS };

struct object {
    uintptr_t id;
    enum kind kind;
    struct object *next; // in its bucket
};

// A device and what it holds.
struct device {
    size_t capacity_bytes, used_bytes, occupied_bytes;
    int attributes[ATTRIBUTE_LIMIT];
    struct context *primary; // NULL while nobody retains it
    uintptr_t primary_id;    // the same for every life of the primary context
    unsigned primary_flags;
};

struct context {
    struct object object;
    int device;
    unsigned flags;
    long retained;      // of a primary context; 0 otherwise
    bool primary;
    CUresult sticky;    // the first failure of performed work; every later call answers it
    struct stream *legacy, *per_thread;
    struct context *next; // of those that are gone
};

// A point in a stream's order: what an event has recorded and what waits for it. Counted references.
struct marker {
    long references;
    bool done, timed;
    struct timespec at;
    struct stream *stream; // valid until done; NULL: of another process
};

enum operation_kind { SET, COPY, COPY_ROWS, RECORD, AWAIT_MARKER, AWAIT_VALUE, WRITE_VALUE, CALL, LAUNCH };

// Kernels that the fake performs, by their names. Others do nothing.
enum built_in { NO_PROGRAM, FILL32, ADD32 };

struct operation {
    struct operation *next;
    enum operation_kind kind;
    uint64_t sequence; // submissions ascend
    uintptr_t dst, src;
    size_t count;    // elements of width bytes
    size_t width;    // 1, 2 or 4 of SET, 4 or 8 of a value
    uint64_t value;
    unsigned flags;
    bool device_dst, device_src; // to be checked when performed
    void *staged;                // bytes of pageable memory, or of a kernel's parameters, copied when submitted
    size_t rows, dst_pitch, src_pitch; // of COPY_ROWS
    enum built_in program;       // of LAUNCH
    uint64_t threads;            // of LAUNCH
    const char *kernel;          // of LAUNCH, and what a runner is told
    unsigned grid[3], block[3], shared_bytes;
    uintptr_t node;              // in a graph: its name, which an executable graph's copy keeps
    struct marker *marker;
    CUhostFn function;
    void *argument;
};

// Operations of a capture by number, a bit each.
struct nodes {
    uint64_t *words;
    size_t count;
};

struct stream {
    struct object object;
    struct context *context;
    unsigned flags;
    int priority;
    struct operation *head, *tail;
    long pending;
    uint64_t done_sequence; // of the last operation that was performed
    unsigned queries;       // unsuccessful ones since the last operation
    bool calling;           // the head is a host function that the worker has or will get
    bool taken;             // the worker has it
    bool destroyed;         // the handle is gone; the rest of the queue still runs
    long waiters;           // calls that wait for this stream
    struct capture *capture;
    struct nodes before;    // capture: what comes before the next operation
    struct stream *next, **link; // all streams, destroyed ones included
};

struct event {
    struct object object;
    struct context *context;
    unsigned flags;
    struct marker *marker;    // NULL while never recorded
    struct capture *capture;  // recorded in a capture
    struct nodes before;      // capture: what came before the record
};

// Ranges of addresses, in ascending order and apart.
struct range {
    uintptr_t start;
    size_t bytes;
};
struct ranges {
    struct range **items;
    size_t count, room;
};

enum region_kind { PLAIN, RESERVATION, PINNED, REGISTERED, VARIABLE };

struct region {
    struct range range;
    enum region_kind kind;
    size_t span_bytes;    // of address space
    size_t charged_bytes; // of device memory
    int device;
    unsigned flags;
    struct context *context; // NULL for reservations
    long mappings;           // of a reservation
};

// Physical memory: a file in memory. Handles that were imported share it.
struct physical {
    long references;
    int file, device;
    size_t bytes;
    bool charged;
    uint64_t inode;
    CUmemAllocationProp prop;
    struct physical *next;
};

struct handle {
    struct object object;
    struct physical *physical;
    long names, mappings; // released when both are 0
    bool imported;        // its properties name no types of shareable handles, and it is not exported
};

struct mapping {
    struct range range;
    struct handle *handle;
    struct region *region;
    unsigned char access[DEVICE_LIMIT];
};

// A capture is a stream's graph in the making.
struct graph {
    struct object object;
    struct operation *head, *tail;
    size_t count;
};
struct capture {
    uint64_t number;
    struct stream *origin;
    struct graph *graph;
    CUstreamCaptureMode mode;
    pthread_t thread;
    bool invalid, ended; // an ended one stays until a reset: events may name it
    struct capture *next;
};
struct exec {
    struct object object;
    struct graph graph;    // its own copy
    struct marker *marker; // the end of its last launch; NULL before the first
};

// What a PTX text declares.
struct parameter {
    size_t offset_bytes, bytes;
};
struct entry {
    char *name;
    struct parameter *parameters;
    size_t count, bytes; // bytes of all parameters
    struct entry *next;
};
struct variable {
    char *name;
    size_t bytes;
    unsigned char *initial; // NULL: zeros
    struct region *region; // NULL before the module is loaded
    struct variable *next;
};
struct assembly {
    int version; // 70 is 7.0
    struct entry *entries;
    struct variable *variables;
    char log[512]; // what was wrong
};

struct module {
    struct object object;
    struct context *context;
    struct assembly assembly;
    struct function *functions;
};
struct function {
    struct object object;
    struct module *module;
    const struct entry *entry;
    enum built_in program;
    int max_dynamic_bytes, carveout;
    struct function *next;
};

// A thread that has made calls.
struct thread {
    uintptr_t contexts[CONTEXT_DEPTH];
    int depth;
    CUstreamCaptureMode capture_mode;
    struct thread *next, **link;
};

struct rule {
    char name[NAME_ROOM];
    unsigned occurrence;
    CUresult result;
};

// A driver call: its calls are counted here.
struct call {
    const char *name;
    unsigned long count;
    struct call *next;
};

struct world {
    bool ready, started;
    int device_count, version, mode;
    unsigned patience;
    bool reuse_handles;
    struct marker *unreached; // what events of other processes stand for while they do not come; else NULL
    fakecuda_runner runner; // of kernels that the fake does not know; NULL without one
    struct device devices[DEVICE_LIMIT];
    uint64_t sequence;
    long queued; // operations in all streams
    unsigned long long numbers; // of captures
    uint64_t nodes;             // of graphs, so far
    struct ranges regions, mappings;
    struct physical *physicals;
    struct stream *streams;
    struct capture *captures;
    struct thread *threads;
    struct context *retired_contexts;
    struct rule rules[RULE_LIMIT];
    int rule_count;
    struct call *calls;
    long lost;
};

extern struct world world;

// world.c: the way in and out of every call.
enum need {
    NOTHING = 0,
    STARTED = 1,        // cuInit was called
    CURRENT = 2,        // a context is current
    STICKY = 4,         // a failed context refuses the call
    VIRTUAL = 8,        // the device can do virtual memory
    UNCAPTURED = 32     // refused while a capture that forbids unsafe calls is under way
};
#define USUAL (STARTED | STICKY)
CUresult enter(struct call *call, const char *name, unsigned needs);
CUresult leave(CUresult result);
const char *call_name(void); // the calling thread's last call
#define ENTER(needs)                                              \
    do {                                                          \
        static struct call call_;                                 \
        CUresult entered_ = enter(&call_, __func__, (needs));     \
        if (entered_ != CUDA_SUCCESS) return entered_;            \
    } while (0)
void lock_world(void);
void unlock_world(void);
void wait_world(void);   // gives the mutex away until something changes, or for a moment
void rest_world(void);   // the same, without the moment
void signal_world(void); // something changed
bool same_symbol(const char *exported, const char *asked);
void *make(size_t bytes); // zeroed; a test process without memory ends

// object.c
void *object_new(size_t bytes, enum kind kind);
void object_name(struct object *object, enum kind kind, uintptr_t id);
void object_free(void *object);   // takes the name away as well
void object_unname(struct object *object);
void *object_at(uintptr_t id, enum kind kind);
void *object_alive(uintptr_t id, enum kind kind); // ends the process where the object was destroyed
void object_each(enum kind kind, void (*visit)(struct object *, void *), void *argument);
long object_count(enum kind kind);
void object_forget(void);

// range.c
void range_put(struct ranges *ranges, struct range *item);
void range_drop(struct ranges *ranges, struct range *item);
struct range *range_around(const struct ranges *ranges, uintptr_t address);
size_t range_from(const struct ranges *ranges, uintptr_t address);
struct region *region_at(uintptr_t address);
struct region *region_around(uintptr_t address, size_t bytes);
bool may_touch(uintptr_t address, size_t bytes, int device, unsigned rights, bool any_device);
bool charge(int device, size_t bytes);
size_t round_up(size_t bytes, size_t step);

// context.c
struct thread *this_thread(void);
struct context *current(void);
CUresult current_result(struct context **context);
bool valid_device(int device);
void context_retire(struct context *context);
void threads_forget(void);

// queue.c and worker.c
struct operation *operation_new(enum operation_kind kind);
void operation_free(struct operation *operation);
struct operation *operation_copy(const struct operation *operation);
CUresult submit(struct stream *stream, struct operation *operation);
CUresult perform(struct stream *stream, struct operation *operation);
bool step(struct stream *stream);
bool advance(struct stream *stream);
void hold_events(bool on);
void finish(struct stream *stream, CUresult result);
void pump(void);
void drain(struct stream *stream);
void drain_where(const struct context *context, int device); // one of them: NULL or -1 is any
void await_marker(struct marker *marker);
void marker_free(struct marker *marker);
void asked(struct stream *stream);
void worker_wanted(void);
void worker_stop(void);
bool on_worker_call(void);

// stream.c
struct stream *stream_new(struct context *context, unsigned flags, int priority, bool named);
CUresult stream_at(CUstream handle, struct stream **stream);
void stream_retire(struct stream *stream);
void stream_collect(struct stream *stream);

// memory.c, virtual.c, event.c
void region_free(struct region *region);
CUresult region_new(enum region_kind kind, int device, size_t bytes, struct region **region);
void event_free(struct event *event);
void physical_free(struct physical *physical);
void handle_collect(struct handle *handle);
void unmap(struct mapping *mapping);

// capture.c
CUresult capture_operation(struct stream *stream, struct operation *operation);
CUresult capture_forbids(void);
CUresult capture_implicit(const struct context *context);
CUresult capture_in(const struct context *context);
CUresult capture_event(struct stream *stream, struct event *event);
CUresult capture_join(struct stream *stream, struct event *event);
bool capture_blocks(struct stream *stream);
void capture_spoil(struct capture *capture);
void capture_end(struct capture *capture);
void capture_leave(struct stream *stream);
void capture_retire(struct stream *stream);
void capture_forget(void);
void nodes_clear(struct nodes *nodes);
void graph_clear(struct graph *graph);
void graph_append(struct graph *graph, struct operation *operation);

// graph.c
void exec_free(struct exec *exec);

// ptx.c, module.c and kernel.c
CUresult assembly_read(const char *text, struct assembly *assembly);
void assembly_clear(struct assembly *assembly);
void module_retire(struct module *module);
enum built_in program_of(const struct entry *entry);
CUresult launch_new(const CUDA_KERNEL_NODE_PARAMS *params, const struct context *context, struct operation **launch);
CUresult run(const struct stream *stream, const struct operation *launch);
void link_forget(void);

#endif
