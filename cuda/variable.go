package cuda

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// Variable is a variable of a module in device memory, global or constant, or a part of one. Kernels of the module use it by
// its name; Value(uint64(v.Ptr())) passes its address to others. It ends when the module is unloaded.
type Variable struct {
	module        *Module
	name          string
	begin         cudadrv.Ptr
	whole         int64
	offset, bytes int64 // of the part
}

// Variable finds a variable by name. Errors: ErrNotOpen, ErrUnloaded, and the driver's: cudadrv.NotFound, and
// cudadrv.InvalidValue for "" and for a kernel's name.
func (m *Module) Variable(name string) (Variable, error) {
	if err := m.usable(); err != nil {
		return Variable{}, err
	}
	p, bytes, err := m.on.kernels.ModuleGetGlobal(m.handle, name)
	if err != nil {
		return Variable{}, fmt.Errorf("cuda: variable %q: %w", name, m.on.failure(err))
	}
	return Variable{module: m, name: name, begin: p, whole: bytes, bytes: bytes}, nil
}

// Part returns some bytes of the variable, or of a part of it. Work on it is refused with a *RangeError if they are not within
// the variable.
func (v Variable) Part(offset, bytes int64) Variable {
	if offset < 0 || bytes < 0 || offset > v.bytes || bytes > v.bytes-offset {
		v.bytes = -1 // refused
		return v
	}
	v.offset += offset
	v.bytes = bytes
	return v
}

// Name returns the variable's name, "" of the zero Variable.
func (v Variable) Name() string { return v.name }

// Ptr returns the address of the variable, or of the part.
func (v Variable) Ptr() cudadrv.Ptr { return v.begin + cudadrv.Ptr(v.offset) } //nolint:gosec // within the variable

// Bytes returns the size of the variable, or of the part; 0 of a part that is not within it.
func (v Variable) Bytes() int64 { return max(v.bytes, 0) }

// String includes the name and the size.
func (v Variable) String() string {
	if v.module == nil {
		return "no variable"
	}
	return fmt.Sprintf("variable %s, %d bytes", v.name, v.Bytes())
}

// Set copies values to the begin of a variable: after the earlier work of the context, and before its later work. Order work
// of other contexts that uses the variable with Context.Wait. The slice may be changed when Set returns: the driver may wait for
// that. Errors: ErrNotOpen of the zero Variable, too, ErrUnloaded, ErrForeign for a module of another device, *LengthError,
// *RangeError, a *vram.CaptureError in a capture, vram.ErrClosed, a *vram.StrandedError, and the driver's.
func Set[T Element](c *Context, v Variable, values []T) error {
	bytes := bytesOf(values)
	return c.withVariable("cuMemcpyHtoDAsync", v, int64(len(bytes)), &LengthError{DstBytes: v.bytes, SrcBytes: int64(len(bytes))}, func() error {
		return c.host.MemcpyHtoDAsync(v.Ptr(), bytes, c.handle)
	})
}

// Get returns count elements from the begin of a variable, after the earlier work of the context, and waits until they are
// there. It returns the errors of Set.
func Get[T Element](c *Context, v Variable, count int) (values []T, err error) {
	bytes := bytesOfCount[T](count)
	err = c.withVariable("cuMemcpyDtoHAsync", v, bytes, &LengthError{DstBytes: bytes, SrcBytes: v.bytes}, func() error {
		values = make([]T, count)
		return c.host.MemcpyDtoHAsync(bytesOf(values), v.Ptr(), c.handle)
	})
	if err != nil {
		return nil, err
	}
	return values, nil
}

// withVariable submits a copy of bytes to or from a variable, and waits for it.
func (c *Context) withVariable(function string, v Variable, bytes int64, short error, submit func() error) error {
	switch {
	case !c.opened():
		return ErrNotOpen
	case c.host == nil:
		return unsupported(function)
	}
	if err := v.module.usable(); err != nil {
		return err
	}
	switch {
	case v.module.on != c.submission && !c.work.SameDevice(v.module.on.work):
		return ErrForeign
	case v.bytes < 0:
		return &RangeError{v.offset, v.bytes, v.whole}
	case bytes < 0 || bytes > v.bytes:
		return short
	}
	return c.outside("a copy that waits", func() error {
		if bytes == 0 {
			return nil
		}
		if err := c.work.AwaitOthers(); err != nil { // the driver itself may wait in the copy
			return err
		}
		if err := c.submit(nil, submit); err != nil {
			return err
		}
		return c.work.Await()
	})
}
