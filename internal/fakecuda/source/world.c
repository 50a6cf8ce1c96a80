// The world, its mutex, and the way in and out of every exported call.
#include "state.h"

#include <stdio.h>
#include <string.h>

struct world world = {.device_count = 1};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void *make(size_t bytes) {
    void *p = calloc(1, bytes);
    if (!p) abort();
    return p;
}

static size_t from_environment(const char *name, size_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

// What the H200 answers that callers here ask for; all other attributes are 0.
static void usual_attributes(struct device *device) {
    static const int values[][2] = {
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
        {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
        {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
        {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
        {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
        {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
        {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
        {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
        {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
        {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
        {CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
        {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
        {CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 1},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) device->attributes[values[i][0]] = values[i][1];
}

// The machine as the environment describes it.
static void furnish(void) {
    if (world.ready) return;
    world.ready = true;
    world.version = (int)from_environment("FAKECUDA_VERSION", 13000);
    world.mode = (int)from_environment("FAKECUDA_MODE", FAKECUDA_IMMEDIATE);
    hold_events(from_environment("FAKECUDA_UNREACHED", 0) != 0);
    world.device_count = (int)from_environment("FAKECUDA_DEVICES", 1);
    if (world.device_count > DEVICE_LIMIT) world.device_count = DEVICE_LIMIT;
    for (int i = 0; i < DEVICE_LIMIT; i++) {
        struct device *device = &world.devices[i];
        device->capacity_bytes = from_environment("FAKECUDA_BYTES", (size_t)16 << 30);
        usual_attributes(device);
        device->attributes[CU_DEVICE_ATTRIBUTE_PCI_BUS_ID] = i + 1;
    }
}

void lock_world(void) {
    pthread_mutex_lock(&mutex);
    furnish();
}

void unlock_world(void) { pthread_mutex_unlock(&mutex); }

void signal_world(void) { pthread_cond_broadcast(&changed); }

void rest_world(void) { pthread_cond_wait(&changed, &mutex); }

// Words in memory are written by threads that make no call, so whoever waits looks again after 50 us.
void wait_world(void) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&changed, &mutex, &until);
}

// A name with and without its version is the same call.
bool same_symbol(const char *exported, const char *asked) {
    size_t length = strlen(asked);
    if (strncmp(exported, asked, length) != 0) return false;
    const char *rest = exported + length;
    return !*rest || (rest[0] == '_' && rest[1] == 'v' && rest[2] >= '2' && rest[2] <= '9' && !rest[3]);
}

static CUresult injected(const char *name) {
    CUresult result = CUDA_SUCCESS;
    for (int i = 0; i < world.rule_count; i++) {
        struct rule *rule = &world.rules[i];
        if (!same_symbol(name, rule->name)) continue;
        if (rule->occurrence == 0) {
            if (result == CUDA_SUCCESS) result = rule->result;
        } else if (--rule->occurrence == 0) {
            if (result == CUDA_SUCCESS) result = rule->result;
            *rule = world.rules[--world.rule_count];
            i--;
        }
    }
    return result;
}

static CUresult admitted(const char *name, unsigned needs) {
    if (on_worker_call() && (needs & STARTED)) return CUDA_ERROR_NOT_PERMITTED;
    CUresult result = injected(name);
    if (result != CUDA_SUCCESS) return result;
    if ((needs & (STARTED | CURRENT)) && !world.started) return CUDA_ERROR_NOT_INITIALIZED;
    struct context *context = NULL;
    if (needs & CURRENT) {
        result = current_result(&context);
        if (result != CUDA_SUCCESS) return result;
    } else if (world.started) {
        context = current();
    }
    if ((needs & STICKY) && context && context->sticky) return context->sticky;
    const int *attributes = world.devices[context ? context->device : 0].attributes;
    if ((needs & VIRTUAL) && !attributes[CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED])
        return CUDA_ERROR_NOT_SUPPORTED;
    if (needs & UNCAPTURED) return capture_forbids();
    return CUDA_SUCCESS;
}

static _Thread_local const char *last_call = "";

const char *call_name(void) { return last_call; }

CUresult enter(struct call *call, const char *name, unsigned needs) {
    last_call = name;
    lock_world();
    if (!call->name) {
        call->name = name;
        call->next = world.calls;
        world.calls = call;
    }
    call->count++;
    pump();
    CUresult result = admitted(name, needs);
    if (result != CUDA_SUCCESS) unlock_world();
    return result;
}

CUresult leave(CUresult result) {
    pump();
    unlock_world();
    return result;
}
