package kernel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/nvrtc"
	"github.com/go-vram/vram/futures"
)

// RawPTX compiles a text of PTX and finds a kernel of it, for cuda.Context.Launch. A text is compiled once. It does not wait.
// Errors: *SourceError, ErrClosed, errors of cuda.Module.Function.
func (c *Compiler) RawPTX(text, entry string) futures.Future[*cuda.Function] {
	if c == nil {
		return futures.Failed[*cuda.Function](ErrNotOpen)
	}
	loaded, _ := c.module(nil, text)
	return function(loaded, entry)
}

// Function is the kernel of a text of PTX for a launch that needs it now: it waits until the text is compiled. With the option
// Prepared, and after Freeze, it compiles nothing: a text that was not compiled before and that the store does not have is
// ErrNotPrepared. Other errors are as of RawPTX.
func (c *Compiler) Function(text, entry string) (*cuda.Function, error) {
	if c == nil {
		return nil, ErrNotOpen
	}
	return function(c.allowed(nil, text), entry).Await(context.Background())
}

// RawCUDA compiles CUDA C++ with NVRTC for the device of the compiler, and finds a kernel of it, which is declared extern "C".
// A source with the same options is compiled once. The name is for messages. The store does not keep code of sources that
// include files: the files may change. It does not wait. Errors: *nvrtc.CompileError, nvrtc.ErrLibrary, ErrClosed, errors of
// cuda.LoadModule and cuda.Module.Function.
func (c *Compiler) RawCUDA(with *nvrtc.Library, name, source, entry string, options ...string) futures.Future[*cuda.Function] {
	if c == nil || with == nil {
		return futures.Failed[*cuda.Function](ErrNotOpen)
	}
	key := strings.Join(append([]string{"CUDA C++", with.Path(), name, source}, options...), "\x00")
	loaded, _ := c.once(key, func() (*code, error) {
		return c.loadOr(storeKey(with, key, source, options), func() ([]byte, error) {
			return with.Compile(name, source, c.on.Info().Compute, options...)
		})
	})
	return function(loaded, entry)
}

// storeKey is the key of a source with the version of its compiler, as another version may have the same path; "" where files
// are included.
func storeKey(with *nvrtc.Library, key, source string, options []string) string {
	includes := func(text string) bool { return strings.Contains(text, "include") }
	if includes(source) || slices.ContainsFunc(options, includes) {
		return ""
	}
	major, minor := with.Version()
	return fmt.Sprintf("NVRTC %d.%d\x00%s", major, minor, key)
}

// function is a kernel of a module that may not be loaded yet.
func function(of futures.Future[*code], entry string) futures.Future[*cuda.Function] {
	return futures.Then(of, func(m *code) (*cuda.Function, error) { return m.module.Function(entry) })
}
