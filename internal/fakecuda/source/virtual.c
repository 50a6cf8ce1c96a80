// Virtual memory: reservations are address space without rights, handles are files in memory, and a mapping is the file
// mapped over a part of a reservation. So bytes move with their handle and a handle may be in several places.
#include "state.h"

#include <sys/mman.h>
#include <unistd.h>

// Callers without this header lay the structures out by these sizes.
_Static_assert(sizeof(CUmemAllocationProp) == 32 && offsetof(CUmemAllocationProp, location) == 8 &&
                   offsetof(CUmemAllocationProp, allocFlags) == 24,
               "CUmemAllocationProp");
_Static_assert(sizeof(CUmemAccessDesc) == 12 && sizeof(CUmemLocation) == 8, "CUmemAccessDesc");

static bool whole_granules(uint64_t bytes) { return bytes > 0 && bytes % GRANULE_BYTES == 0; }

static bool pinned_on_device(const CUmemAllocationProp *prop) {
    return prop && prop->type == CU_MEM_ALLOCATION_TYPE_PINNED && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

// The same for all properties, which are not looked at.
CUresult cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags which) {
    ENTER(USUAL | VIRTUAL);
    if (!bytes || !prop || (unsigned)which > 1) return leave(CUDA_ERROR_INVALID_VALUE);
    *bytes = GRANULE_BYTES;
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t alignment, CUdeviceptr wanted, unsigned long long flags) {
    ENTER(USUAL | VIRTUAL);
    (void)wanted; // a wish, which the driver may pass over
    if (!p || !whole_granules(bytes) || (alignment & (alignment - 1)) || flags) return leave(CUDA_ERROR_INVALID_VALUE);
    if (alignment < GRANULE_BYTES) alignment = GRANULE_BYTES;
    if (bytes > SIZE_MAX / 4 || alignment > SIZE_MAX / 4) return leave(CUDA_ERROR_OUT_OF_MEMORY);
    size_t span = bytes + alignment;
    char *start = mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) return leave(CUDA_ERROR_OUT_OF_MEMORY);
    char *aligned = (char *)round_up((uintptr_t)start, alignment);
    if (aligned > start) munmap(start, (size_t)(aligned - start));
    if (aligned + bytes < start + span) munmap(aligned + bytes, (size_t)(start + span - aligned) - bytes);
    struct region *region = make(sizeof *region);
    region->range = (struct range){(uintptr_t)aligned, bytes};
    region->kind = RESERVATION;
    region->span_bytes = bytes;
    range_put(&world.regions, &region->range);
    *p = (uintptr_t)aligned;
    return leave(CUDA_SUCCESS);
}

CUresult cuMemAddressFree(CUdeviceptr p, size_t bytes) {
    ENTER(USUAL | VIRTUAL);
    struct region *region = region_at(p);
    if (!region || region->kind != RESERVATION || region->range.bytes != bytes || region->mappings > 0)
        return leave(CUDA_ERROR_INVALID_VALUE);
    region_free(region);
    return leave(CUDA_SUCCESS);
}

// The memory goes back with the last handle and mapping.
void physical_free(struct physical *physical) {
    if (--physical->references > 0) return;
    for (struct physical **link = &world.physicals; *link; link = &(*link)->next) {
        if (*link != physical) continue;
        *link = physical->next;
        break;
    }
    close(physical->file);
    if (physical->charged) world.devices[physical->device].used_bytes -= physical->bytes;
    free(physical);
}

// Ends a handle that has neither name nor mapping.
void handle_collect(struct handle *handle) {
    if (handle->names > 0 || handle->mappings > 0) return;
    physical_free(handle->physical);
    object_free(handle);
}

// Types of shareable handles; bits that name none are not looked at.
enum { WINDOWS_TYPES = 2 | 4, FABRIC_TYPE = 8 };

CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
                     unsigned long long flags) {
    ENTER(USUAL | VIRTUAL);
    if (!out || flags || !whole_granules(bytes) || !pinned_on_device(prop)) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(prop->location.id)) return leave(CUDA_ERROR_INVALID_DEVICE);
    if (prop->requestedHandleTypes & WINDOWS_TYPES) return leave(CUDA_ERROR_INVALID_VALUE);
    if (prop->requestedHandleTypes & FABRIC_TYPE) return leave(CUDA_ERROR_NOT_SUPPORTED);
    if (!charge(prop->location.id, bytes)) return leave(CUDA_ERROR_OUT_OF_MEMORY);
    int file = memfd_create("fakecuda", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)bytes) != 0) {
        if (file >= 0) close(file);
        world.devices[prop->location.id].used_bytes -= bytes;
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    }
    struct physical *physical = make(sizeof *physical);
    *physical = (struct physical){.references = 1, .file = file, .device = prop->location.id, .bytes = bytes,
                                  .charged = true, .prop = *prop, .next = world.physicals};
    world.physicals = physical;
    struct handle *handle = object_new(sizeof *handle, HANDLE);
    handle->physical = physical;
    handle->names = 1;
    *out = handle->object.id;
    return leave(CUDA_SUCCESS);
}

static struct handle *named(CUmemGenericAllocationHandle id) {
    struct handle *handle = object_at(id, HANDLE);
    return handle && handle->names > 0 ? handle : NULL;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle id) {
    ENTER(USUAL | VIRTUAL);
    struct handle *handle = named(id);
    if (!handle) return leave(CUDA_ERROR_INVALID_VALUE);
    handle->names--;
    handle_collect(handle);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemMap(CUdeviceptr p, size_t bytes, size_t offset, CUmemGenericAllocationHandle id, unsigned long long flags) {
    ENTER(USUAL | VIRTUAL);
    struct handle *handle = named(id);
    if (!handle || flags || bytes == 0 || p % GRANULE_BYTES != 0) return leave(CUDA_ERROR_INVALID_VALUE);
    if (offset != 0 || bytes != handle->physical->bytes) return leave(CUDA_ERROR_NOT_SUPPORTED);
    struct region *region = region_around(p, bytes);
    if (!region || region->kind != RESERVATION) return leave(CUDA_ERROR_INVALID_VALUE);
    size_t i = range_from(&world.mappings, p);
    if (i < world.mappings.count && world.mappings.items[i]->start < p + bytes) return leave(CUDA_ERROR_INVALID_VALUE);
    if (mmap((void *)(uintptr_t)p, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->physical->file, 0) == MAP_FAILED)
        return leave(CUDA_ERROR_OUT_OF_MEMORY);
    struct mapping *mapping = make(sizeof *mapping);
    mapping->range = (struct range){p, bytes};
    mapping->handle = handle;
    mapping->region = region;
    range_put(&world.mappings, &mapping->range);
    handle->mappings++;
    region->mappings++;
    return leave(CUDA_SUCCESS);
}

void unmap(struct mapping *mapping) {
    mmap((void *)mapping->range.start, mapping->range.bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    range_drop(&world.mappings, &mapping->range);
    mapping->region->mappings--;
    mapping->handle->mappings--;
    handle_collect(mapping->handle);
    free(mapping);
}

// The mappings in [p, p+bytes) as indices [*first, *behind), from the start of one to the end of one where ends count.
// Then the range is inside a reservation, else it begins in one. Holes are passed over.
static bool tiled(CUdeviceptr p, size_t bytes, bool ends, size_t *first, size_t *behind) {
    struct region *region = region_around(p, ends ? bytes : 1);
    if (!whole_granules(bytes) || bytes > SIZE_MAX - p || p % GRANULE_BYTES != 0) return false;
    if (!region || region->kind != RESERVATION) return false;
    uintptr_t end = p + bytes, begun = end, reached = p;
    *first = *behind = range_from(&world.mappings, p);
    for (; *behind < world.mappings.count && world.mappings.items[*behind]->start < end; ++*behind) {
        const struct range *range = world.mappings.items[*behind];
        if (range->start < p || range->start + range->bytes > end) return false;
        if (begun == end) begun = range->start;
        reached = range->start + range->bytes;
    }
    return !ends || (begun == p && reached == end);
}

// Waits for nothing: work that still touches the range fails its context.
CUresult cuMemUnmap(CUdeviceptr p, size_t bytes) {
    ENTER(USUAL | VIRTUAL);
    size_t first, behind;
    if (!tiled(p, bytes, false, &first, &behind)) return leave(CUDA_ERROR_INVALID_VALUE);
    while (behind-- > first) unmap((struct mapping *)world.mappings.items[behind]);
    return leave(CUDA_SUCCESS);
}

CUresult cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *desc, size_t count) {
    ENTER(USUAL | VIRTUAL);
    size_t first, behind;
    if (!desc || count == 0 || !tiled(p, bytes, true, &first, &behind)) return leave(CUDA_ERROR_INVALID_VALUE);
    for (size_t i = 0; i < count; i++) {
        bool known = desc[i].flags == 0 || desc[i].flags == 1 || desc[i].flags == 3;
        if (!known || desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || !valid_device(desc[i].location.id))
            return leave(CUDA_ERROR_INVALID_VALUE);
    }
    for (size_t m = first; m < behind; m++) {
        struct mapping *mapping = (struct mapping *)world.mappings.items[m];
        for (size_t i = 0; i < count; i++) mapping->access[desc[i].location.id] = (unsigned char)desc[i].flags;
        unsigned all = 0;
        for (int device = 0; device < DEVICE_LIMIT; device++) all |= mapping->access[device];
        int rights = all == 0 ? PROT_NONE : all == 1 ? PROT_READ : PROT_READ | PROT_WRITE;
        mprotect((void *)mapping->range.start, mapping->range.bytes, rights);
    }
    return leave(CUDA_SUCCESS);
}
