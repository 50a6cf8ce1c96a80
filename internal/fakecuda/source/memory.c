// Plain device memory and pinned host memory.
#include "state.h"

#include <sys/mman.h>

// A region of fresh memory, and its charge on the device where it is the device's.
CUresult region_new(enum region_kind kind, int device, size_t bytes, struct region **made) {
    if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
    if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
    bool on_device = kind == PLAIN || kind == VARIABLE;
    size_t charged = round_up(bytes, bytes > GRANULE_BYTES ? GRANULE_BYTES : PLAIN_STEP_BYTES);
    if (on_device && !charge(device, charged)) return CUDA_ERROR_OUT_OF_MEMORY;
    size_t span = round_up(bytes, 4096);
    void *p = mmap(NULL, span, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        if (on_device) world.devices[device].used_bytes -= charged;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct region *region = make(sizeof *region);
    region->range = (struct range){(uintptr_t)p, bytes};
    region->kind = kind;
    region->span_bytes = span;
    region->charged_bytes = on_device ? charged : 0;
    region->device = device;
    range_put(&world.regions, &region->range);
    *made = region;
    return CUDA_SUCCESS;
}

// Gives a region's memory and address space back.
void region_free(struct region *region) {
    range_drop(&world.regions, &region->range);
    if (region->kind != REGISTERED) munmap((void *)region->range.start, region->span_bytes);
    world.devices[region->device].used_bytes -= region->charged_bytes;
    free(region);
}

CUresult cuMemGetInfo_v2(size_t *freeBytes, size_t *totalBytes) {
    ENTER(USUAL | CURRENT);
    if (!freeBytes || !totalBytes) return leave(CUDA_ERROR_INVALID_VALUE);
    struct device *device = &world.devices[current()->device];
    size_t taken = device->used_bytes + device->occupied_bytes;
    *totalBytes = device->capacity_bytes;
    *freeBytes = taken < device->capacity_bytes ? device->capacity_bytes - taken : 0;
    return leave(CUDA_SUCCESS);
}

static CUresult allocate(CUdeviceptr *p, size_t bytes) {
    struct context *context = current();
    struct region *region;
    CUresult result = region_new(PLAIN, context->device, bytes, &region);
    if (result != CUDA_SUCCESS) return result;
    region->context = context;
    *p = region->range.start;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes) {
    ENTER(USUAL | CURRENT | UNCAPTURED);
    if (!p) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(allocate(p, bytes));
}

CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t widthBytes, size_t height, unsigned int elementBytes) {
    ENTER(USUAL | CURRENT | UNCAPTURED);
    if (!p || !pitch || (elementBytes != 4 && elementBytes != 8 && elementBytes != 16)) return leave(CUDA_ERROR_INVALID_VALUE);
    if (widthBytes == 0 || height == 0 || widthBytes > SIZE_MAX / 4 / height) return leave(CUDA_ERROR_INVALID_VALUE);
    *pitch = round_up(widthBytes, PLAIN_STEP_BYTES);
    return leave(allocate(p, *pitch * height));
}

// Waits for all work of the device. It needs no context; address 0 is nothing.
CUresult cuMemFree_v2(CUdeviceptr p) {
    ENTER(USUAL | UNCAPTURED);
    if (!p) return leave(CUDA_SUCCESS);
    struct region *region = region_at(p);
    if (!region || region->kind != PLAIN) return leave(CUDA_ERROR_INVALID_VALUE);
    struct context *context = region->context;
    if (context && context->sticky) return leave(context->sticky);
    drain_where(NULL, region->device);
    if (region_at(p) != region) return leave(CUDA_ERROR_INVALID_VALUE); // somebody else freed it meanwhile
    region_free(region);
    return leave(context ? context->sticky : CUDA_SUCCESS);
}

// No bytes are at address 0.
static CUresult pin(void **p, size_t bytes, unsigned flags) {
    struct region *region;
    *p = NULL;
    if (bytes == 0) return CUDA_SUCCESS;
    CUresult result = region_new(PINNED, current()->device, bytes, &region);
    if (result != CUDA_SUCCESS) return result;
    region->context = current();
    region->flags = flags | CU_MEMHOSTALLOC_DEVICEMAP; // all pinned memory is mapped where addressing is unified
    *p = (void *)region->range.start;
    return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **p, size_t bytes, unsigned int flags) {
    ENTER(USUAL | CURRENT | UNCAPTURED);
    if (!p || flags > 7) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(pin(p, bytes, flags));
}

// Waits for all work of the device. Address 0 is nothing.
CUresult cuMemFreeHost(void *p) {
    ENTER(USUAL | UNCAPTURED);
    if (!p) return leave(CUDA_SUCCESS);
    struct region *region = region_at((uintptr_t)p);
    if (!region || region->kind != PINNED) return leave(CUDA_ERROR_INVALID_VALUE);
    drain_where(NULL, region->device);
    if (region_at((uintptr_t)p) != region) return leave(CUDA_ERROR_INVALID_VALUE);
    region_free(region);
    return leave(CUDA_SUCCESS);
}

// Memory that the driver has made cannot be registered; what is registered cannot be again, in parts either.
CUresult cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags) {
    ENTER(USUAL | CURRENT | UNCAPTURED);
    if (!p || bytes == 0 || flags > 15 || (uintptr_t)p + bytes < (uintptr_t)p) return leave(CUDA_ERROR_INVALID_VALUE);
    size_t i = range_from(&world.regions, (uintptr_t)p);
    struct region *region = i < world.regions.count ? (struct region *)world.regions.items[i] : NULL;
    if (region && region->range.start < (uintptr_t)p + bytes)
        return leave(region->kind == REGISTERED ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED : CUDA_ERROR_INVALID_VALUE);
    region = make(sizeof *region);
    region->range = (struct range){(uintptr_t)p, bytes};
    region->kind = REGISTERED;
    region->device = current()->device;
    region->context = current();
    region->flags = flags;
    range_put(&world.regions, &region->range);
    return leave(CUDA_SUCCESS);
}

// Waits for all work of the device. Of memory that the driver knows only the start of what was registered is taken.
CUresult cuMemHostUnregister(void *p) {
    ENTER(USUAL | UNCAPTURED);
    struct region *region = (struct region *)range_around(&world.regions, (uintptr_t)p);
    if (!p) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!region) return leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    if (region->kind != REGISTERED || region->range.start != (uintptr_t)p) return leave(CUDA_ERROR_INVALID_VALUE);
    drain_where(NULL, region->device);
    if (region_at((uintptr_t)p) != region) return leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    region_free(region);
    return leave(CUDA_SUCCESS);
}

static struct region *host_region(const void *p) {
    struct region *region = (struct region *)range_around(&world.regions, (uintptr_t)p);
    return region && (region->kind == PINNED || region->kind == REGISTERED) ? region : NULL;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *device, void *host, unsigned int flags) {
    ENTER(USUAL | CURRENT);
    if (!device || flags || !host_region(host)) return leave(CUDA_ERROR_INVALID_VALUE);
    *device = (CUdeviceptr)(uintptr_t)host;
    return leave(CUDA_SUCCESS);
}

CUresult cuMemHostGetFlags(unsigned int *flags, void *p) {
    ENTER(USUAL | CURRENT);
    struct region *region = host_region(p);
    if (!flags || !region) return leave(CUDA_ERROR_INVALID_VALUE);
    *flags = region->flags;
    return leave(CUDA_SUCCESS);
}
