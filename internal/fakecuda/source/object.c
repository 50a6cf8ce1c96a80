// The table of objects that have handles. A handle is a number in no memory of the process: it is never followed, and a
// stale one is found out.
#include "state.h"

#include <stdio.h>
#include <string.h>

enum { BUCKETS = 1 << 14 }; // a chain stays short with 100,000 events

static struct object *buckets[BUCKETS];
static uint64_t given[KINDS];
static long counts[KINDS];

// Handles to be given out again, the last one first.
static struct {
    uintptr_t *ids;
    size_t count, room;
} again[KINDS];

static struct object **bucket_of(uintptr_t id) { return &buckets[(id >> 4 ^ id >> 20 ^ id >> 36) % BUCKETS]; }

static uintptr_t first_id(enum kind kind) { return ((uintptr_t)0x5c0 << 36) + ((uintptr_t)(kind + 1) << 36); }

static uintptr_t next_id(enum kind kind) {
    if (again[kind].count > 0) return again[kind].ids[--again[kind].count];
    return first_id(kind) + (uintptr_t)(++given[kind] << 4);
}

void object_name(struct object *object, enum kind kind, uintptr_t id) {
    object->kind = kind;
    object->id = id ? id : next_id(kind);
    struct object **bucket = bucket_of(object->id);
    object->next = *bucket;
    *bucket = object;
    counts[kind]++;
}

void *object_new(size_t bytes, enum kind kind) {
    struct object *object = make(bytes);
    object_name(object, kind, 0);
    return object;
}

void object_unname(struct object *object) {
    if (!object->id) return;
    for (struct object **p = bucket_of(object->id); *p; p = &(*p)->next) {
        if (*p != object) continue;
        *p = object->next;
        counts[object->kind]--;
        break;
    }
    if (world.reuse_handles && (object->kind == STREAM || object->kind == EVENT)) {
        if (again[object->kind].count == again[object->kind].room) {
            size_t room = again[object->kind].room ? 2 * again[object->kind].room : 64;
            again[object->kind].ids = realloc(again[object->kind].ids, room * sizeof(uintptr_t));
            if (!again[object->kind].ids) abort();
            again[object->kind].room = room;
        }
        again[object->kind].ids[again[object->kind].count++] = object->id;
    }
    object->id = 0;
}

void object_free(void *object) {
    object_unname(object);
    free(object);
}

void *object_at(uintptr_t id, enum kind kind) {
    for (struct object *object = *bucket_of(id); object; object = object->next)
        if (object->id == id) return object->kind == kind ? object : NULL;
    return NULL;
}

// The same for a call that the driver makes no answer to where the object was destroyed: it reads the memory that the object had, and
// mostly the process ends. So it does here, with the reason.
void *object_alive(uintptr_t id, enum kind kind) {
    void *object = object_at(id, kind);
    if (object || id < first_id(kind) + 16 || id > first_id(kind) + (uintptr_t)(given[kind] << 4)) return object;
    static const char *const names[KINDS] = {[STREAM] = "stream", [EVENT] = "event", [GRAPH] = "graph", [EXEC] = "executable graph"};
    fprintf(stderr, "fakecuda: %s: the %s %#lx was destroyed: a driver may crash\n", call_name(), names[kind], (unsigned long)id);
    abort();
}

// The visit may free the object it is given, and no other.
void object_each(enum kind kind, void (*visit)(struct object *, void *), void *argument) {
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct object *object = buckets[i], *next; object; object = next) {
            next = object->next;
            if (object->kind == kind) visit(object, argument);
        }
    }
}

long object_count(enum kind kind) { return counts[kind]; }

void object_forget(void) {
    for (int kind = 0; kind < KINDS; kind++) {
        free(again[kind].ids);
        memset(&again[kind], 0, sizeof again[kind]);
    }
}
