// A fake of libnvrtc for tests: a source that has "#error" is refused, sm_999 is not known, and the code of everything else is the
// source itself, but for the device's own code of a source that has "binary".
#include <stdlib.h>
#include <string.h>

typedef struct { char *source; char *log; } program;

int nvrtcVersion(int *major, int *minor) { *major = 13; *minor = 7; return 0; }

int nvrtcCreateProgram(program **to, const char *source, const char *name, int headers, const char **h, const char **n) {
	if (!source || !name || headers || h || n) return 3;
	*to = calloc(1, sizeof(program));
	(*to)->source = strdup(source);
	(*to)->log = calloc(1, 4096);
	return 0;
}

int nvrtcDestroyProgram(program **p) { free((*p)->source); free((*p)->log); free(*p); *p = 0; return 0; }

int nvrtcCompileProgram(program *p, int count, const char **options) {
	for (int i = 0; i < count; i++)
		if (strstr(options[i], "sm_999")) return 5;
	if (strstr(p->source, "#error")) { strcpy(p->log, "broken.cu(2): error: #error"); return 6; }
	return 0;
}

int nvrtcGetProgramLogSize(program *p, size_t *size) { *size = strlen(p->log) + 1; return 0; }
int nvrtcGetProgramLog(program *p, char *to) { strcpy(to, p->log); return 0; }
int nvrtcGetPTXSize(program *p, size_t *size) { *size = strlen(p->source) + 1; return 0; }
int nvrtcGetPTX(program *p, char *to) { strcpy(to, p->source); return 0; }
static const char *cubin(program *p) { return strstr(p->source, "binary") ? "\x7f" "ELF" : p->source; }
int nvrtcGetCUBINSize(program *p, size_t *size) { *size = strlen(cubin(p)); return 0; }
int nvrtcGetCUBIN(program *p, char *to) { memcpy(to, cubin(p), strlen(cubin(p))); return 0; }
