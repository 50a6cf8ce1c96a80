package sim

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// Librarian is an Executor that stands in for libraries, which submit kernels of their own: Device.LaunchLibrary.
type Librarian interface {
	Executor
	// Library prepares work of a library, when it is queued or captured. The work is the executor's to keep. Nil: nothing
	// stands in for the library.
	Library(w cudadrv.LibraryWork) Execution
}

// LaunchLibrary queues the execution of an Executor that stands in for a library: it takes the time and the place of a kernel on
// the stream, and of a kernel node in a graph. It reports whether something stands in for the library, and otherwise does
// nothing.
func (d *Device) LaunchLibrary(w cudadrv.LibraryWork, s cudadrv.Stream) (stands bool, err error) {
	const c = call.LaunchKernel
	executor, ok := d.gpu.driver.config.Executor.(Librarian)
	if !ok {
		return false, nil
	}
	duration := d.timeOf(w.Library, cudadrv.Geometry{})
	err = d.do(c, cudadrv.KernelLaunches, func(g *gpu) error {
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		k := kernel{library: w.Library, execution: executor.Library(w)}
		if stands = k.execution != nil; !stands {
			return nil
		}
		if st.capture != nil {
			return st.add(c.String(), node{kind: cudadrv.KernelNode, kernel: k, duration: duration})
		}
		if err := g.implicit(c.String(), st); err != nil {
			return err
		}
		g.enqueue(st, duration)
		g.executeLater(st, &k)
		g.charge(c)
		return nil
	})
	return stands || err != nil, err
}
