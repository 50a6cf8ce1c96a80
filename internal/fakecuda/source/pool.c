// Stream-ordered memory. A pool keeps the blocks that were freed and gives a block of the same size again: on the stream
// that freed it at once, on others when the free was performed. Whatever waits for work gives back what a pool has
// reserved above its threshold.
#include "state.h"

static struct pool *pool_new(int device) {
    struct pool *pool = object_new(sizeof *pool, POOL);
    pool->device = device;
    for (int i = 1; i <= 3; i++) pool->reuse[i] = 1;
    return pool;
}

struct pool *pool_default(int device) {
    struct device *d = &world.devices[device];
    if (!d->default_pool) {
        d->default_pool = pool_new(device);
        d->default_pool->owned_by_device = true;
        if (!d->pool) d->pool = d->default_pool;
    }
    return d->default_pool;
}

static bool idle(const struct region *region) { return region->kind == POOLED && region->freed && region->frees == 0; }

// Gives a block back. A destroyed pool goes with its last block; then this says so.
bool pool_drop(struct region *region) {
    struct pool *pool = region->pool;
    pool->reserved_bytes -= region->charged_bytes;
    region_free(region);
    bool last = pool->destroyed && pool->reserved_bytes == 0;
    if (last) free(pool);
    return last;
}

// Gives idle blocks back, the highest addresses first, while more than so many bytes are reserved.
static void trim(struct pool *pool, uint64_t keep_bytes) {
    for (size_t i = world.regions.count; i-- > 0 && pool->reserved_bytes > keep_bytes;) {
        struct region *region = (struct region *)world.regions.items[i];
        if (region->pool == pool && idle(region) && pool_drop(region)) return;
    }
}

static void trim_object(struct object *object, void *unused) {
    (void)unused;
    struct pool *pool = (struct pool *)object;
    trim(pool, pool->threshold_bytes);
}

void pool_synchronised(void) { object_each(POOL, trim_object, NULL); }

// The caller has freed the block; the stream will perform the free.
void pool_take_back(struct region *region, struct stream *stream) {
    region->freed = true;
    region->freed_on = stream;
    region->frees++;
    region->pool->used_bytes -= region->charged_bytes;
}

// The free was performed.
void pool_freed(struct region *region) {
    if (--region->frees > 0) return;
    region->freed_on = NULL;
    if (region->freed && region->pool->destroyed) trim(region->pool, 0);
}

static struct region *cached(struct pool *pool, size_t bytes, const struct stream *stream) {
    size_t charged = round_up(bytes, bytes > GRANULE_BYTES ? GRANULE_BYTES : PLAIN_STEP_BYTES);
    for (size_t i = 0; i < world.regions.count; i++) {
        struct region *region = (struct region *)world.regions.items[i];
        if (region->kind != POOLED || region->pool != pool || !region->freed || region->charged_bytes != charged) continue;
        if (region->span_bytes < bytes) continue;
        if (region->frees == 0 || region->freed_on == stream) return region;
    }
    return NULL;
}

static CUresult allocate(CUdeviceptr *p, size_t bytes, struct pool *pool, CUstream handle) {
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    if (stream->capture) { // memory of graphs is not here
        capture_spoil(stream->capture);
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    if (bytes == 0) { // address 0, which may be freed
        *p = 0;
        return CUDA_SUCCESS;
    }
    if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!pool) {
        pool_default(stream->context->device);
        pool = world.devices[stream->context->device].pool;
    }
    struct region *region = cached(pool, bytes, stream);
    if (region) {
        region->freed = false;
        region->range.bytes = bytes;
    } else {
        if (pool->limit_bytes && pool->reserved_bytes + bytes > pool->limit_bytes) return CUDA_ERROR_OUT_OF_MEMORY;
        result = region_new(POOLED, pool->device, bytes, &region);
        if (result == CUDA_ERROR_OUT_OF_MEMORY) {
            trim(pool, 0);
            result = region_new(POOLED, pool->device, bytes, &region);
        }
        if (result != CUDA_SUCCESS) return result;
        region->pool = pool;
        pool->reserved_bytes += region->charged_bytes;
        if (pool->reserved_high_bytes < pool->reserved_bytes) pool->reserved_high_bytes = pool->reserved_bytes;
    }
    pool->used_bytes += region->charged_bytes;
    if (pool->used_high_bytes < pool->used_bytes) pool->used_high_bytes = pool->used_bytes;
    *p = region->range.start;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream stream) {
    ENTER(USUAL | POOLS);
    return leave(allocate(p, bytes, NULL, stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t bytes, CUmemoryPool handle, CUstream stream) {
    ENTER(USUAL | POOLS);
    struct pool *pool = object_at((uintptr_t)handle, POOL);
    if (!pool) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(allocate(p, bytes, pool, stream));
}

// Frees plain memory, too. Address 0 is nothing.
CUresult cuMemFreeAsync(CUdeviceptr p, CUstream handle) {
    ENTER(USUAL | POOLS);
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return leave(result);
    if (!p) return leave(CUDA_SUCCESS);
    struct region *region = region_at(p);
    if (!region || (region->kind != PLAIN && region->kind != POOLED) || region->freed) return leave(CUDA_ERROR_INVALID_VALUE);
    if (stream->capture) {
        capture_spoil(stream->capture);
        return leave(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    if (region->kind == POOLED)
        pool_take_back(region, stream);
    else
        region->freed = true;
    struct operation *operation = operation_new(FREE);
    operation->dst = p;
    return leave(submit(stream, operation));
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props) {
    ENTER(USUAL | POOLS);
    if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED) return leave(CUDA_ERROR_INVALID_VALUE);
    if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(props->location.id))
        return leave(CUDA_ERROR_INVALID_VALUE);
    struct pool *made = pool_new(props->location.id);
    made->limit_bytes = props->maxSize;
    *pool = (CUmemoryPool)made->object.id;
    return leave(CUDA_SUCCESS);
}

// The blocks that are in use stay; the pool goes with the last of them.
CUresult cuMemPoolDestroy(CUmemoryPool handle) {
    ENTER(USUAL | POOLS);
    struct pool *pool = object_at((uintptr_t)handle, POOL);
    if (!pool || pool->owned_by_device) return leave(CUDA_ERROR_INVALID_VALUE);
    for (int i = 0; i < DEVICE_LIMIT; i++)
        if (world.devices[i].pool == pool) world.devices[i].pool = pool_default(i);
    object_unname(&pool->object);
    trim(pool, 0);
    pool->destroyed = true;
    if (pool->reserved_bytes == 0) free(pool);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keepBytes) {
    ENTER(USUAL | POOLS);
    struct pool *pool = object_at((uintptr_t)handle, POOL);
    if (!pool) return leave(CUDA_ERROR_INVALID_VALUE);
    trim(pool, keepBytes);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
    ENTER(USUAL | POOLS);
    struct pool *pool = object_at((uintptr_t)handle, POOL);
    if (!pool || !value) return leave(CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        pool->reuse[attribute] = (uint64_t)(*(int *)value != 0);
        return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: pool->threshold_bytes = *(cuuint64_t *)value; return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        if (*(cuuint64_t *)value != 0) return leave(CUDA_ERROR_INVALID_VALUE);
        if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
            pool->used_high_bytes = pool->used_bytes;
        else
            pool->reserved_high_bytes = pool->reserved_bytes;
        return leave(CUDA_SUCCESS);
    default: return leave(CUDA_ERROR_INVALID_VALUE);
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute attribute, void *value) {
    ENTER(USUAL | POOLS);
    struct pool *pool = object_at((uintptr_t)handle, POOL);
    if (!pool || !value) return leave(CUDA_ERROR_INVALID_VALUE);
    switch (attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = (int)pool->reuse[attribute];
        return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: *(cuuint64_t *)value = pool->threshold_bytes; return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: *(cuuint64_t *)value = pool->reserved_bytes; return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: *(cuuint64_t *)value = pool->reserved_high_bytes; return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: *(cuuint64_t *)value = pool->used_bytes; return leave(CUDA_SUCCESS);
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: *(cuuint64_t *)value = pool->used_high_bytes; return leave(CUDA_SUCCESS);
    default: return leave(CUDA_ERROR_INVALID_VALUE);
    }
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) {
    ENTER(USUAL | POOLS);
    if (!pool) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    *pool = (CUmemoryPool)pool_default(device)->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
    ENTER(USUAL | POOLS);
    if (!pool) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    pool_default(device);
    *pool = (CUmemoryPool)world.devices[device].pool->object.id;
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool handle) {
    ENTER(USUAL | POOLS);
    struct pool *pool = object_at((uintptr_t)handle, POOL);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    if (!pool || pool->device != device) return leave(CUDA_ERROR_INVALID_VALUE);
    pool_default(device);
    world.devices[device].pool = pool;
    return leave(CUDA_SUCCESS);
}
