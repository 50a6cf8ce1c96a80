// Modules and links. A cubin of the fake's is the magic number of ELF, a word of its own, and the PTX texts that it was made of.
#include "state.h"

#include <stdio.h>
#include <string.h>

static const char cubin_magic[] = "\x7f" "ELFfakecuda\n";
enum { MAGIC_BYTES = sizeof cubin_magic - 1 };

// Where the options of a call that compiles want its log, if they do.
struct log {
    char *text;
    size_t room;
    void **room_value; // how much was written is put where the room was
};

static struct log log_of(unsigned count, const CUjit_option *options, void **values) {
    struct log log = {0};
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.text = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) {
            log.room = (unsigned)(uintptr_t)values[i];
            log.room_value = &values[i];
        }
    }
    return log;
}

static void write_log(struct log log, const char *text) {
    if (!log.text || log.room == 0) return;
    int length = snprintf(log.text, log.room, "%s", text);
    if (log.room_value) *log.room_value = (void *)(uintptr_t)((size_t)length < log.room ? (size_t)length : log.room - 1);
}

// The text of an image that is PTX or a cubin of the fake's, NULL where it is neither.
static const char *text_of(const char *image) {
    if (memcmp(image, "\x7f" "ELF", 4) != 0) return (unsigned char)image[0] == 0x50 && (unsigned char)image[1] == 0xed ? NULL : image;
    return memcmp(image, cubin_magic, MAGIC_BYTES) == 0 ? image + MAGIC_BYTES : NULL;
}

static CUresult give_memory(struct module *module) {
    for (struct variable *v = module->assembly.variables; v; v = v->next) {
        CUresult result = region_new(VARIABLE, module->context->device, v->bytes, &v->region);
        if (result != CUDA_SUCCESS) return result;
        if (v->initial) memcpy((void *)v->region->range.start, v->initial, v->bytes);
    }
    return CUDA_SUCCESS;
}

static void discard(struct module *module) {
    for (struct variable *v = module->assembly.variables; v; v = v->next)
        if (v->region) region_free(v->region);
    assembly_clear(&module->assembly);
}

static CUresult load(CUmodule *out, const void *image, struct log log) {
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    const char *text = text_of(image);
    if (!text) return CUDA_ERROR_INVALID_IMAGE;
    struct module module = {.context = current()};
    CUresult result = assembly_read(text, &module.assembly);
    if (result == CUDA_SUCCESS)
        result = give_memory(&module);
    else
        write_log(log, module.assembly.log);
    if (result != CUDA_SUCCESS) {
        discard(&module);
        return result;
    }
    struct module *made = object_new(sizeof *made, MODULE);
    made->context = module.context;
    made->assembly = module.assembly;
    *out = (CUmodule)made->object.id;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    ENTER(USUAL | CURRENT);
    return leave(load(module, image, (struct log){0}));
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
    ENTER(USUAL | CURRENT);
    return leave(load(module, image, (struct log){0}));
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count, CUjit_option *options, void **values) {
    ENTER(USUAL | CURRENT);
    if (count > 0 && (!options || !values)) return leave(CUDA_ERROR_INVALID_VALUE);
    return leave(load(module, image, log_of(count, options, values)));
}

// Takes the module's functions and variables with it. Launches that are queued keep what they need.
void module_retire(struct module *module) {
    for (struct function *function = module->functions, *next; function; function = next) {
        next = function->next;
        object_free(function);
    }
    discard(module);
    object_free(module);
}

static struct module *module_at(CUmodule handle) { return object_at((uintptr_t)handle, MODULE); }

CUresult cuModuleUnload(CUmodule handle) {
    ENTER(USUAL | UNCAPTURED);
    struct module *module = module_at(handle);
    if (!module) return leave(CUDA_ERROR_INVALID_HANDLE);
    module_retire(module);
    return leave(CUDA_SUCCESS);
}

static struct function *function_of(struct module *module, const struct entry *entry) {
    for (struct function *function = module->functions; function; function = function->next)
        if (function->entry == entry) return function;
    struct function *made = object_new(sizeof *made, FUNCTION);
    made->module = module;
    made->entry = entry;
    made->program = program_of(entry);
    made->max_dynamic_bytes = 48 << 10;
    made->carveout = -1;
    made->next = module->functions;
    module->functions = made;
    return made;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name) {
    ENTER(USUAL);
    struct module *module = module_at(handle);
    if (!function || !name || !*name) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!module) return leave(CUDA_ERROR_INVALID_HANDLE);
    for (const struct entry *entry = module->assembly.entries; entry; entry = entry->next) {
        if (strcmp(entry->name, name) != 0) continue;
        *function = (CUfunction)function_of(module, entry)->object.id;
        return leave(CUDA_SUCCESS);
    }
    return leave(CUDA_ERROR_NOT_FOUND);
}

// The name of a kernel is no name of a variable, which is another mistake than a name of nothing.
static bool is_kernel(const struct module *module, const char *name) {
    for (const struct entry *entry = module->assembly.entries; entry; entry = entry->next)
        if (strcmp(entry->name, name) == 0) return true;
    return false;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule handle, const char *name) {
    ENTER(USUAL);
    struct module *module = module_at(handle);
    if (!name || !*name) return leave(CUDA_ERROR_INVALID_VALUE);
    if (!module) return leave(CUDA_ERROR_INVALID_HANDLE);
    for (const struct variable *v = module->assembly.variables; v; v = v->next) {
        if (strcmp(v->name, name) != 0) continue;
        if (p) *p = v->region->range.start;
        if (bytes) *bytes = v->bytes;
        return leave(CUDA_SUCCESS);
    }
    return leave(is_kernel(module, name) ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND);
}

struct link {
    struct object object;
    struct thread *thread; // that made it
    struct log log;
    char *image; // the cubin in the making
    size_t bytes;
    CUresult failed; // an input that the link cannot have: it has no result any more
};

static void put(struct link *link, const char *text, size_t bytes) {
    link->image = realloc(link->image, link->bytes + bytes + 1);
    if (!link->image) abort();
    memcpy(link->image + link->bytes, text, bytes);
    link->bytes += bytes;
    link->image[link->bytes] = 0;
}

// A driver of version 580 has a link's memory in the thread that made it, and mostly ends the process where another one goes on.
static struct link *link_at(CUlinkState handle) {
    struct link *link = object_at((uintptr_t)handle, LINK);
    if (!link || link->thread == this_thread()) return link;
    fprintf(stderr, "fakecuda: %s: the link %#lx was made on another thread: a driver may crash\n", call_name(), (unsigned long)handle);
    abort();
}

CUresult cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values, CUlinkState *state) {
    ENTER(USUAL | CURRENT);
    if (!state || (count > 0 && (!options || !values))) return leave(CUDA_ERROR_INVALID_VALUE);
    struct link *link = object_new(sizeof *link, LINK);
    link->thread = this_thread();
    link->log = log_of(count, options, values);
    put(link, cubin_magic, MAGIC_BYTES);
    *state = (CUlinkState)link->object.id;
    return leave(CUDA_SUCCESS);
}

// A cubin of the fake's was linked, so that it can be loaded and not linked once more: it is not relocatable. A fat binary has
// no code for the fake's GPU.
static CUresult add(struct link *link, CUjitInputType type, const char *data, size_t bytes) {
    if (!data || bytes == 0 || type > CU_JIT_INPUT_FATBINARY) return CUDA_ERROR_INVALID_VALUE;
    bool cubin = bytes >= MAGIC_BYTES && memcmp(data, cubin_magic, MAGIC_BYTES) == 0;
    bool fat = bytes >= 4 && memcmp(data, "\x50\xed\x55\xba", 4) == 0;
    if (cubin != (type == CU_JIT_INPUT_CUBIN) || fat != (type == CU_JIT_INPUT_FATBINARY)) return CUDA_ERROR_INVALID_IMAGE;
    if (cubin || fat) return link->failed = CUDA_ERROR_NO_BINARY_FOR_GPU;
    size_t length = strnlen(data, bytes);
    if (length == bytes) return CUDA_ERROR_INVALID_IMAGE; // a text ends with a 0
    struct assembly assembly = {0};
    CUresult result = assembly_read(data, &assembly);
    if (result != CUDA_SUCCESS) write_log(link->log, assembly.log);
    assembly_clear(&assembly);
    if (result == CUDA_SUCCESS) put(link, data, length);
    return result;
}

CUresult cuLinkAddData_v2(CUlinkState state, CUjitInputType type, void *data, size_t bytes, const char *name,
                          unsigned int count, CUjit_option *options, void **values) {
    ENTER(USUAL);
    (void)name, (void)count, (void)options, (void)values;
    struct link *link = link_at(state);
    if (!link) return leave(CUDA_ERROR_INVALID_HANDLE);
    return leave(add(link, type, data, bytes));
}

// The image is the link's.
CUresult cuLinkComplete(CUlinkState state, void **image, size_t *bytes) {
    ENTER(USUAL);
    struct link *link = link_at(state);
    if (!link) return leave(CUDA_ERROR_INVALID_HANDLE);
    if (!image || !bytes) return leave(CUDA_ERROR_INVALID_VALUE);
    if (link->failed) return leave(link->failed);
    *image = link->image;
    *bytes = link->bytes + 1;
    return leave(CUDA_SUCCESS);
}

static void link_free(struct object *object, void *unused) {
    (void)unused;
    struct link *link = (struct link *)object;
    memset(link->image, 0, link->bytes); // who did not copy it has nothing
    free(link->image);
    object_free(link);
}

CUresult cuLinkDestroy(CUlinkState state) {
    ENTER(USUAL);
    struct link *link = link_at(state);
    if (!link) return leave(CUDA_ERROR_INVALID_HANDLE);
    link_free(&link->object, NULL);
    return leave(CUDA_SUCCESS);
}

void link_forget(void) { object_each(LINK, link_free, NULL); }
