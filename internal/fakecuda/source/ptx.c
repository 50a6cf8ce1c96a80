// Reading PTX: kernels with their parameters, variables, and the mistakes that a compiler finds first. Instructions are known by
// their names alone.
#include "state.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WORD_ROOM = 256, NEWEST_VERSION = 90 };

struct reader {
    const char *at;
    int line;
    char word[WORD_ROOM]; // a name, a number, a text in quotes or one other character; "" at the end
    struct assembly *assembly;
    CUresult result;
};

static void mistake(struct reader *reader, CUresult result, const char *what, const char *word) {
    if (reader->result != CUDA_SUCCESS) return;
    reader->result = result;
    snprintf(reader->assembly->log, sizeof reader->assembly->log,
             "ptxas application ptx input, line %d; error   : %s '%.100s'\nptxas fatal   : Ptx assembly aborted due to errors",
             reader->line, what, word);
}

static void skip_blanks(struct reader *reader) {
    for (;;) {
        if (*reader->at == '\n') reader->line++;
        if (*reader->at && isspace((unsigned char)*reader->at)) {
            reader->at++;
        } else if (reader->at[0] == '/' && reader->at[1] == '/') {
            while (*reader->at && *reader->at != '\n') reader->at++;
        } else if (reader->at[0] == '/' && reader->at[1] == '*') {
            for (reader->at += 2; *reader->at && !(reader->at[0] == '*' && reader->at[1] == '/'); reader->at++)
                if (*reader->at == '\n') reader->line++;
            if (*reader->at) reader->at += 2;
        } else {
            return;
        }
    }
}

static bool in_word(char c) { return isalnum((unsigned char)c) || (c && strchr("._%$@!", c)); }

// Reads on. False at the end, and after a mistake.
static bool next(struct reader *reader) {
    size_t length = 0;
    skip_blanks(reader);
    if (*reader->at == '"') {
        do reader->word[length++] = *reader->at++;
        while (*reader->at && *reader->at != '"' && length < WORD_ROOM - 1);
        if (*reader->at) reader->at++;
    } else if (in_word(*reader->at)) {
        while (length < WORD_ROOM - 2) { // shared::cta is one word; with one colon a label ends
            if (in_word(*reader->at)) {
                reader->word[length++] = *reader->at++;
            } else if (reader->at[0] == ':' && reader->at[1] == ':') {
                reader->word[length++] = *reader->at++;
                reader->word[length++] = *reader->at++;
            } else {
                break;
            }
        }
    } else if (*reader->at) {
        reader->word[length++] = *reader->at++;
    }
    reader->word[length] = 0;
    return length > 0 && reader->result == CUDA_SUCCESS;
}

static bool is(const struct reader *reader, const char *word) { return strcmp(reader->word, word) == 0; }

// Reads up to a word, which must come.
static void skip_to(struct reader *reader, const char *word) {
    while (next(reader))
        if (is(reader, word)) return;
    mistake(reader, CUDA_ERROR_INVALID_PTX, "Parsing error: end of file, expected", word);
}

static void skip_line(struct reader *reader) {
    while (*reader->at && *reader->at != '\n') reader->at++;
}

static size_t bytes_of(const char *type) {
    static const struct {
        const char *name;
        size_t bytes;
    } types[] = {{".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2}, {".s16", 2}, {".f16", 2}, {".bf16", 2},
                 {".b32", 4}, {".u32", 4}, {".s32", 4}, {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, type) == 0) return types[i].bytes;
    return 0;
}

// A declaration: attributes, a name and the number of elements, up to the word behind it.
struct declaration {
    char name[WORD_ROOM];
    size_t bytes, align_bytes, element_bytes;
};

static struct declaration declared(struct reader *reader) {
    struct declaration d = {0};
    size_t element = 0;
    bool pointee = false; // behind .ptr an alignment is that of what the parameter points at
    for (; reader->word[0] == '.' && reader->result == CUDA_SUCCESS; next(reader)) {
        if (is(reader, ".align")) {
            next(reader);
            if (!pointee) d.align_bytes = strtoul(reader->word, NULL, 0);
        } else if (is(reader, ".ptr")) {
            pointee = true;
        } else if (bytes_of(reader->word) > 0) {
            element = bytes_of(reader->word);
        }
    }
    if (element == 0) mistake(reader, CUDA_ERROR_INVALID_PTX, "Parsing error: type expected near", reader->word);
    if (d.align_bytes == 0) d.align_bytes = element;
    memcpy(d.name, reader->word, sizeof d.name);
    d.bytes = d.element_bytes = element;
    next(reader);
    if (is(reader, "[")) {
        next(reader);
        if (!is(reader, "]")) { // one without a size is as long as a launch says
            d.bytes *= strtoul(reader->word, NULL, 0);
            skip_to(reader, "]");
        }
        next(reader);
    }
    return d;
}

static void add_parameter(struct entry *entry, const struct declaration *d) {
    entry->parameters = realloc(entry->parameters, (entry->count + 1) * sizeof *entry->parameters);
    if (!entry->parameters) abort();
    size_t align = d->align_bytes ? d->align_bytes : 1;
    size_t offset = (entry->bytes + align - 1) / align * align;
    entry->parameters[entry->count++] = (struct parameter){offset, d->bytes};
    entry->bytes = offset + d->bytes;
}

static bool is_instruction(const char *word) {
    static const char *const names[] = {
        "abs",    "activemask", "add",   "addc", "and",  "atom", "bar",   "barrier", "bfe",   "bfi",  "bfind", "bra",    "brev",
        "brx",    "call",       "clz",   "cnot", "copysign", "cos", "cp", "cvt",   "cvta",  "discard", "div", "dp2a",   "dp4a",
        "ex2",    "exit",       "fence", "fma",  "fns",  "griddepcontrol", "isspacep", "ld", "ldmatrix", "ldu", "lg2",  "lop3",
        "mad",    "madc",       "mapa",  "match", "max", "mbarrier", "membar", "min", "mma",  "mov",  "mul",   "mul24",  "nanosleep",
        "neg",    "not",        "or",    "pmevent", "popc", "prefetch", "prefetchu", "prmt", "rcp", "red", "redux", "rem", "ret",
        "rsqrt",  "sad",        "selp",  "set",  "setmaxnreg", "setp", "shf",  "shfl",  "shl",     "shr",   "sin",  "slct",  "sqrt",   "st",
        "stmatrix", "sub",      "subc",  "suld", "sust", "szext", "tanh", "testp",  "tex",   "tld4", "trap",  "vote",   "wgmma",
        "wmma",   "xor"};
    size_t length = strcspn(word, ".");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0) return true;
    return false;
}

// The statements of a function, from behind its first brace to behind its last.
static void body(struct reader *reader) {
    for (int depth = 1; depth > 0;) {
        if (!next(reader)) {
            mistake(reader, CUDA_ERROR_INVALID_PTX, "Parsing error: end of file, expected", "}");
            return;
        }
        if (reader->word[0] == '@') next(reader);
        if (is(reader, "{") || is(reader, "}")) {
            depth += is(reader, "{") ? 1 : -1;
        } else if (is(reader, ".loc") || is(reader, ".file")) {
            skip_line(reader);
        } else if (reader->word[0] == '.') {
            skip_to(reader, ";");
        } else if (skip_blanks(reader), *reader->at == ':') {
            reader->at++; // a label
        } else if (is_instruction(reader->word)) {
            skip_to(reader, ";");
        } else {
            mistake(reader, CUDA_ERROR_INVALID_PTX, "Not a name of any known instruction:", reader->word);
        }
    }
}

static void kernel(struct reader *reader) {
    struct entry *entry = make(sizeof *entry);
    next(reader);
    entry->name = strdup(reader->word);
    entry->next = reader->assembly->entries;
    reader->assembly->entries = entry;
    next(reader);
    if (is(reader, "(")) {
        while (next(reader) && !is(reader, ")")) {
            if (is(reader, ",")) continue;
            struct declaration d = declared(reader);
            add_parameter(entry, &d);
            if (is(reader, ")")) break;
        }
    }
    if (!is(reader, "{")) skip_to(reader, "{");
    body(reader);
}

// The values of a variable up to the semicolon: whole numbers, and floating-point ones by their bits. Names count as 0.
static unsigned char *initial(struct reader *reader, const struct declaration *d) {
    unsigned char *values = make(d->bytes);
    bool negative = false;
    size_t at = 0;
    while (next(reader) && !is(reader, ";")) {
        const char *word = reader->word;
        if (is(reader, "-")) negative = true;
        if (!isalnum((unsigned char)word[0])) continue;
        bool bits = word[0] == '0' && strchr("fFdD", word[1]) && word[1];
        uint64_t value = strtoull(bits ? word + 2 : word, NULL, bits ? 16 : 0);
        if (negative) value = -value;
        negative = false;
        if (at + d->element_bytes > d->bytes) {
            mistake(reader, CUDA_ERROR_INVALID_PTX, "Too many values for variable", d->name);
            break;
        }
        memcpy(values + at, &value, d->element_bytes);
        at += d->element_bytes;
    }
    return values;
}

static void variable(struct reader *reader, bool global) {
    next(reader);
    struct declaration d = declared(reader);
    unsigned char *values = NULL;
    if (global && is(reader, "=")) values = initial(reader, &d);
    if (!is(reader, ";")) skip_to(reader, ";");
    if (!global) return;
    struct variable *made = make(sizeof *made);
    made->name = strdup(d.name);
    made->bytes = d.bytes;
    made->initial = values;
    made->next = reader->assembly->variables;
    reader->assembly->variables = made;
}

// A function that kernels call: a body, or a declaration that ends with a semicolon.
static void called(struct reader *reader) {
    while (next(reader)) {
        if (is(reader, "{")) {
            body(reader);
            return;
        }
        if (is(reader, ";")) return;
    }
}

static void head(struct reader *reader) {
    next(reader);
    unsigned major = 0, minor = 0;
    if (sscanf(reader->word, "%u.%u", &major, &minor) != 2) mistake(reader, CUDA_ERROR_INVALID_PTX, "Parsing error near", reader->word);
    reader->assembly->version = (int)(major * 10 + minor);
    if (reader->assembly->version > NEWEST_VERSION)
        mistake(reader, CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "Unsupported .version", reader->word);
}

// Reads a text, or several one behind the other. What is wrong is in the log. What does not begin with a version is no PTX: no compiler
// sees it, and there is no log.
CUresult assembly_read(const char *text, struct assembly *assembly) {
    struct reader reader = {.at = text, .line = 1, .assembly = assembly};
    while (next(&reader)) {
        if (is(&reader, ".version")) {
            head(&reader);
        } else if (assembly->version == 0) {
            return CUDA_ERROR_INVALID_IMAGE;
        } else if (is(&reader, ".target") || is(&reader, ".file") || is(&reader, ".address_size")) {
            skip_line(&reader);
        } else if (is(&reader, ".entry")) {
            kernel(&reader);
        } else if (is(&reader, ".func")) {
            called(&reader);
        } else if (is(&reader, ".global") || is(&reader, ".const") || is(&reader, ".shared")) {
            variable(&reader, !is(&reader, ".shared"));
        } else if (!is(&reader, ".visible") && !is(&reader, ".extern") && !is(&reader, ".weak")) {
            mistake(&reader, CUDA_ERROR_INVALID_PTX, "Parsing error: syntax error near", reader.word);
        }
    }
    return assembly->version == 0 && reader.result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_IMAGE : reader.result;
}

void assembly_clear(struct assembly *assembly) {
    for (struct entry *entry = assembly->entries, *next; entry; entry = next) {
        next = entry->next;
        free(entry->name);
        free(entry->parameters);
        free(entry);
    }
    for (struct variable *variable = assembly->variables, *next; variable; variable = next) {
        next = variable->next;
        free(variable->name);
        free(variable->initial);
        free(variable);
    }
    assembly->entries = NULL;
    assembly->variables = NULL;
}
