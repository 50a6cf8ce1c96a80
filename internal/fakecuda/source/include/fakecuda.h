// What the fake exports beyond the driver's calls: for tests, to steer it and to look inside. None of these needs a
// context, and none is counted or made to fail. All may be called from any thread.
#ifndef FAKECUDA_H
#define FAKECUDA_H

#include "cuda.h"

// How queued work is performed.
enum fakecuda_mode {
    FAKECUDA_IMMEDIATE = 0, // when it is submitted, as far as nothing holds it up
    FAKECUDA_QUEUED = 1,    // when somebody waits for it, asks often enough (patience) or steps
    FAKECUDA_THREADED = 2   // by a thread, some time later
};

// Kinds of objects that fakecuda_live counts.
enum fakecuda_kind {
    FAKECUDA_CONTEXTS, // primary contexts that are retained, and created ones
    FAKECUDA_STREAMS,
    FAKECUDA_EVENTS,
    FAKECUDA_HANDLES, // physical allocations that are named or mapped
    FAKECUDA_GRAPHS,  // graphs and executable graphs
    FAKECUDA_ALLOCATIONS,
    FAKECUDA_RESERVATIONS,
    FAKECUDA_MAPPINGS,
    FAKECUDA_PINNED, // pinned and registered host memory
    FAKECUDA_MODULES, // modules and links
    FAKECUDA_KINDS
};

// Gives everything back, forgets all settings and calls, and leaves the driver as before cuInit. No other call may run.
// Returns how many objects were live.
long fakecuda_reset(void);

// The machine: before cuInit or after it. Devices: 0 to 8, by default 1. Bytes: by default 16 GiB. Version: by default
// 13000. An attribute keeps its value until fakecuda_reset; with CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
// at 0 the calls of that part answer CUDA_ERROR_NOT_SUPPORTED.
void fakecuda_set_devices(int count);
void fakecuda_set_capacity(int device, size_t bytes);
void fakecuda_set_version(int version);
void fakecuda_set_attribute(int device, int attribute, int value);
// Bytes that somebody else holds on the device, in place of what was said before.
void fakecuda_occupy(int device, size_t bytes);

// How work is performed. A change performs nothing by itself.
void fakecuda_set_mode(int mode);
// Queued mode: each unsuccessful query number n of a stream, or of an event on it, performs the stream's next
// operation with all that it waits for. 0, the default, is never.
void fakecuda_set_patience(unsigned queries);
// Performs the next operation of a stream, if nothing holds it up. Streams 0 and 1 are the legacy stream of the current
// context. Returns 1, or 0 where nothing was done.
int fakecuda_step(CUstream stream);
// Operations that wait in the stream.
long fakecuda_pending(CUstream stream);
// With 1, events of other processes that are opened from then on are not reached before the next 0, as where the process has died.
void fakecuda_hold_events(int on);
// Handles of destroyed streams and events are given out again, the last one first, as a real driver does.
void fakecuda_reuse_handles(int on);

// Lets a call fail: occurrence 1 is the next call of that name, 2 the one after; 0 is every call until it is told result
// 0. The name is the exported one or the plain one ("cuMemAlloc_v2", "cuMemAlloc"). The call does nothing else.
// Returns 0 where there are too many rules (64).
int fakecuda_fail(const char *name, unsigned occurrence, int result);
// Calls of that name so far (exported or plain), those that failed included; NULL is all calls.
unsigned long fakecuda_calls(const char *name);

// Objects that are live: of one kind, or of all with kind -1.
long fakecuda_live(int kind);
// Objects that a context took with it when it was destroyed.
long fakecuda_lost(void);
// Words for a person: each kind that has live objects with its number. Returns the length without the end.
int fakecuda_report(char *text, size_t room);

// Performs kernels: it is called with what a launch has, in the place of a GPU, and returns 0, or another CUresult, with which the
// context fails. name is the kernel's; params are its parameters, as in the driver's parameter buffer. It makes no call of the driver, and none
// of it runs at the same time as another one. Kernels that the fake knows itself are not its.
typedef int (*fakecuda_runner)(const char *name, const unsigned grid[3], const unsigned block[3], unsigned shared_bytes,
                               const void *params);
void fakecuda_set_runner(fakecuda_runner runner); // NULL, the default: other kernels do nothing

#endif
