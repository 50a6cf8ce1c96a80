// Setting and copying memory. Addresses are checked when the work is submitted and again when it is performed. What waits
// is work of the legacy stream: a capture forbids it only where the captured stream is a blocking one.
#include "state.h"

#include <string.h>

static bool host_side(uintptr_t address) { return range_around(&world.regions, address) == NULL; }

// Whether a range may be named now, on any thread: the stream says which context is meant.
static bool nameable(const struct stream *stream, uintptr_t address, size_t bytes, unsigned rights, bool any_device) {
    struct region *region = region_around(address, bytes);
    if (!region) return false;
    return may_touch(address, bytes, stream->context->device, rights, any_device);
}

static CUresult set(CUstream handle, CUdeviceptr p, uint64_t value, size_t count, size_t width) {
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (count > SIZE_MAX / 2 / width || p % width != 0) return CUDA_ERROR_INVALID_VALUE;
    if (count == 0) return CUDA_SUCCESS;
    if (!nameable(stream, p, count * width, 3, false)) return CUDA_ERROR_INVALID_VALUE;
    struct operation *operation = operation_new(SET);
    operation->dst = p;
    operation->value = value;
    operation->count = count;
    operation->width = width;
    operation->device_dst = true;
    return submit(stream, operation);
}

enum side { HOST, DEVICE, EITHER };

// A copy. From pageable memory the bytes are taken now; into pageable memory the copy is waited for.
static CUresult copy(CUstream handle, uintptr_t dst, enum side dst_side, uintptr_t src, enum side src_side, size_t bytes,
                     bool wait) {
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (bytes > SIZE_MAX / 2) return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) return CUDA_SUCCESS;
    bool pageable_dst = dst_side != DEVICE && host_side(dst), pageable_src = src_side != DEVICE && host_side(src);
    if ((pageable_dst && !dst) || (pageable_src && !src)) return CUDA_ERROR_INVALID_VALUE;
    if (!pageable_dst && !nameable(stream, dst, bytes, 3, true)) return CUDA_ERROR_INVALID_VALUE;
    if (!pageable_src && !nameable(stream, src, bytes, 1, true)) return CUDA_ERROR_INVALID_VALUE;
    struct operation *operation = operation_new(COPY);
    operation->dst = dst;
    operation->src = src;
    operation->count = bytes;
    operation->width = 1;
    operation->device_dst = !pageable_dst;
    operation->device_src = !pageable_src;
    if (pageable_src && !stream->capture) {
        operation->staged = make(bytes);
        memcpy(operation->staged, (void *)src, bytes);
    }
    struct context *context = stream->context;
    bool captured = stream->capture != NULL;
    result = submit(stream, operation);
    if (result != CUDA_SUCCESS || captured) return result;
    if (wait || pageable_dst) drain(stream);
    return context->sticky;
}

CUresult cuMemsetD8_v2(CUdeviceptr p, unsigned char value, size_t count) {
    ENTER(USUAL | CURRENT);
    return leave(set(NULL, p, value, count, 1));
}

CUresult cuMemsetD16_v2(CUdeviceptr p, unsigned short value, size_t count) {
    ENTER(USUAL | CURRENT);
    return leave(set(NULL, p, value, count, 2));
}

CUresult cuMemsetD32_v2(CUdeviceptr p, unsigned int value, size_t count) {
    ENTER(USUAL | CURRENT);
    return leave(set(NULL, p, value, count, 4));
}

CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char value, size_t count, CUstream stream) {
    ENTER(USUAL);
    return leave(set(stream, p, value, count, 1));
}

CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short value, size_t count, CUstream stream) {
    ENTER(USUAL);
    return leave(set(stream, p, value, count, 2));
}

CUresult cuMemsetD32Async(CUdeviceptr p, unsigned int value, size_t count, CUstream stream) {
    ENTER(USUAL);
    return leave(set(stream, p, value, count, 4));
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes) {
    ENTER(USUAL | CURRENT);
    return leave(copy(NULL, dst, DEVICE, (uintptr_t)src, HOST, bytes, true));
}

CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes) {
    ENTER(USUAL | CURRENT);
    return leave(copy(NULL, (uintptr_t)dst, HOST, src, DEVICE, bytes, true));
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    ENTER(USUAL | CURRENT);
    return leave(copy(NULL, dst, DEVICE, src, DEVICE, bytes, false));
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
    ENTER(USUAL);
    return leave(copy(stream, dst, DEVICE, (uintptr_t)src, HOST, bytes, false));
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    ENTER(USUAL);
    return leave(copy(stream, (uintptr_t)dst, HOST, src, DEVICE, bytes, false));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    ENTER(USUAL);
    return leave(copy(stream, dst, DEVICE, src, DEVICE, bytes, false));
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
    ENTER(USUAL | CURRENT);
    return leave(copy(NULL, dst, EITHER, src, EITHER, bytes, true));
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
    ENTER(USUAL);
    return leave(copy(stream, dst, EITHER, src, EITHER, bytes, false));
}

// Rows within device memory; hosts and arrays are not of this fake.
// The driver takes a pitch of 0 for any number of rows. Here they lie in one place then.
static bool too_narrow(size_t pitch, size_t bytes) { return pitch < bytes && pitch > 0; }

static CUresult copy_rows(const CUDA_MEMCPY2D *rows, CUstream handle) {
    struct stream *stream;
    CUresult result = stream_at(handle, &stream);
    if (result != CUDA_SUCCESS) return result;
    if (!rows) return CUDA_ERROR_INVALID_VALUE;
    if (rows->srcMemoryType != CU_MEMORYTYPE_DEVICE || rows->dstMemoryType != CU_MEMORYTYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    size_t width = rows->WidthInBytes, count = rows->Height;
    if (width == 0 || count == 0) return CUDA_SUCCESS;
    bool narrow = too_narrow(rows->srcPitch, rows->srcXInBytes + width) || too_narrow(rows->dstPitch, rows->dstXInBytes + width);
    if (narrow || rows->srcPitch > SIZE_MAX / 4 / count || rows->dstPitch > SIZE_MAX / 4 / count) return CUDA_ERROR_INVALID_VALUE;
    struct operation wanted = {.kind = COPY_ROWS, .count = width, .width = 1, .rows = count, .dst_pitch = rows->dstPitch,
                               .src_pitch = rows->srcPitch};
    wanted.dst = rows->dstDevice + rows->dstY * rows->dstPitch + rows->dstXInBytes;
    wanted.src = rows->srcDevice + rows->srcY * rows->srcPitch + rows->srcXInBytes;
    for (size_t i = 0; i < count; i++)
        if (!nameable(stream, wanted.dst + i * wanted.dst_pitch, width, 3, true) ||
            !nameable(stream, wanted.src + i * wanted.src_pitch, width, 1, true))
            return CUDA_ERROR_INVALID_VALUE;
    struct operation *operation = operation_new(COPY_ROWS);
    *operation = wanted;
    return submit(stream, operation);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *rows, CUstream stream) {
    ENTER(USUAL);
    return leave(copy_rows(rows, stream));
}

static bool contexts(CUcontext a, CUcontext b) {
    return object_at((uintptr_t)a, CONTEXT) && object_at((uintptr_t)b, CONTEXT);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext, size_t bytes) {
    ENTER(USUAL | CURRENT);
    if (!contexts(dstContext, srcContext)) return leave(CUDA_ERROR_INVALID_CONTEXT);
    return leave(copy(NULL, dst, DEVICE, src, DEVICE, bytes, false));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dstContext, CUdeviceptr src, CUcontext srcContext, size_t bytes,
                           CUstream stream) {
    ENTER(USUAL);
    if (!contexts(dstContext, srcContext)) return leave(CUDA_ERROR_INVALID_CONTEXT);
    return leave(copy(stream, dst, DEVICE, src, DEVICE, bytes, false));
}
