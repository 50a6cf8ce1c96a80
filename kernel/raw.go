package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/kernel/nvrtc"
)

// RawPTX compiles a text of PTX and finds a kernel of it, for cuda.Context.Launch. A text is compiled once. It does not wait. Errors:
// *SourceError, ErrClosed, those of cuda.Module.Function.
func (c *Compiler) RawPTX(text, entry string) futures.Future[*cuda.Function] {
	if c == nil {
		return futures.Failed[*cuda.Function](ErrNotOpen)
	}
	loaded, _ := c.module("", text)
	return function(loaded, entry)
}

// LoadPTX is RawPTX that compiles nothing where Run does not: with the option Prepared, and after Freeze, it takes a text that was compiled
// before or that the store has. Errors: also ErrNotPrepared.
func (c *Compiler) LoadPTX(text, entry string) futures.Future[*cuda.Function] {
	if c == nil {
		return futures.Failed[*cuda.Function](ErrNotOpen)
	}
	return function(c.allowed("", text), entry)
}

// RawCUDA compiles CUDA C++ with NVRTC for the device of the compiler, and finds a kernel of it, which is declared extern "C". A source with
// the same options is compiled once. The name is for messages. The store does not keep code of sources that include files: the
// files may change. It does not wait. Errors: *nvrtc.CompileError, nvrtc.ErrLibrary, ErrClosed, those of cuda.LoadModule and
// cuda.Module.Function.
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

// storeKey is the key of a source with the version of its compiler, as another version may have the same path; "" where files are included.
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
