// Handles as file descriptors, for other processes and for this one.
#include "state.h"

#include <fcntl.h>
#include <sys/stat.h>

// Gives a descriptor that is the caller's to close.
CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle id, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
    ENTER(USUAL | VIRTUAL);
    struct handle *handle = object_at(id, HANDLE);
    if (!shared || flags || !handle || handle->names == 0) return leave(CUDA_ERROR_INVALID_VALUE);
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || handle->imported ||
        !(handle->physical->prop.requestedHandleTypes & type))
        return leave(CUDA_ERROR_INVALID_VALUE);
    int file = fcntl(handle->physical->file, F_DUPFD_CLOEXEC, 3);
    if (file < 0) return leave(CUDA_ERROR_OPERATING_SYSTEM);
    *(int *)shared = file;
    return leave(CUDA_SUCCESS);
}

static struct physical *by_inode(uint64_t inode) {
    for (struct physical *physical = world.physicals; physical; physical = physical->next) {
        struct stat status;
        if (!physical->inode && fstat(physical->file, &status) == 0) physical->inode = status.st_ino;
        if (physical->inode == inode) return physical;
    }
    return NULL;
}

// The descriptor stays the caller's. Memory of another process is charged to that process alone.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *shared, CUmemAllocationHandleType type) {
    ENTER(USUAL | VIRTUAL);
    struct stat status;
    int theirs = (int)(intptr_t)shared;
    if (!out || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return leave(CUDA_ERROR_INVALID_VALUE);
    if (fstat(theirs, &status) != 0) return leave(CUDA_ERROR_UNKNOWN);
    if (status.st_size <= 0 || (size_t)status.st_size % GRANULE_BYTES != 0) return leave(CUDA_ERROR_INVALID_VALUE);
    struct physical *physical = by_inode(status.st_ino);
    if (!physical) {
        int file = fcntl(theirs, F_DUPFD_CLOEXEC, 3);
        if (file < 0) return leave(CUDA_ERROR_OPERATING_SYSTEM);
        physical = make(sizeof *physical);
        *physical = (struct physical){.file = file, .bytes = (size_t)status.st_size, .inode = status.st_ino,
                                      .next = world.physicals};
        physical->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        physical->prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        physical->prop.requestedHandleTypes = type;
        world.physicals = physical;
    }
    physical->references++;
    struct handle *handle = object_new(sizeof *handle, HANDLE);
    handle->physical = physical;
    handle->names = 1;
    handle->imported = true;
    *out = handle->object.id;
    return leave(CUDA_SUCCESS);
}
