package drivertest

import (
	"bytes"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// Each launch of a graph copies from and to host memory as it is then, page-locked or not.
func testGraphsOnHostMemory(b *bench) {
	h, ok := b.host()
	if !ok {
		return
	}
	g, ok := b.graphs()
	if !ok {
		return
	}
	const size = 64 << 10
	locked := [2][]byte{must(h.MemHostAlloc(size))(b), must(h.MemHostAlloc(size))(b)}
	pageable := [2][]byte{make([]byte, size), make([]byte, size)}
	p, s := must(b.dev.MemAlloc(size))(b), b.stream()
	for _, memory := range [][2][]byte{locked, pageable, {locked[0], pageable[1]}, {pageable[0], locked[1]}} {
		from, to := memory[0], memory[1]
		clear(from)
		clear(to)
		graph := b.captured(g, s, cudadrv.CaptureRelaxed, func() {
			b.ok(h.MemcpyHtoDAsync(p, from, s))
			b.ok(b.dev.MemsetD8Async(p+10, 0xee, 20, s))
			b.ok(h.MemcpyDtoHAsync(to, p, s))
		})
		exec := must(g.GraphInstantiate(graph))(b)
		b.ok(g.GraphDestroy(graph))
		for i := range 3 {
			pattern(from, i+1)
			b.ok(g.GraphLaunch(exec, s))
			b.ok(b.dev.StreamSynchronize(s))
			want := bytes.Clone(from)
			copy(want[10:30], bytes.Repeat([]byte{0xee}, 20))
			assert.True(b, bytes.Equal(want, to), "launch %d: the bytes that come back are others than those that went", i)
		}
		b.ok(g.GraphExecDestroy(exec))
	}
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
	b.ok(h.MemFreeHost(locked[0]))
	b.ok(h.MemFreeHost(locked[1]))
}
