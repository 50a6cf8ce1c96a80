// A fake of libnvrtc for tests: a source that has "#error" is refused, sm_999 is not known, and the code of everything else is the
// source itself, but for the device's own code of a source that has "binary". A source that has "#echo" is refused with a log of
// the name and the options. The option --builtins needs the library of that name to be open, as NVRTC does for some sources.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char *name; char *source; char *log; } program;

static char failing[48];
static int failure, live, began = -1, go;

// The next call of a function fails.
void fakenvrtc_fail(const char *name, int result) { strncpy(failing, name, sizeof failing - 1); failure = result; }

// How many programs there are.
int fakenvrtc_live(void) { return live; }

// Before they read texts, functions write a byte to one file and wait for a byte of another one.
void fakenvrtc_wait(int to, int from) { began = to; go = from; }

static void wait(void) {
	char c = 0;
	if (began >= 0 && write(began, &c, 1) == 1) while (read(go, &c, 1) < 0) {}
}

#define ENTER() do { if (strcmp(failing, __func__) == 0) { failing[0] = 0; return failure; } } while (0)

int nvrtcVersion(int *major, int *minor) { ENTER(); *major = 13; *minor = 7; return 0; }

int nvrtcCreateProgram(program **to, const char *source, const char *name, int headers, const char **h, const char **n) {
	ENTER();
	wait();
	if (!source || !name || headers || h || n) return 3;
	*to = calloc(1, sizeof(program));
	(*to)->name = strdup(name);
	(*to)->source = strdup(source);
	(*to)->log = calloc(1, 4096);
	live++;
	return 0;
}

int nvrtcDestroyProgram(program **p) {
	free((*p)->name);
	free((*p)->source);
	free((*p)->log);
	free(*p);
	*p = 0;
	live--;
	return 0;
}

int nvrtcCompileProgram(program *p, int count, const char **options) {
	ENTER();
	wait();
	for (int i = 0; i < count; i++) {
		if (strstr(options[i], "sm_999")) return 5;
		if (strcmp(options[i], "--builtins") == 0 && !dlopen("libnvrtc-builtins.so.13.7", RTLD_NOW | RTLD_NOLOAD)) return 7;
	}
	if (strstr(p->source, "#error")) { strcpy(p->log, "broken.cu(2): error: #error"); return 6; }
	if (strstr(p->source, "#echo")) {
		strcpy(p->log, p->name);
		for (int i = 0; i < count; i++) strcat(strcat(p->log, " "), options[i]);
		return 6;
	}
	return 0;
}

static const char *cubin(program *p) { return strstr(p->source, "binary") ? "\x7f" "ELF" : p->source; }

int nvrtcGetProgramLogSize(program *p, size_t *size) { ENTER(); *size = strlen(p->log) + 1; return 0; }
int nvrtcGetProgramLog(program *p, char *to) { ENTER(); strcpy(to, p->log); return 0; }
int nvrtcGetPTXSize(program *p, size_t *size) { ENTER(); *size = strlen(p->source) + 1; return 0; }
int nvrtcGetPTX(program *p, char *to) { ENTER(); strcpy(to, p->source); return 0; }
int nvrtcGetCUBINSize(program *p, size_t *size) { ENTER(); *size = strlen(cubin(p)); return 0; }
int nvrtcGetCUBIN(program *p, char *to) { ENTER(); memcpy(to, cubin(p), strlen(cubin(p))); return 0; }
