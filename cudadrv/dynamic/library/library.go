//go:build linux && (amd64 || arm64)

package library

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// Library is an open library. It does not change.
type Library struct {
	path   string
	handle uintptr
}

// Function is a function of a library; 0 is none.
type Function uintptr

// Open opens a library by its path, or by a name that the loader finds. Its functions stay out of the way of others'
// (RTLD_LOCAL).
func Open(path string) (*Library, error) {
	defer lockThread()()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, failed(path, err)
	}
	return &Library{path, handle}, nil
}

// Path returns the path passed to Open.
func (l *Library) Path() string { return l.path }

// Function finds a function. The error names it and the library.
func (l *Library) Function(name string) (Function, error) {
	defer lockThread()()
	at, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0, failed(l.path, err)
	}
	return Function(at), nil
}

// lockThread keeps the goroutine on its thread until the returned function is called: the loader keeps the reason of a failure
// by thread, and purego asks for the reason in a second call.
func lockThread() (unlock func()) {
	runtime.LockOSThread()
	return runtime.UnlockOSThread
}

// failed returns the loader's reason, after the path: the loader does not name the library where it lacks another one.
func failed(path string, reason error) error {
	return fmt.Errorf("library: %s: %s", path, strings.TrimPrefix(reason.Error(), path+": "))
}

// Call calls the function. The arguments lie in the heap. It allocates nothing.
func (f Function) Call(args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(uintptr(f), args...)
	return r
}
