package nvrtc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unsafe"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic/library"
)

// Library is an open compiler.
type Library struct {
	path      string
	functions map[string]library.Function

	mu    sync.Mutex // of the frame: one compilation runs at a time
	frame *frame
}

// frame is memory of the heap that the library writes to.
type frame struct {
	program      uintptr
	size         uintptr
	major, minor int32
	arguments    [6]uintptr
}

func open(path string) (*Library, error) {
	if filepath.IsAbs(path) {
		// The library looks for this one by its name alone.
		dir := filepath.Dir(path)
		files, _ := os.ReadDir(dir) // where that fails, the library cannot be opened either
		for _, f := range files {
			if !strings.HasPrefix(f.Name(), "libnvrtc-builtins.so.") {
				continue
			}
			if _, err := library.Open(filepath.Join(dir, f.Name())); err != nil {
				return nil, err
			}
		}
	}
	lib, err := library.Open(path)
	if err != nil {
		return nil, err
	}
	l := &Library{path: path, functions: map[string]library.Function{}, frame: new(frame)}
	for _, name := range []string{
		"nvrtcVersion", "nvrtcCreateProgram", "nvrtcDestroyProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
		"nvrtcGetProgramLog", "nvrtcGetPTXSize", "nvrtcGetPTX", "nvrtcGetCUBINSize", "nvrtcGetCUBIN",
	} {
		if l.functions[name], err = lib.Function(name); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrLibrary, err)
		}
	}
	return l, nil
}

// Path is the path of the library, or the name by which the loader found it.
func (l *Library) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// Version is the compiler's.
func (l *Library) Version() (major, minor int) {
	if l == nil || l.frame == nil {
		return 0, 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.frame
	if l.call("nvrtcVersion", address(&f.major), address(&f.minor)) != 0 {
		return 0, 0
	}
	return int(f.major), int(f.minor)
}

func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// call calls a function with arguments in the frame.
func (l *Library) call(name string, arguments ...uintptr) int {
	n := copy(l.frame.arguments[:], arguments)
	return int(int32(l.functions[name].Call(l.frame.arguments[:n]))) //nolint:gosec // a C int
}

// text is a C string in the heap.
func text(s string) *byte { return &append([]byte(s), 0)[0] }

// Compile compiles a source for a kind of device: to its own code, or to PTX where the compiler does not know the kind. The
// name is for messages. It takes some ten milliseconds. Kernels are declared extern "C" to be found by their names. Errors:
// *CompileError, ErrLibrary.
func (l *Library) Compile(name, source string, of cudadrv.ComputeCapability, options ...string) ([]byte, error) {
	if l == nil || l.frame == nil {
		return nil, fmt.Errorf("%w: it was not opened", ErrLibrary)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	image, err := l.compile(name, source, append([]string{fmt.Sprintf("--gpu-architecture=sm_%d%d", of.Major, of.Minor)}, options...), "CUBIN")
	var refused *CompileError
	if errors.As(err, &refused) && refused.Result == invalidOption {
		return l.compile(name, source, options, "PTX")
	}
	return image, err
}

// PTX compiles a source to PTX for a kind of device, which later ones take, too. The name is for messages. Names of kernels are
// mangled as C++ has it unless they are declared extern "C". The text ends with a zero byte, as drivers take it. Errors:
// *CompileError, ErrLibrary.
func (l *Library) PTX(name, source string, of cudadrv.ComputeCapability, options ...string) ([]byte, error) {
	if l == nil || l.frame == nil {
		return nil, fmt.Errorf("%w: it was not opened", ErrLibrary)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.compile(name, source, append([]string{fmt.Sprintf("--gpu-architecture=compute_%d%d", of.Major, of.Minor)}, options...), "PTX")
}

// Load compiles a source for the device of a context and loads the code: kernels are declared extern "C" to be found by their
// names. A simulated device, which takes no other code, gets PTX. The name is for messages. It takes some ten milliseconds, at
// each call: keep the module. Errors: *CompileError, ErrLibrary, errors of cuda.Context.LoadModule.
func (l *Library) Load(c *cuda.Context, name, source string, options ...string) (*cuda.Module, error) {
	if c == nil {
		return nil, cuda.ErrNotOpen
	}
	compute := c.Info().Compute
	image, err := l.Compile(name, source, compute, options...)
	if err != nil {
		return nil, err
	}
	m, err := c.LoadModule(image)
	if !errors.Is(err, cudadrv.InvalidImage) {
		return m, err
	}
	if image, err = l.PTX(name, source, compute, options...); err != nil {
		return nil, err
	}
	return c.LoadModule(image)
}

// invalidOption is the result for an architecture that the compiler does not know.
const invalidOption = 5

func (l *Library) compile(name, source string, options []string, form string) ([]byte, error) {
	f := l.frame
	c := struct {
		name, source *byte
		options      []*byte
	}{text(name), text(source), nil}
	for _, o := range options {
		c.options = append(c.options, text(o))
	}
	pin := &runtime.Pinner{}
	defer pin.Unpin()
	pin.Pin(c.name)
	pin.Pin(c.source)
	for _, o := range c.options {
		pin.Pin(o)
	}
	var first uintptr
	if len(c.options) > 0 {
		pin.Pin(&c.options[0])
		first = address(&c.options[0])
	}
	if r := l.call("nvrtcCreateProgram", address(&f.program), address(c.source), address(c.name), 0, 0, 0); r != 0 {
		return nil, fmt.Errorf("%w: nvrtcCreateProgram: error %d", ErrLibrary, r)
	}
	defer l.call("nvrtcDestroyProgram", address(&f.program))
	if r := l.call("nvrtcCompileProgram", f.program, uintptr(len(options)), first); r != 0 {
		log, err := l.read("nvrtcGetProgramLog", pin)
		return nil, errors.Join(&CompileError{name, source, options, strings.TrimRight(string(log), "\x00"), r}, err)
	}
	return l.read("nvrtcGet"+form, pin)
}

// read has the bytes of a pair of functions: one gives the size, the other the bytes.
func (l *Library) read(what string, pin *runtime.Pinner) ([]byte, error) {
	f := l.frame
	if r := l.call(what+"Size", f.program, address(&f.size)); r != 0 {
		return nil, fmt.Errorf("%w: %sSize: error %d", ErrLibrary, what, r)
	}
	bytes := make([]byte, f.size+1)
	pin.Pin(&bytes[0])
	if r := l.call(what, f.program, address(&bytes[0])); r != 0 {
		return nil, fmt.Errorf("%w: %s: error %d", ErrLibrary, what, r)
	}
	return bytes[:f.size], nil
}
