package kernel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/kernel/nvrtc"
	"github.com/go-vram/vram/ptx"
)

// SourceError is a text of PTX that the driver refuses.
type SourceError struct {
	Source   string
	Findings error // of ptx.Parse or ptx.Check: may be nil, and may name more than the driver does
	Err      error // the driver's
}

// Error has the driver's words, the findings, and the text with line numbers.
func (e *SourceError) Error() string {
	text := fmt.Sprintf("kernel: %v\n", e.Err)
	if e.Findings != nil {
		text += e.Findings.Error() + "\n"
	}
	return text + nvrtc.Numbered(e.Source)
}

// Unwrap is the driver's error, and the findings.
func (e *SourceError) Unwrap() []error {
	if e.Findings == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Findings}
}

// RawPTX compiles a text of PTX and finds a kernel of it, for cuda.Context.Launch. A text is compiled once. It does not wait. Errors:
// *SourceError, ErrClosed, those of cuda.Module.Function.
func (c *Compiler) RawPTX(text, entry string) futures.Future[*cuda.Function] {
	if c == nil {
		return futures.Failed[*cuda.Function](ErrNotOpen)
	}
	return function(c.once(text, func() (*cuda.Module, error) {
		m, err := c.load(text)
		if err != nil {
			return nil, &SourceError{text, findings(text), err}
		}
		return m, nil
	}), entry)
}

// findings are those of package ptx in a text.
func findings(text string) error {
	m, err := ptx.Parse(text)
	if err != nil {
		return err
	}
	return ptx.Check(m)
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
	return function(c.once(key, func() (*cuda.Module, error) {
		return c.loadOr(storeKey(with, key, source, options), func() ([]byte, error) {
			return with.Compile(name, source, c.on.Info().Compute, options...)
		})
	}), entry)
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
func function(m futures.Future[*cuda.Module], entry string) futures.Future[*cuda.Function] {
	return futures.Then(m, func(m *cuda.Module) (*cuda.Function, error) { return m.Function(entry) })
}
