package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv/hazard/internal/core"
	"github.com/go-vram/vram/cudadrv/site"
)

// TestMemorySleeps unmaps a buffer's memory and maps it again: that is no hazard, but work in between is, and work on a buffer
// that was freed in between.
func TestMemorySleeps(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.alloc(arena+0x1000, 0x1000, one)
	b.writes(one, arena, 0x800)
	b.SleepBegan(one)
	b.Work(one, "copy", site.Here(0), []core.Access{{Ptr: arena, Bytes: 0x10000}}) // more than the buffers
	b.Over(core.Allocator, b.DevicePoint())
	b.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
	assert.Empty(t, kinds(b))

	b.Work(two, "kernel", site.Here(0), []core.Access{{Ptr: arena, Bytes: 0x1000}})
	assert.Equal(t, []core.Kind{core.Unmapped}, kinds(b))

	b.free(arena + 0x1000)
	b.Mapped(arena, 0x10000, core.Allocator)
	b.SleepEnded(one)
	assert.NoError(t, b.Check())
	b.Work(two, "kernel", site.Here(0), []core.Access{{Ptr: arena, Bytes: 0x1000, Write: true}})
	assert.Equal(t, []core.Kind{core.Unmapped}, kinds(b))
	b.Work(two, "kernel", site.Here(0), []core.Access{{Ptr: arena + 0x1000, Bytes: 0x1000}})
	assert.Equal(t, []core.Kind{core.Unmapped, core.UseAfterFree}, kinds(b))

	b.Over(core.Allocator, b.DevicePoint())
	b.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
	assert.Equal(t, []core.Kind{core.Unmapped, core.UseAfterFree, core.EarlyUnmap}, kinds(b), "it does not sleep any more")
}

// kinds returns the kinds of the hazards so far.
func kinds(b bench) (all []core.Kind) {
	reports, _ := b.Reports()
	for _, r := range reports {
		all = append(all, r.Kind)
	}
	return all
}
