// Names: of results, and of the driver's own functions.
#include "state.h"

#include <stdio.h>
#include <string.h>

static const char *name_of(CUresult result) {
    switch ((int)result) {
#define NAME(name, number) \
    case number: return #name;
        FAKECUDA_RESULTS(NAME)
    default: return NULL;
    }
}

CUresult cuGetErrorName(CUresult result, const char **name) {
    ENTER(NOTHING);
    if (!name) return leave(CUDA_ERROR_INVALID_VALUE);
    *name = name_of(result);
    return leave(*name ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

// The driver's texts for the results that callers here meet; of others, the name.
static const char *text_of(CUresult result) {
    switch ((int)result) {
    case CUDA_SUCCESS: return "no error";
    case CUDA_ERROR_INVALID_VALUE: return "invalid argument";
    case CUDA_ERROR_OUT_OF_MEMORY: return "out of memory";
    case CUDA_ERROR_NOT_INITIALIZED: return "initialization error";
    case CUDA_ERROR_NO_DEVICE: return "no CUDA-capable device is detected";
    case CUDA_ERROR_INVALID_DEVICE: return "invalid device ordinal";
    case CUDA_ERROR_INVALID_CONTEXT: return "invalid device context";
    case CUDA_ERROR_INVALID_HANDLE: return "invalid resource handle";
    case CUDA_ERROR_NOT_FOUND: return "named symbol not found";
    case CUDA_ERROR_NOT_READY: return "device not ready";
    case CUDA_ERROR_ILLEGAL_ADDRESS: return "an illegal memory access was encountered";
    case CUDA_ERROR_LAUNCH_FAILED: return "unspecified launch failure";
    case CUDA_ERROR_NOT_PERMITTED: return "operation not permitted";
    case CUDA_ERROR_NOT_SUPPORTED: return "operation not supported";
    case CUDA_ERROR_UNKNOWN: return "unknown error";
    default: return name_of(result);
    }
}

CUresult cuGetErrorString(CUresult result, const char **text) {
    ENTER(NOTHING);
    if (!text) return leave(CUDA_ERROR_INVALID_VALUE);
    *text = text_of(result);
    return leave(*text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}
