package hazard

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

var _ cudadrv.CheckedKernels = (*Device)(nil)

// LaunchKernelTouching launches a kernel that reads and writes only these ranges.
func (d *Device) LaunchKernelTouching(f cudadrv.Function, g cudadrv.Geometry, params []byte, s cudadrv.Stream, accesses []cudadrv.Access) error {
	return d.work("kernel", s, func() error {
		if executes, ok := d.inner.(executes); ok {
			return executes.LaunchKernelDeclared(f, g, params, s, accesses)
		}
		return d.Device.LaunchKernel(f, g, params, s)
	}, accesses...)
}

// executes is a simulated device that executes kernels and takes the program's declarations.
type executes interface {
	LaunchKernelDeclared(f cudadrv.Function, g cudadrv.Geometry, params []byte, s cudadrv.Stream, accesses []cudadrv.Access) error
	KernelNodeSetParamsDeclared(x cudadrv.GraphExec, n cudadrv.GraphNode, f cudadrv.Function, g cudadrv.Geometry, params []byte, accesses []cudadrv.Access) error
	LaunchLibrary(w cudadrv.LibraryWork, s cudadrv.Stream) (stands bool, err error)
	Claim(p cudadrv.Ptr, bytes int64)
}

// claim declares writes by work that a simulated device does not execute.
func (d *Device) claim(accesses []cudadrv.Access) {
	executes, ok := d.inner.(executes)
	for _, a := range accesses {
		if ok && a.Write {
			executes.Claim(a.Ptr, a.Bytes)
		}
	}
}

// WorkTouching calls submit, which queues work of a library. submit may call the library, but not calls of this device that
// queue work. A simulated device that has a stand-in for the library queues that instead.
func (d *Device) WorkTouching(w cudadrv.LibraryWork, s cudadrv.Stream, submit func() error) error {
	accesses := w.Accesses()
	return d.work(w.Library, s, func() error {
		if executes, ok := d.inner.(executes); ok {
			if stands, err := executes.LaunchLibrary(w, s); stands {
				return err
			}
		}
		err := submit()
		d.claim(accesses)
		return err
	}, accesses...)
}

// LaunchKernel launches a kernel without known accesses.
func (d *Device) LaunchKernel(f cudadrv.Function, g cudadrv.Geometry, params []byte, s cudadrv.Stream) error {
	return d.work("kernel", s, func() error { return d.Device.LaunchKernel(f, g, params, s) })
}

// ModuleGetGlobal adds the memory of the variable, as memory of the program's own.
func (d *Device) ModuleGetGlobal(m cudadrv.Module, name string) (p cudadrv.Ptr, bytes int64, err error) {
	c := d.checker
	err = c.call(func() (err error) { p, bytes, err = d.Device.ModuleGetGlobal(m, name); return err }, func() {
		if c.globals[m] == nil {
			c.globals[m] = map[cudadrv.Ptr]int64{}
		}
		c.globals[m][p] = bytes
		c.core.Mapped(p, bytes, Program)
	})
	return p, bytes, err
}

// ModuleUnload takes the memory of the module's variables away.
func (d *Device) ModuleUnload(m cudadrv.Module) error {
	c := d.checker
	from := d.driver.helpers.Load().Here(1)
	return c.call(func() error { return d.Device.ModuleUnload(m) }, func() {
		for p, bytes := range c.globals[m] {
			c.core.Unmapped(p, bytes, Program, from)
		}
		delete(c.globals, m)
	})
}

// MemsetD16Async records a write.
func (d *Device) MemsetD16Async(p cudadrv.Ptr, value uint16, count int64, s cudadrv.Stream) error {
	return d.transfer("memset", s, func() error { return d.Device.MemsetD16Async(p, value, count, s) }, Access{Ptr: p, Bytes: 2 * count, Write: true})
}

// MemsetD32Async records a write.
func (d *Device) MemsetD32Async(p cudadrv.Ptr, value uint32, count int64, s cudadrv.Stream) error {
	return d.transfer("memset", s, func() error { return d.Device.MemsetD32Async(p, value, count, s) }, Access{Ptr: p, Bytes: 4 * count, Write: true})
}

// Memcpy2DAsync records a read and a write of each row, without the bytes between the rows.
func (d *Device) Memcpy2DAsync(c cudadrv.Copy2D, s cudadrv.Stream) error {
	accesses := rows(nil, c.Src, c.SrcPitch, c, false)
	return d.transfer("copy of rows", s, func() error { return d.Device.Memcpy2DAsync(c, s) }, rows(accesses, c.Dst, c.DstPitch, c, true)...)
}

// rows appends the accesses of one side of a copy. Rows without a gap are one. A copy that the driver will refuse has none.
func rows(to []Access, p cudadrv.Ptr, pitch int64, c cudadrv.Copy2D, write bool) []Access {
	switch {
	case c.WidthBytes <= 0 || c.Rows <= 0 || pitch != 0 && pitch < c.WidthBytes:
		return to
	case pitch == 0: // where the driver finds more than one row is not known
		return append(to, Access{Ptr: p, Bytes: c.WidthBytes, Write: write})
	case pitch == c.WidthBytes || c.Rows == 1:
		return append(to, Access{Ptr: p, Bytes: c.WidthBytes * c.Rows, Write: write})
	}
	for row := range c.Rows {
		to = append(to, Access{Ptr: p + cudadrv.Ptr(row*pitch), Bytes: c.WidthBytes, Write: write})
	}
	return to
}

// EventElapsedTime orders this side's later work after the points of both events.
func (d *Device) EventElapsedTime(start, end cudadrv.Event) (took time.Duration, err error) {
	err = d.checker.call(func() (err error) { took, err = d.Device.EventElapsedTime(start, end); return err }, func() {
		d.checker.core.Over(d.by, d.checker.core.EventPoint(start))
		d.checker.core.Over(d.by, d.checker.core.EventPoint(end))
	})
	return took, err
}

// IpcGetEventHandle notes the name.
func (d *Device) IpcGetEventHandle(e cudadrv.Event) (name cudadrv.EventDescriptor, err error) {
	err = d.checker.call(func() (err error) { name, err = d.Device.IpcGetEventHandle(e); return err },
		func() { d.checker.shared[name] = e })
	return name, err
}

// IpcOpenEventHandle makes another name of an event of this device. Other devices' order is not seen.
func (d *Device) IpcOpenEventHandle(name cudadrv.EventDescriptor) (e cudadrv.Event, err error) {
	c := d.checker
	err = c.call(func() (err error) { e, err = d.Device.IpcOpenEventHandle(name); return err }, func() {
		if of, ok := c.shared[name]; ok {
			c.core.EventOpened(e, of)
		}
	})
	return e, err
}

// MemSetPeerAccess adds memory that the kernels of other devices may touch, too.
func (d *Device) MemSetPeerAccess(p cudadrv.Ptr, bytes int64, ordinals ...int) error {
	var others []*Checker
	err := d.checker.call(func() error { return d.Device.MemSetPeerAccess(p, bytes, ordinals...) }, func() {
		for _, ordinal := range ordinals {
			if ordinal == d.Info().Ordinal {
				d.checker.core.Mapped(p, bytes, d.by)
				continue
			}
			other := d.driver.Checker(ordinal)
			d.checker.peers[other] = true
			others = append(others, other)
		}
	})
	for _, other := range others {
		other.do(func() { other.core.Mapped(p, bytes, Program) })
	}
	return err
}

// unmappedForPeers takes memory away from the devices that had access to it.
func (d *Device) unmappedForPeers(p cudadrv.Ptr, bytes int64, from site.Stack) {
	for _, other := range d.checker.others() {
		other.do(func() { other.core.Unmapped(p, bytes, Program, from) })
	}
}

// MemcpyPeerAsync records a read and a write of the memory that is this device's. On a stream of the other device it is none.
func (d *Device) MemcpyPeerAsync(dst cudadrv.Ptr, dstContext cudadrv.Context, src cudadrv.Ptr, srcContext cudadrv.Context, bytes int64, s cudadrv.Stream) error {
	var accesses []Access
	if srcContext == d.Context() {
		accesses = append(accesses, Access{Ptr: src, Bytes: bytes})
	}
	if dstContext == d.Context() {
		accesses = append(accesses, Access{Ptr: dst, Bytes: bytes, Write: true})
	}
	submit := func() error { return d.Device.MemcpyPeerAsync(dst, dstContext, src, srcContext, bytes, s) }
	if !d.checker.knows(s) {
		return submit()
	}
	return d.transfer("copy between devices", s, submit, accesses...)
}
