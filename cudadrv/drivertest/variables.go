package drivertest

import (
	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// A module's variables, also constant ones, have their initial values and then the bytes that are copied to them, until the
// module is unloaded. Two modules from one text have two variables.
func testVariables(b *bench) {
	k, ok := b.kernels()
	if !ok {
		return
	}
	first, second := must(k.ModuleLoadData([]byte(variables)))(b), must(k.ModuleLoadData([]byte(variables)))(b)
	find := func(m cudadrv.Module, name string, want int64) cudadrv.Ptr {
		b.Helper()
		p, bytes, err := k.ModuleGetGlobal(m, name)
		b.ok(err)
		assert.Equal(b, want, bytes, name)
		again, _, err := k.ModuleGetGlobal(m, name)
		b.ok(err)
		assert.Equal(b, p, again, "a variable stays where it is")
		return p
	}
	s := b.stream()
	h, hasHost := b.host()
	for _, m := range []cudadrv.Module{first, second} {
		table, room := find(m, "vram_table", 16), find(m, "vram_room", 20)
		scale, short := find(m, "vram_scale", 4), find(m, "vram_short", 4)
		if !b.simulated() {
			b.holdsPattern(table, words(uint32(1), uint32(0x20), uint32(3), uint32(0)), 1, s)
			b.holds(scale, 0x3fc00000, 1, s)
			b.holds(short, 0x0005fffe, 1, s)
			b.holds(room, 0, 5, s)
		}
		if hasHost { // in stream order
			b.ok(h.MemcpyHtoDAsync(table+4, words(uint32(7), uint32(8)), s))
			b.ok(b.dev.MemcpyDtoDAsync(room+4, table+4, 8, s))
		}
		b.ok(b.dev.MemsetD8Async(scale, 1, 4, s))
		if !b.simulated() && hasHost {
			b.holdsPattern(room, words(uint32(0), uint32(7), uint32(8), uint32(0), uint32(0)), 1, s)
			b.holds(scale, 0x01010101, 1, s)
		}
		b.ok(b.dev.StreamSynchronize(s))
	}
	assert.NotEqual(b, find(first, "vram_table", 16), find(second, "vram_table", 16), "each module has its own")
	b.ok(k.ModuleUnload(first))
	_, _, err := k.ModuleGetGlobal(first, "vram_table")
	b.refused(err, "cuModuleGetGlobal", cudadrv.InvalidHandle)
	b.ok(k.ModuleUnload(second))
	b.ok(b.dev.StreamDestroy(s))
}
