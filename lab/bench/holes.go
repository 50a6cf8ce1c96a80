package bench

import (
	"math/rand/v2"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The shape of the scenario holes. Free ranges lie between live buffers, so that none can be joined
// with the next, and are so small against a handle of the driver's that every handle stays in use.
const (
	holeLeastBytes = 72 << 10
	holeMostBytes  = 512 << 10
	wallBytes      = 68 << 10 // the live buffer between two holes
	// A million holes are some 250 GiB: the simulated device has room for them at any rounding.
	holesTotalBytes = 16 << 40
)

// holesGroups has vram only, on a simulated device of its own: there is no such GPU.
func holesGroups(o Options) []group {
	if !o.wants(ImplVRAM) {
		return nil
	}
	var g group
	for _, count := range o.HoleCounts {
		visits := 0.0
		g = append(g, contender{
			row:     Row{Impl: ImplVRAM, Count: count, Goroutines: 1, NodeVisitsPerOp: &visits},
			prepare: func() (*load, error) { return holesLoad(o, count) },
		})
	}
	return []group{g} // the counts take turns
}

func holesLoad(o Options, count int) (*load, error) {
	cfg := o.Config
	cfg.Ordinal = 0 // the only one
	open := openVRAM(func() cudadrv.Driver { return sim.New(sim.Config{TotalBytes: holesTotalBytes}) }, cfg)
	h, err := open(1, false)
	if err != nil {
		return nil, err
	}
	w := h.workers[0]
	if err := w.dig(count, logUniform(holeLeastBytes, holeMostBytes), wallBytes); err != nil {
		return nil, err
	}
	// Sizes from the same range: every request finds a hole, none finds its own again.
	seq := newSequence(1, logUniform(holeLeastBytes, holeMostBytes))
	return &load{
		run: func(count int) (repetition, error) {
			return o.alone(count, func() error { return w.sized(seq, count) })
		},
		sample: func(nanos []float64) error {
			return timed(nanos, func() error { return w.sized(seq, 1) })
		},
		counters: h.counters,
		close:    func() error { return drainAndClose(w, h) },
	}, nil
}

// dig allocates holes and walls in turn and frees the holes.
func (h *hands[B, S]) dig(count int, draw func(r *rand.Rand) int64, wallBytes int64) error {
	r := rand.New(rand.NewPCG(2, 0))
	holes := make([]B, 0, count)
	h.live = make([]B, 0, count)
	for range count {
		hole, err := h.from.Alloc(draw(r))
		if err != nil {
			return err
		}
		holes = append(holes, hole)
		wall, err := h.from.Alloc(wallBytes)
		if err != nil {
			return err
		}
		h.live = append(h.live, wall)
	}
	for _, hole := range holes {
		if err := hole.Free(); err != nil {
			return err
		}
	}
	return nil
}
