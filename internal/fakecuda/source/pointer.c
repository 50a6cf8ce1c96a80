// What the driver knows of an address.
#include "state.h"

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p) {
    ENTER(USUAL | CURRENT);
    struct region *region = (struct region *)range_around(&world.regions, p);
    struct range *range = region ? &region->range : NULL;
    if (region && region->kind == RESERVATION) range = range_around(&world.mappings, p);
    if (!range) return leave(CUDA_ERROR_NOT_FOUND);
    if (base) *base = range->start;
    if (bytes) *bytes = range->bytes;
    return leave(CUDA_SUCCESS);
}

// What is known of an address: its region and, in a reservation, its mapping. Of reserved addresses where nothing is
// mapped nothing is known.
struct known {
    struct region *region;
    struct mapping *mapping;
    int device;
    uintptr_t start;
    size_t bytes;
    bool host;
};

static bool look_up(CUdeviceptr p, struct known *known) {
    *known = (struct known){.region = (struct region *)range_around(&world.regions, p)};
    if (!known->region) return false;
    known->device = known->region->device;
    known->start = known->region->range.start;
    known->bytes = known->region->range.bytes;
    known->host = known->region->kind == PINNED || known->region->kind == REGISTERED;
    if (known->region->kind != RESERVATION) return true;
    known->mapping = (struct mapping *)range_around(&world.mappings, p);
    if (!known->mapping) return false;
    known->device = known->mapping->handle->physical->device;
    return true;
}

static unsigned access_flags(const struct known *known) {
    if (!known->mapping) return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    struct context *context = current();
    return known->mapping->access[context ? context->device : known->device];
}

// Writes one attribute.
static CUresult answer(void *value, CUpointer_attribute attribute, CUdeviceptr p, const struct known *known) {
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)value = !known->region->context ? NULL : (CUcontext)known->region->context->object.id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = known->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = p; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!known->host) return CUDA_ERROR_INVALID_VALUE;
        *(void **)value = (void *)(uintptr_t)p;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned char *)value = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)value = known->region->number;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned char *)value = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = known->device; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        *(unsigned char *)value = known->region->kind == PLAIN;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = known->start; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = known->bytes; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(unsigned char *)value = 1; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        *(cuuint64_t *)value = !known->mapping ? 0 : known->mapping->handle->physical->prop.requestedHandleTypes;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: *(unsigned char *)value = 0; return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: *(unsigned *)value = access_flags(known); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(void **)value = NULL; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr p) {
    ENTER(USUAL);
    struct known known;
    if (!value || !look_up(p, &known)) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(answer(value, attribute, p, &known));
}
