//go:build linux && (amd64 || arm64)

package library

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// Library is an open library.
type Library struct {
	path   string
	handle uintptr
}

// Function is a function of a library; 0 is none.
type Function uintptr

// Open opens a library by its path, or by a name that the loader finds. Its functions stay out of the way of others' (RTLD_LOCAL).
func Open(path string) (*Library, error) {
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("library: %w", err)
	}
	return &Library{path, handle}, nil
}

// Function finds a function. The error names it and the library.
func (l *Library) Function(name string) (Function, error) {
	at, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("library: %s: %w", l.path, err)
	}
	return Function(at), nil
}

// Call calls the function. The arguments lie in the heap. It allocates nothing.
func (f Function) Call(args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return r
}
