// Kernels: their properties, launches, and the few that are performed. All others take their turn in the queue and do nothing.
#include "state.h"

#include <string.h>

enum {
    MULTIPROCESSOR_THREADS = 2048,
    MULTIPROCESSOR_BLOCKS = 32,
    MULTIPROCESSOR_SHARED_BYTES = 228 << 10,
    BLOCK_THREADS = 1024,
    BLOCK_SHARED_BYTES = 227 << 10,
    RESERVED_SHARED_BYTES = 1 << 10, // of each block, for the system
    MULTIPROCESSORS = 132,
    WARP_THREADS = 32
};

static struct function *function_at(CUfunction handle) { return object_at((uintptr_t)handle, FUNCTION); }

static bool has_parameters(const struct entry *entry, const struct parameter *want, size_t count) {
    return entry->count == count && memcmp(entry->parameters, want, count * sizeof *want) == 0;
}

// vram_fill32(p, value, count) writes a word count times; vram_add32(to, from, count) adds words.
enum built_in program_of(const struct entry *entry) {
    static const struct parameter fill[] = {{0, 8}, {8, 4}, {12, 4}}, sum[] = {{0, 8}, {8, 8}, {16, 4}};
    if (strcmp(entry->name, "vram_fill32") == 0 && has_parameters(entry, fill, 3)) return FILL32;
    if (strcmp(entry->name, "vram_add32") == 0 && has_parameters(entry, sum, 3)) return ADD32;
    return NO_PROGRAM;
}

static uint32_t least(uint64_t threads, uint32_t count) { return threads < count ? (uint32_t)threads : count; }

// Performs a launch: a thread for each word.
CUresult run(const struct stream *stream, const struct operation *launch) {
    int device = stream->context->device;
    const unsigned char *at = launch->staged;
    uint64_t to, from;
    uint32_t value, count;
    switch (launch->program) {
    case NO_PROGRAM:
        if (world.runner)
            return (CUresult)world.runner(launch->kernel, launch->grid, launch->block, launch->shared_bytes, launch->staged);
        break;
    case FILL32:
        memcpy(&to, at, 8);
        memcpy(&value, at + 8, 4);
        memcpy(&count, at + 12, 4);
        count = least(launch->threads, count);
        if (!may_touch(to, (size_t)count * 4, device, 3, false)) return CUDA_ERROR_ILLEGAL_ADDRESS;
        for (uint32_t i = 0; i < count; i++) memcpy((char *)(uintptr_t)to + 4 * (size_t)i, &value, 4);
        break;
    case ADD32:
        memcpy(&to, at, 8);
        memcpy(&from, at + 8, 8);
        memcpy(&count, at + 16, 4);
        count = least(launch->threads, count);
        if (!may_touch(to, (size_t)count * 4, device, 3, false) || !may_touch(from, (size_t)count * 4, device, 1, false))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        for (uint32_t i = 0; i < count; i++) {
            uint32_t a, b;
            memcpy(&a, (char *)(uintptr_t)to + 4 * (size_t)i, 4);
            memcpy(&b, (char *)(uintptr_t)from + 4 * (size_t)i, 4);
            a += b;
            memcpy((char *)(uintptr_t)to + 4 * (size_t)i, &a, 4);
        }
        break;
    }
    return CUDA_SUCCESS;
}

static CUresult property(const struct function *function, int attribute, int *value) {
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = BLOCK_THREADS; break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *value = 0; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = 16; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = function->module->assembly.version; break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = function->max_dynamic_bytes; break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = function->carveout; break;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
    ENTER(USUAL);
    struct function *function = function_at(handle);
    if (!function) return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!value) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(property(function, (int)attribute, value));
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
    ENTER(USUAL);
    struct function *function = function_at(handle);
    if (!function) return leave(CUDA_ERROR_INVALID_HANDLE);
    bool dynamic = attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES && value >= 0 && value <= BLOCK_SHARED_BYTES;
    bool carveout = attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT && value >= -1 && value <= 100;
    if (dynamic) function->max_dynamic_bytes = value;
    if (carveout) function->carveout = value;
    return leave(dynamic || carveout ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes) {
    ENTER(USUAL);
    struct function *function = function_at(handle);
    if (!function) return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!offset || index >= function->entry->count) return leave(CUDA_ERROR_INVALID_VALUE);
    *offset = function->entry->parameters[index].offset_bytes;
    if (bytes) *bytes = function->entry->parameters[index].bytes;
    return leave(CUDA_SUCCESS);
}

// How many blocks a multiprocessor runs at once: threads come in warps, and each block takes shared memory.
static int resident(int threads, size_t shared_bytes) {
    if (threads > BLOCK_THREADS || shared_bytes > BLOCK_SHARED_BYTES) return 0;
    size_t blocks = MULTIPROCESSOR_THREADS / round_up((size_t)threads, WARP_THREADS);
    size_t fitting = MULTIPROCESSOR_SHARED_BYTES / (shared_bytes + RESERVED_SHARED_BYTES);
    if (blocks > fitting) blocks = fitting;
    return blocks > MULTIPROCESSOR_BLOCKS ? MULTIPROCESSOR_BLOCKS : (int)blocks;
}

static CUresult occupancy(int *blocks, CUfunction handle, int threads, size_t shared_bytes) {
    if (!function_at(handle)) return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = resident(threads, shared_bytes);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t sharedBytes) {
    ENTER(USUAL | CURRENT);
    return leave(occupancy(blocks, function, threads, sharedBytes));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function, int threads,
                                                              size_t sharedBytes, unsigned int flags) {
    ENTER(USUAL | CURRENT);
    if (flags > 1) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(occupancy(blocks, function, threads, sharedBytes));
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle, CUoccupancyB2DSize shared,
                                          size_t sharedBytes, int limit) {
    ENTER(USUAL | CURRENT);
    if (!function_at(handle)) return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!grid || !block || limit < 0) return leave(CUDA_ERROR_INVALID_VALUE);
    int best = 0;
    for (int threads = WARP_THREADS; threads <= BLOCK_THREADS; threads += WARP_THREADS) {
        int one = limit > 0 && threads > limit ? limit : threads;
        int blocks = resident(one, shared ? shared(one) : sharedBytes);
        if (blocks * one < best) continue;
        best = blocks * one;
        *block = one;
        *grid = blocks * MULTIPROCESSORS;
    }
    return leave(CUDA_SUCCESS);
}

// The packed parameters of a launch: the buffer that extra names, or one made of the single parameters. The driver does not
// compare the buffer's size with the kernel's: a shorter one is launched with, and what it lacks is 0 here and anything there.
static CUresult pack(const struct entry *entry, void **parameters, void **extra, struct operation *launch) {
    const void *buffer = NULL;
    size_t bytes = 0;
    if (parameters && extra) return CUDA_ERROR_INVALID_VALUE;
    for (; extra && *extra; extra += 2) {
        switch ((uintptr_t)*extra) {
        case 1: buffer = extra[1]; break;
        case 2: bytes = *(size_t *)extra[1]; break;
        default: return CUDA_ERROR_INVALID_VALUE;
        }
    }
    if (!parameters && !extra && entry->bytes > 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > entry->bytes) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    launch->count = entry->bytes;
    launch->width = 1;
    launch->staged = make(entry->bytes + 1);
    if (buffer) memcpy(launch->staged, buffer, bytes);
    for (size_t i = 0; parameters && i < entry->count; i++)
        memcpy((char *)launch->staged + entry->parameters[i].offset_bytes, parameters[i], entry->parameters[i].bytes);
    return CUDA_SUCCESS;
}

static bool launchable(const CUDA_KERNEL_NODE_PARAMS *p, const struct function *function) {
    uint64_t threads = (uint64_t)p->blockDimX * p->blockDimY * p->blockDimZ;
    if (threads == 0 || threads > BLOCK_THREADS || p->blockDimX > BLOCK_THREADS || p->blockDimY > BLOCK_THREADS) return false;
    if (p->blockDimZ > 64 || p->gridDimX == 0 || p->gridDimY == 0 || p->gridDimZ == 0) return false;
    if (p->gridDimX > 2147483647u || p->gridDimY > 65535 || p->gridDimZ > 65535) return false;
    return p->sharedMemBytes <= (unsigned)function->max_dynamic_bytes;
}

// Makes the operation of a launch in a context.
CUresult launch_new(const CUDA_KERNEL_NODE_PARAMS *params, const struct context *context, struct operation **out) {
    struct function *function = function_at(params->func);
    if (!function || (context && function->module->context != context)) return CUDA_ERROR_INVALID_HANDLE;
    if (!launchable(params, function)) return CUDA_ERROR_INVALID_VALUE;
    struct operation *launch = operation_new(LAUNCH);
    CUresult result = pack(function->entry, params->kernelParams, params->extra, launch);
    if (result != CUDA_SUCCESS) {
        operation_free(launch);
        return result;
    }
    launch->program = function->program;
    launch->threads = (uint64_t)params->gridDimX * params->blockDimX;
    launch->kernel = function->entry->name;
    const unsigned sizes[] = {params->gridDimX, params->gridDimY, params->gridDimZ,
                              params->blockDimX, params->blockDimY, params->blockDimZ};
    memcpy(launch->grid, sizes, sizeof launch->grid);
    memcpy(launch->block, sizes + 3, sizeof launch->block);
    launch->shared_bytes = params->sharedMemBytes;
    *out = launch;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int gridX, unsigned int gridY, unsigned int gridZ,
                        unsigned int blockX, unsigned int blockY, unsigned int blockZ, unsigned int sharedBytes,
                        CUstream handle, void **parameters, void **extra) {
    ENTER(USUAL);
    CUDA_KERNEL_NODE_PARAMS params = {.func = function, .gridDimX = gridX, .gridDimY = gridY, .gridDimZ = gridZ,
                                      .blockDimX = blockX, .blockDimY = blockY, .blockDimZ = blockZ,
                                      .sharedMemBytes = sharedBytes, .kernelParams = parameters, .extra = extra};
    struct stream *stream;
    struct operation *launch;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    result = launch_new(&params, stream->context, &launch);
    return leave(result == CUDA_SUCCESS ? submit(stream, launch) : result);
}
