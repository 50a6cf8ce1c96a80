package kernel

import (
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// fitted is the geometry of layouts that a kernel has met: it is not computed again for them.
type fitted struct {
	layouts  []layout.Layout
	lows     []uint64 // of the addresses: their distance from a multiple of vectorBytes
	geometry plan.Geometry
	ready    atomic.Pointer[ready] // once a Run has launched it
}

const (
	// maxFitted is how many a kernel keeps, the first ones. For more a run takes a microsecond longer, and still allocates nothing.
	maxFitted = 8
	// vectorBytes is the largest alignment that a vector needs.
	vectorBytes = 16
)

// fit has the geometry of a frame's operands. Errors: ErrRepeats in an *OperandError, those of plan.Program.Fit.
func (k *Kernel) fit(f *frame) error {
	kept := k.fitted.Load()
	all := *kept
	for i := range all {
		if all[i].matches(f) {
			f.kept, f.geometry = all[i], &all[i].geometry
			return nil
		}
	}
	for i := k.program.Inputs; i < f.count; i++ {
		if f.layouts[i].MayOverlap() {
			return k.refused(i, ErrRepeats)
		}
	}
	f.kept, f.geometry = nil, &f.own
	if err := k.program.Fit(&f.own, f.layouts[:f.count], f.addresses[:f.count]); err != nil {
		return err
	}
	f.untuned = k.choose(&f.own)
	if len(all) < maxFitted && !f.untuned {
		k.keep(f, kept)
	}
	return nil
}

func (e *fitted) matches(f *frame) bool {
	for i := range e.layouts {
		if e.lows[i] != f.addresses[i]%vectorBytes || e.layouts[i] != f.layouts[i] {
			return false
		}
	}
	return true
}

// keep makes the frame's geometry known beside those that were known when it was chosen. Of two goroutines that keep at once one may be
// forgotten, and so is a geometry that was chosen before a measurement ended.
func (k *Kernel) keep(f *frame, beside *[]*fitted) {
	e := &fitted{layouts: append([]layout.Layout(nil), f.layouts[:f.count]...), geometry: f.own}
	for _, address := range f.addresses[:f.count] {
		e.lows = append(e.lows, address%vectorBytes)
	}
	next := append((*beside)[:len(*beside):len(*beside)], e)
	k.fitted.CompareAndSwap(beside, &next)
}
