//go:build linux && (amd64 || arm64)

package dynamic

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/go-vram/vram/cudadrv"
	loader "github.com/go-vram/vram/cudadrv/dynamic/library"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// library is a loaded and started libcuda. Only its captures change.
type library struct {
	path      string // or the name by which the loader found it
	version   int
	functions [symbolCount]uintptr // 0 where the library lacks the function
	lacking   cudadrv.Capability   // features with a missing function
	captures  captures
}

// loadLibrary opens the library, looks up the functions and starts CUDA.
func loadLibrary(path string) (*library, error) {
	opened, err := openLibrary(path)
	if err != nil {
		return nil, err
	}
	l := &library{path: opened.Path()}
	missing := l.resolve(opened)
	f := &frame{}
	if err := l.checkVersion(f); err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, &SymbolError{Library: l.path, Symbols: missing, Feature: featureName(required)}
	}
	f.args[0] = 0 // no flags
	if r := l.call(cuInit, f, 1); r != cudadrv.Success {
		return nil, &InitError{Library: l.path, Call: l.describe(f, "cuInit", r, "")}
	}
	return l, nil
}

// openLibrary opens the first of the names that can be opened.
func openLibrary(path string) (*loader.Library, error) {
	names := []string{"libcuda.so.1", "libcuda.so"}
	if path != "" {
		names = []string{path}
	}
	failure := &LibraryError{Tried: names}
	for _, name := range names {
		l, err := loader.Open(name)
		if err == nil {
			return l, nil
		}
		failure.Errs = append(failure.Errs, err)
	}
	return nil, failure
}

// resolve looks up every function and names those that are required and missing.
func (l *library) resolve(opened *loader.Library) (missing []string) {
	for _, f := range features {
		for _, fn := range f.functions {
			if address, err := opened.Function(nameOf(fn)); err == nil {
				l.functions[fn] = uintptr(address)
			} else {
				l.lacking |= f.capability
			}
		}
	}
	return l.missing(required)
}

// checkVersion asks before cuInit: an old driver may have neither the functions nor a device.
func (l *library) checkVersion(f *frame) error {
	if l.functions[cuDriverGetVersion] == 0 {
		return nil // a missing function is the better news
	}
	f.args[0] = f.pointer(0)
	if r := l.call(cuDriverGetVersion, f, 1); r != cudadrv.Success {
		return &InitError{Library: l.path, Call: l.describe(f, "cuDriverGetVersion", r, "")}
	}
	l.version = int(f.int32())
	if l.version < leastVersion {
		return &VersionError{Library: l.path, Have: l.version, Needed: leastVersion}
	}
	return nil
}

// call calls a function with the first n arguments of the frame. Nothing is allocated: the argument list
// is a part of the frame.
func (l *library) call(fn symbol, f *frame, n int) cudadrv.Result {
	r, _, _ := purego.SyscallN(l.functions[fn], f.args[:n]...)
	return cudadrv.Result(int32(r))
}

// deviceCount calls cuDeviceGetCount.
func (l *library) deviceCount() (int, error) {
	f := &frame{}
	f.args[0] = f.pointer(0)
	if r := l.call(call.DeviceGetCount, f, 1); r != cudadrv.Success {
		return 0, fmt.Errorf("%w: %w", cudadrv.ErrNoDriver, l.describe(f, "cuDeviceGetCount", r, ""))
	}
	return int(f.int32()), nil
}

// missing names the functions that a feature lacks.
func (l *library) missing(feature cudadrv.Capability) []string {
	var names []string
	for _, f := range features {
		for _, fn := range f.functions {
			if f.capability == feature && l.functions[fn] == 0 {
				names = append(names, nameOf(fn))
			}
		}
	}
	return names
}

// describe makes the error of a failed call. It asks the driver for its words, by the frame of the call.
func (l *library) describe(f *frame, function string, r cudadrv.Result, detail string) *cudadrv.CallError {
	e := &cudadrv.CallError{Func: function, Result: r, Detail: detail, Place: place()}
	if name := l.text(cuGetErrorName, f, r); name != r.String() {
		e.Name = name
	}
	if text := l.text(cuGetErrorString, f, r); text != "" {
		e.Detail = strings.TrimPrefix(e.Detail+": "+text, ": ")
	}
	return e
}

// text asks the driver for the name or the description of a result. Where it knows none the text is empty.
func (l *library) text(fn symbol, f *frame, r cudadrv.Result) string {
	if l.functions[fn] == 0 {
		return ""
	}
	f.args[0], f.args[1] = uintptr(uint32(r)), f.pointer(0)
	f.out[0] = 0
	if l.call(fn, f, 2) != cudadrv.Success {
		return ""
	}
	return cString(f.address())
}

// longestText bounds the reading of a C string: descriptions have some hundred bytes.
const longestText = 4096

// cString copies a C string of the library's.
func cString(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	var b strings.Builder
	for i := range longestText {
		c := *(*byte)(unsafe.Add(p, i))
		if c == 0 {
			break
		}
		b.WriteByte(c)
	}
	return b.String()
}

// houseDrivers are the packages that stand between the code that wants something and this one.
const houseDrivers = "github.com/go-vram/vram/cudadrv/"

// deepestPlace is how far up place looks: wrappers add three functions each.
const deepestPlace = 24

// place returns the file and line, with its folder, of the first function outside of the driver packages.
func place() string {
	var callers [deepestPlace]uintptr
	count := runtime.Callers(2, callers[:])
	frames := runtime.CallersFrames(callers[:count])
	for {
		fr, more := frames.Next()
		inside := strings.HasPrefix(fr.Function, houseDrivers) &&
			!slices.ContainsFunc([]string{"_test.", "drivertest."}, func(s string) bool { return strings.Contains(fr.Function, s) })
		if !inside {
			return fmt.Sprintf("%s:%d", filepath.Join(filepath.Base(filepath.Dir(fr.File)), filepath.Base(fr.File)), fr.Line)
		}
		if !more {
			return ""
		}
	}
}
