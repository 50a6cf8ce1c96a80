package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// TestCheckSeesWhatIsWrong breaks each part of the books once.
func TestCheckSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(w *world, small, loose, kept *buffer){
		"heap":       func(w *world, _, loose, _ *buffer) { w.core.heap.Give(loose.slot.Block) },
		"lost block": func(w *world, _, _, _ *buffer) { w.core.heap.Take(10) },
		"block of two slots": func(_ *world, _, loose, kept *buffer) {
			loose.slot.Block, loose.slot.Units = kept.slot.Block, kept.units
		},
		"length of a slot":       func(_ *world, _, loose, _ *buffer) { loose.slot.Units++ },
		"span of two magazines":  func(w *world, small, _, _ *buffer) { w.core.owner.Spans.New(0, small.slot.Magazine().Span().Block, 0) },
		"lost span":              func(_ *world, small, _, _ *buffer) { small.slot.Magazine().Span().Block = -1 },
		"spans":                  func(w *world, _, _, _ *buffer) { w.core.spans.units -= sizeclass.MaxUnits },
		"kept":                   func(w *world, _, _, kept *buffer) { w.core.retention.units -= uint64(kept.units) },
		"magazine out of reach":  func(w *world, _, _, kept *buffer) { w.core.retention.recent.remove(kept.slot.Magazine().Exact()) },
		"closed one in the list": func(_ *world, _, _, kept *buffer) { kept.slot.Magazine().Exact().Open = false },
	} {
		w := newWorld(t, 512, Budget{})
		small := w.alloc(1000, 0, w.always)
		loose := w.alloc(100*kib, 0, w.always)
		w.hoard(1, 256*kib, 0, w.always)
		kept := w.live[2]
		w.alloc(300*kib, 0, w.always)
		w.core.Grant(Run{First: 100, Pages: 1})
		require.NoError(t, w.core.Check())
		damage(w, small, loose, kept)
		assert.Error(t, w.core.Check(), name)
	}
}
