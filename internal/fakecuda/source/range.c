// Ranges of addresses: regions (allocations, reservations, host memory) and the mappings in reservations.
#include "state.h"

#include <string.h>

size_t round_up(size_t bytes, size_t step) { return (bytes + step - 1) / step * step; }

// The index of the first range that ends behind the address.
size_t range_from(const struct ranges *ranges, uintptr_t address) {
    size_t low = 0, high = ranges->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle]->start + ranges->items[middle]->bytes > address)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

struct range *range_around(const struct ranges *ranges, uintptr_t address) {
    size_t i = range_from(ranges, address);
    return i < ranges->count && ranges->items[i]->start <= address ? ranges->items[i] : NULL;
}

void range_put(struct ranges *ranges, struct range *item) {
    if (ranges->count == ranges->room) {
        ranges->room = ranges->room ? 2 * ranges->room : 64;
        ranges->items = realloc(ranges->items, ranges->room * sizeof *ranges->items);
        if (!ranges->items) abort();
    }
    size_t i = range_from(ranges, item->start);
    memmove(ranges->items + i + 1, ranges->items + i, (ranges->count - i) * sizeof *ranges->items);
    ranges->items[i] = item;
    ranges->count++;
}

void range_drop(struct ranges *ranges, struct range *item) {
    size_t i = range_from(ranges, item->start);
    ranges->count--;
    memmove(ranges->items + i, ranges->items + i + 1, (ranges->count - i) * sizeof *ranges->items);
}

struct region *region_around(uintptr_t address, size_t bytes) {
    struct region *region = (struct region *)range_around(&world.regions, address);
    if (!region || bytes > region->range.start + region->range.bytes - address) return NULL;
    return region;
}

struct region *region_at(uintptr_t address) {
    struct region *region = (struct region *)range_around(&world.regions, address);
    return region && region->range.start == address ? region : NULL;
}

// Whether a device may read (rights 1) or read and write (3) all of the bytes.
bool may_touch(uintptr_t address, size_t bytes, int device, unsigned rights, bool any_device) {
    if (bytes == 0) return true;
    struct region *region = region_around(address, bytes);
    if (!region) return false;
    if (region->kind == PINNED || region->kind == REGISTERED) return true;
    if (region->kind != RESERVATION) return any_device || region->device == device;
    uintptr_t end = address + bytes;
    for (size_t i = range_from(&world.mappings, address); address < end; i++) {
        struct mapping *mapping = i < world.mappings.count ? (struct mapping *)world.mappings.items[i] : NULL;
        if (!mapping || mapping->range.start > address || (mapping->access[device] & rights) != rights) return false;
        address = mapping->range.start + mapping->range.bytes;
    }
    return true;
}

bool charge(int device, size_t bytes) {
    struct device *d = &world.devices[device];
    size_t taken = d->used_bytes + d->occupied_bytes;
    if (taken > d->capacity_bytes || bytes > d->capacity_bytes - taken) return false;
    d->used_bytes += bytes;
    return true;
}
