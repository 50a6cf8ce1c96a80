package replay

import (
	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/vramtest"
)

// Hazards lists forbidden accesses of kernels.
type Hazards struct {
	Count   uint64   `json:"count"`   // how many times hazards showed
	Reports []string `json:"reports"` // the first of each kind and pair of places
}

// kernels runs and watches the kernels of a replay that touches buffers. Nil runs none.
type kernels struct{ view *hazard.Device }

// openKernels puts a checker around the driver of a configuration.
func openKernels(cfg *vram.Config) (*kernels, error) {
	watched, program := vramtest.Watch(*cfg)
	view, err := program.View(cfg.Ordinal)
	if err != nil {
		return nil, err
	}
	*cfg = watched
	return &kernels{view}, nil
}

// touch plays a kernel that reads or writes all of a buffer.
func (k *kernels) touch(b vram.Buffer, s cudadrv.Stream, write bool) error {
	if k == nil {
		return nil
	}
	return k.view.Kernel(s, 0, hazard.Access{Ptr: b.Ptr(), Bytes: b.Bytes(), Write: write})
}

// found returns the reports so far; nil where nothing is watched.
func (k *kernels) found() *Hazards {
	if k == nil {
		return nil
	}
	reports, count := k.view.Checker().Reports()
	h := &Hazards{Count: count, Reports: make([]string, 0, len(reports))}
	for _, r := range reports {
		h.Reports = append(h.Reports, r.String())
	}
	return h
}

func (k *kernels) close() error {
	if k == nil {
		return nil
	}
	return k.view.Close()
}
