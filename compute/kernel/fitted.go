package kernel

import (
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// fitted is the geometry of layouts, kept for the next Run with them.
type fitted struct {
	layouts  []layout.Layout
	lows     []uint64 // addresses modulo vectorBytes
	geometry plan.Geometry
	ready    atomic.Pointer[ready] // set by the first Run that launches it
}

const (
	// maxFitted is how many a kernel keeps: the first ones. With more, a run takes a microsecond longer and still allocates
	// nothing.
	maxFitted = 8
	// vectorBytes is the largest alignment of a vector.
	vectorBytes = 16
)

// has reports whether tensors have the types of a program, and the layouts.
func (e *fitted) has(p *plan.Program, outputs, inputs []*tensor.Tensor) bool {
	for i, t := range inputs {
		if !t.Has(p.Operands[i].Type, &e.layouts[i]) {
			return false
		}
	}
	for i, t := range outputs {
		if i += len(inputs); !t.Has(p.Operands[i].Type, &e.layouts[i]) {
			return false
		}
	}
	return true
}

// aligned reports whether operands at these addresses have the alignments.
func (e *fitted) aligned(addresses *[plan.MaxOperands]uint64) bool {
	for i, low := range e.lows {
		if addresses[i]%vectorBytes != low {
			return false
		}
	}
	return true
}

// fits are the geometries that a kernel keeps. A list is replaced, never changed.
type fits struct{ list atomic.Pointer[[]*fitted] }

func (s *fits) clear() { s.list.Store(&[]*fitted{}) }

// find returns the geometry of layouts at these addresses, or nil, and the list that was searched.
func (s *fits) find(layouts []layout.Layout, addresses *[plan.MaxOperands]uint64) (*fitted, *[]*fitted) {
	list := s.list.Load()
next:
	for _, e := range *list {
		for i := range e.layouts {
			if e.lows[i] != addresses[i]%vectorBytes || e.layouts[i] != layouts[i] {
				continue next
			}
		}
		return e, list
	}
	return nil, list
}

// keep adds a geometry to the list that was searched for it. If the list was replaced since, by another Run or by a
// measurement, keep does nothing.
func (s *fits) keep(searched *[]*fitted, layouts []layout.Layout, addresses []uint64, g *plan.Geometry) {
	if len(*searched) >= maxFitted {
		return
	}
	e := &fitted{layouts: append([]layout.Layout(nil), layouts...), geometry: *g}
	for _, address := range addresses {
		e.lows = append(e.lows, address%vectorBytes)
	}
	next := append((*searched)[:len(*searched):len(*searched)], e)
	s.list.CompareAndSwap(searched, &next)
}
