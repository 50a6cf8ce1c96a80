//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// The cost of a call around the driver, measured on the fake, whose own part is a mutex and a few words.
func BenchmarkCallOnTheFake(b *testing.B) {
	dev, err := newFake(b).driver().Open(0)
	require.NoError(b, err)
	benchmarkCalls(b, dev)
	require.NoError(b, dev.Close())
}

// benchmarkCalls times calls with and without a change of context, by one goroutine and by all.
func benchmarkCalls(b *testing.B, dev cudadrv.Device) {
	b.Helper()
	w := newWork(b, dev)
	require.NoError(b, w.EventRecord(w.event, w.stream))
	require.NoError(b, w.StreamSynchronize(w.stream))
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"cuEventQuery/context=any", func() error { _, err := w.EventQuery(w.event); return err }},
		{"cuStreamQuery/context=any", func() error { _, err := w.StreamQuery(w.stream); return err }},
		{"cuStreamQuery/context=pushed", func() error { _, err := w.StreamQuery(0); return err }},
		{"cuEventRecord/context=any", func() error { return w.EventRecord(w.event, w.stream) }},
		{"cuMemGetInfo/context=pushed", func() error { _, _, err := w.MemGetInfo(); return err }},
		{"refused/context=any", func() error { return w.MemFree(0) }},
	} {
		b.Run("call="+c.name+"/goroutines=1", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("call="+c.name+"/goroutines=procs", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := c.call(); err != nil {
						b.Error(err)
					}
				}
			})
		})
		require.NoError(b, w.CtxSynchronize())
	}
	w.close(b)
}
