// Tensor maps. The encoded form is this library's own; kernels that copy tensors do not run here.
#include "state.h"

// The sizes of elements, by type.
static const unsigned element_bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};

static bool within(const cuuint64_t *dims, const cuuint64_t *strides, const cuuint32_t *box, const cuuint32_t *steps, unsigned rank) {
    for (unsigned i = 0; i < rank; i++) {
        if (dims[i] < 1 || dims[i] > 1ull << 32 || box[i] < 1 || box[i] > 256 || steps[i] < 1 || steps[i] > 8) return false;
        if (i > 0 && (strides[i - 1] % 16 || strides[i - 1] >= 1ull << 40)) return false;
    }
    return true;
}

CUresult cuTensorMapEncodeTiled(CUtensorMap *map, int type, cuuint32_t rank, void *address, const cuuint64_t *dims, const cuuint64_t *strides,
                                const cuuint32_t *box, const cuuint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
    ENTER(USUAL);
    if (!map || (uintptr_t)map % 64 || !address || (uintptr_t)address % 16 || rank < 1 || rank > 5 || !dims || (rank > 1 && !strides) || !box || !steps)
        return leave(CUDA_ERROR_INVALID_VALUE);
    if (type < 0 || type >= (int)(sizeof element_bytes / sizeof *element_bytes) || interleave || swizzle < 0 || swizzle > 3 || promotion < 0 ||
        promotion > 3 || fill < 0 || fill > 1 || !within(dims, strides, box, steps, rank))
        return leave(CUDA_ERROR_INVALID_VALUE);
    const unsigned row = box[0] * element_bytes[type];
    if (row % 16 || (swizzle && row > 16u << swizzle)) return leave(CUDA_ERROR_INVALID_VALUE);
    *map = (CUtensorMap){{(cuuint64_t)(uintptr_t)address, (cuuint64_t)type | (cuuint64_t)rank << 8 | (cuuint64_t)swizzle << 16 | (cuuint64_t)promotion << 24}};
    for (unsigned i = 0; i < rank; i++) {
        map->opaque[2 + i] = dims[i];
        map->opaque[7 + i] = i > 0 ? strides[i - 1] : 0;
        map->opaque[12] = map->opaque[12] << 9 | box[i];
    }
    return leave(CUDA_SUCCESS);
}
