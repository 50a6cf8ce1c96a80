// A fake of NVML: see doc.go.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, INSUFFICIENT_SIZE = 7, VERSION_MISMATCH = 25 };
enum { DEVICES = 32, PROCESSES = 16384, COUNTERS = 32, KINDS = 3 };

struct pci {
    char legacy[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};
struct memory2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};
struct memory1 {
    uint64_t total, free, used;
};
struct record {
    uint32_t pid;
    uint64_t used;
    uint32_t gpu_instance, compute_instance;
};
struct long_record {
    struct record record;
    uint64_t protected_bytes;
};
_Static_assert(sizeof(struct pci) == 68, "nvmlPciInfo_t");
_Static_assert(sizeof(struct memory2) == 40, "nvmlMemory_v2_t");
_Static_assert(sizeof(struct memory1) == 24, "nvmlMemory_t");
_Static_assert(sizeof(struct record) == 24 && sizeof(struct long_record) == 32, "nvmlProcessInfo_t");

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int started, held, waiting;
static uint32_t device_count;
static int long_records, endless_text;
static uint32_t growth, claimed; // processes more at each list; the count that every list claims, 0: the true one
static struct device {
    char name[96], uuid[96];
    uint32_t domain, bus, device;
    uint64_t total, reserved, free, used, freed; // freed: bytes that become free at each question for the memory
    struct record processes[KINDS][PROCESSES];
    uint32_t counts[KINDS];
} devices[DEVICES];
static struct counter {
    char name[64];
    long calls;
    long failing; // the call of that number fails; -1: all do; 0: none
    int status;
} counters[COUNTERS];

static struct counter *counter_of(const char *name) {
    for (size_t i = 0; i < COUNTERS; i++) {
        if (!counters[i].name[0]) strncpy(counters[i].name, name, sizeof counters[i].name - 1);
        if (strcmp(counters[i].name, name) == 0) return &counters[i];
    }
    abort();
}

// Begins a call with the mutex locked. What is not 0 is its result.
static int enter(const char *name) {
    pthread_mutex_lock(&mutex);
    struct counter *c = counter_of(name);
    c->calls++;
    waiting++;
    pthread_cond_broadcast(&changed);
    while (held) pthread_cond_wait(&changed, &mutex);
    waiting--;
    if (c->failing == -1 || c->calls == c->failing) return c->status;
    if (!started && strcmp(name, "nvmlInit_v2") != 0) return UNINITIALIZED;
    return SUCCESS;
}
static int leave(int status) {
    pthread_mutex_unlock(&mutex);
    return status;
}
#define ENTER()                                  \
    do {                                         \
        int entered_ = enter(__func__);          \
        if (entered_) return leave(entered_);    \
    } while (0)

EXPORT int nvmlInit_v2(void) {
    ENTER();
    started++;
    return leave(SUCCESS);
}
EXPORT int nvmlShutdown(void) {
    ENTER();
    started--;
    return leave(SUCCESS);
}
EXPORT const char *nvmlErrorString(int status) {
    switch (status) {
    case UNINITIALIZED: return "Uninitialized";
    case 3: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 999: return NULL;
    }
    return "Unknown Error\x1b[31m";
}
EXPORT int nvmlDeviceGetCount_v2(uint32_t *count) {
    ENTER();
    if (!count) return leave(INVALID_ARGUMENT);
    *count = device_count;
    return leave(SUCCESS);
}
EXPORT int nvmlDeviceGetHandleByIndex_v2(uint32_t index, struct device **device) {
    ENTER();
    if (!device || index >= device_count || index >= DEVICES) return leave(INVALID_ARGUMENT);
    *device = &devices[index];
    return leave(SUCCESS);
}
static int write_text(char *text, uint32_t length, const char *from) {
    if (!text) return INVALID_ARGUMENT;
    if (endless_text) {
        memset(text, 'x', length);
        return SUCCESS;
    }
    if (strlen(from) + 1 > length) return INSUFFICIENT_SIZE;
    strcpy(text, from);
    return SUCCESS;
}
EXPORT int nvmlDeviceGetName(struct device *device, char *text, uint32_t length) {
    ENTER();
    return leave(write_text(text, length, device->name));
}
EXPORT int nvmlDeviceGetUUID(struct device *device, char *text, uint32_t length) {
    ENTER();
    return leave(write_text(text, length, device->uuid));
}
EXPORT int nvmlDeviceGetPciInfo_v3(struct device *device, struct pci *pci) {
    ENTER();
    memset(pci, 0, sizeof *pci);
    memset(pci->bus_id, endless_text ? 'x' : 0, sizeof pci->bus_id);
    pci->domain = device->domain;
    pci->bus = device->bus;
    pci->device = device->device;
    return leave(SUCCESS);
}
static void pass(struct device *device) {
    uint64_t bytes = device->freed < device->used ? device->freed : device->used;
    device->used -= bytes;
    device->free += bytes;
}
EXPORT int nvmlDeviceGetMemoryInfo_v2(struct device *device, struct memory2 *memory) {
    ENTER();
    if (memory->version != (sizeof *memory | 2 << 24)) return leave(VERSION_MISMATCH);
    memory->total = device->total;
    memory->reserved = device->reserved;
    memory->free = device->free;
    memory->used = device->used;
    pass(device);
    return leave(SUCCESS);
}
EXPORT int nvmlDeviceGetMemoryInfo(struct device *device, struct memory1 *memory) {
    ENTER();
    memory->total = device->total;
    memory->free = device->free;
    memory->used = device->used + device->reserved;
    pass(device);
    return leave(SUCCESS);
}
static int list(struct device *device, int kind, uint32_t *count, void *records) {
    for (uint32_t i = 0; i < growth && device->counts[kind] < PROCESSES; i++) {
        device->processes[kind][device->counts[kind]++] = (struct record){1 + i, 1, UINT32_MAX, UINT32_MAX};
    }
    uint32_t there = device->counts[kind], room = *count;
    *count = claimed ? claimed : there;
    if (there > room) return INSUFFICIENT_SIZE;
    for (uint32_t i = 0; i < there; i++) {
        if (long_records) {
            ((struct long_record *)records)[i] = (struct long_record){device->processes[kind][i], 0};
        } else {
            ((struct record *)records)[i] = device->processes[kind][i];
        }
    }
    return SUCCESS;
}
#define LIST(name, kind)                                                              \
    EXPORT int name(struct device *device, uint32_t *count, void *records) {          \
        ENTER();                                                                      \
        return leave(list(device, kind, count, records));                             \
    }
LIST(nvmlDeviceGetComputeRunningProcesses_v3, 0)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, 0)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)

#define LOCKED(...)                \
    pthread_mutex_lock(&mutex);    \
    __VA_ARGS__;                   \
    pthread_mutex_unlock(&mutex)

EXPORT void fakenvml_set_devices(uint32_t count) { LOCKED(device_count = count); }
EXPORT void fakenvml_set_names(uint32_t index, const char *name, const char *uuid) {
    LOCKED(strncpy(devices[index].name, name, 95); strncpy(devices[index].uuid, uuid, 95));
}
EXPORT void fakenvml_set_pci(uint32_t index, uint32_t domain, uint32_t bus, uint32_t device) {
    LOCKED(devices[index].domain = domain; devices[index].bus = bus; devices[index].device = device);
}
EXPORT void fakenvml_set_memory(uint32_t index, uint64_t total, uint64_t reserved, uint64_t free, uint64_t used) {
    LOCKED(devices[index].total = total; devices[index].reserved = reserved; devices[index].free = free; devices[index].used = used);
}
EXPORT void fakenvml_set_freed(uint32_t index, uint64_t bytes) { LOCKED(devices[index].freed = bytes); }
EXPORT void fakenvml_add_process(uint32_t index, uint32_t kind, uint32_t pid, uint64_t bytes, uint32_t instance) {
    LOCKED(struct device *d = &devices[index]; d->processes[kind][d->counts[kind]++] = (struct record){pid, bytes, instance, instance});
}
EXPORT void fakenvml_set_records(int are_long) { LOCKED(long_records = are_long); }
EXPORT void fakenvml_set_endless(int endless) { LOCKED(endless_text = endless); }
EXPORT void fakenvml_set_growth(uint32_t processes) { LOCKED(growth = processes); }
EXPORT void fakenvml_set_claimed(uint32_t count) { LOCKED(claimed = count); }
EXPORT void fakenvml_hold(int hold) { LOCKED(held = hold; pthread_cond_broadcast(&changed)); }
EXPORT void fakenvml_await(void) { // a call that is held
    LOCKED(while (!waiting) pthread_cond_wait(&changed, &mutex));
}
// occurrence: of the calls from now on; -1: all; 0: none.
EXPORT void fakenvml_fail(const char *name, long occurrence, int status) {
    LOCKED(struct counter *c = counter_of(name); c->failing = occurrence > 0 ? c->calls + occurrence : occurrence; c->status = status);
}
EXPORT long fakenvml_calls(const char *name) {
    LOCKED(long calls = counter_of(name)->calls);
    return calls;
}
EXPORT int fakenvml_started(void) {
    LOCKED(int count = started);
    return count;
}
