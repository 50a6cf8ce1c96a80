// Names: of results, and of the driver's own functions.
#include "state.h"

#include <dlfcn.h>
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

// This library, whatever name it was opened by.
static void *own_library(void) {
    Dl_info info;
    if (!dladdr((void *)(uintptr_t)name_of, &info)) return NULL;
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

static bool is_hidden(const char *symbol) {
    for (int i = 0; i < world.hidden_count; i++)
        if (same_symbol(symbol, world.hidden[i])) return true;
    return false;
}

// The newest version of a call that this library has. The caller names it without its version.
static void *function_called(const char *symbol) {
    static const char *const versions[] = {"_v3", "_v2", ""};
    size_t length = strlen(symbol);
    if (length + 4 > NAME_ROOM || strncmp(symbol, "cu", 2) != 0) return NULL;
    if (length > 3 && symbol[length - 3] == '_' && symbol[length - 2] == 'v') return NULL;
    void *library = own_library(), *found = NULL;
    for (size_t i = 0; library && !found && i < 3; i++) {
        char exported[NAME_ROOM];
        snprintf(exported, sizeof exported, "%s%s", symbol, versions[i]);
        if (!is_hidden(exported)) found = dlsym(library, exported);
    }
    if (library) dlclose(library); // the count of openings, not the library
    return found;
}

// A function that is not there is a failure in the first version only. The second one says so in its status, which the
// caller need not take.
CUresult cuGetProcAddress_v2(const char *symbol, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status) {
    ENTER(NOTHING);
    if (!symbol || !function || version <= 0 || flags > 4) return leave(CUDA_ERROR_INVALID_VALUE);
    *function = function_called(symbol);
    if (status) *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return leave(CUDA_SUCCESS);
}

#undef cuGetProcAddress
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
    __attribute__((visibility("default")));
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags) {
    ENTER(NOTHING);
    if (!symbol || !function || version <= 0 || flags > 4) return leave(CUDA_ERROR_INVALID_VALUE);
    *function = function_called(symbol);
    return leave(*function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
}
