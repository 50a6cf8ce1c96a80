// Starting the driver, and what it says of devices.
#include "state.h"

#include <stdio.h>
#include <string.h>

CUresult cuInit(unsigned int flags) {
    ENTER(NOTHING);
    if (flags) return leave(CUDA_ERROR_INVALID_VALUE);
    if (world.device_count < 1) return leave(CUDA_ERROR_NO_DEVICE);
    world.started = true;
    return leave(CUDA_SUCCESS);
}

CUresult cuDriverGetVersion(int *version) {
    ENTER(NOTHING);
    if (!version) return leave(CUDA_ERROR_INVALID_VALUE);
    *version = world.version;
    return leave(CUDA_SUCCESS);
}

bool valid_device(int device) { return device >= 0 && device < world.device_count; }

CUresult cuDeviceGetCount(int *count) {
    ENTER(STARTED);
    if (!count) return leave(CUDA_ERROR_INVALID_VALUE);
    *count = world.device_count;
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER(STARTED);
    if (!device) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(ordinal)) return leave(CUDA_ERROR_INVALID_DEVICE);
    *device = ordinal;
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    ENTER(STARTED);
    if (!name || room <= 0) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    snprintf(name, (size_t)room, "Fake CUDA device");
    return leave(CUDA_SUCCESS);
}

static CUresult uuid_of(CUuuid *uuid, CUdevice device) {
    if (!uuid) return CUDA_ERROR_INVALID_VALUE;
    if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
    memcpy(uuid->bytes, "fakecuda-device", 15);
    uuid->bytes[15] = (char)(device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    ENTER(STARTED);
    return leave(uuid_of(uuid, device));
}

#undef cuDeviceGetUuid
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) __attribute__((visibility("default")));
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    ENTER(STARTED);
    return leave(uuid_of(uuid, device));
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    ENTER(STARTED);
    if (!bytes) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    *bytes = world.devices[device].capacity_bytes;
    return leave(CUDA_SUCCESS);
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    ENTER(STARTED);
    if (!value || (int)attribute < 1 || (int)attribute >= ATTRIBUTE_LIMIT) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device)) return leave(CUDA_ERROR_INVALID_DEVICE);
    *value = world.devices[device].attributes[attribute];
    return leave(CUDA_SUCCESS);
}

// All devices of the fake reach each other; a device is no peer of its own.
CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    ENTER(STARTED);
    if (!can) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!valid_device(device) || !valid_device(peer)) return leave(CUDA_ERROR_INVALID_DEVICE);
    *can = device != peer;
    return leave(CUDA_SUCCESS);
}
