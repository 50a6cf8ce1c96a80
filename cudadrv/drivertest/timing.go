package drivertest

import (
	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

func testTimedEvents(b *bench) {
	t, ok := optional(b, cudadrv.EventTiming, func(t cudadrv.TimedEvents) error {
		_, err := t.EventCreateTimed()
		return err
	})
	if !ok {
		return
	}
	const bytes = 16 << 20
	start, end := must(t.EventCreateTimed())(b), must(t.EventCreateTimed())(b)
	plain, p, s, other := b.event(), must(b.dev.MemAlloc(bytes))(b), b.stream(), b.stream()
	_, err := t.EventElapsedTime(start, end)
	b.refused(err, "cuEventElapsedTime", cudadrv.InvalidHandle) // never recorded

	b.ok(b.dev.EventRecord(start, s))
	b.ok(b.dev.MemsetD8Async(p, 1, bytes, s))
	b.ok(b.dev.EventRecord(end, s))
	b.ok(b.dev.StreamWaitEvent(other, end)) // it is an event like others
	b.ok(b.dev.StreamSynchronize(other))
	assert.True(b, must(b.dev.EventQuery(end))(b))
	assert.GreaterOrEqual(b, must(t.EventElapsedTime(start, end))(b), must(t.EventElapsedTime(start, start))(b))
	assert.Zero(b, must(t.EventElapsedTime(end, end))(b))

	b.ok(b.dev.EventRecord(plain, s))
	b.ok(b.dev.EventSynchronize(plain))
	for _, pair := range [][2]cudadrv.Event{{start, plain}, {plain, end}, {0, end}, {start, 0}} {
		_, err := t.EventElapsedTime(pair[0], pair[1])
		b.refused(err, "cuEventElapsedTime", cudadrv.InvalidHandle)
	}
	b.notYetElapsed(t, start, end, s)
	for _, e := range []cudadrv.Event{start, end, plain} {
		b.ok(b.dev.EventDestroy(e))
	}
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.StreamDestroy(other))
	b.ok(b.dev.MemFree(p))
}

// notYetElapsed asks for the time up to an event that a function holds up.
func (b *bench) notYetElapsed(t cudadrv.TimedEvents, start, end cudadrv.Event, s cudadrv.Stream) {
	b.Helper()
	l, ok := b.dev.(cudadrv.HostFunctions)
	if !ok || !b.info.Capabilities.Has(cudadrv.HostCalls) {
		return
	}
	release := make(chan struct{})
	b.ok(b.dev.EventRecord(start, s))
	b.ok(l.LaunchHostFunc(s, func() { <-release }))
	b.ok(b.dev.EventRecord(end, s))
	_, err := t.EventElapsedTime(start, end)
	close(release)
	b.refused(err, "cuEventElapsedTime", cudadrv.NotReady)
	b.ok(b.dev.EventSynchronize(end))
	assert.GreaterOrEqual(b, must(t.EventElapsedTime(start, end))(b).Nanoseconds(), int64(0))
}

// wideWork returns the device's interface for fills with wider values, if it has one.
func (b *bench) wideWork() (cudadrv.WideWork, bool) {
	b.Helper()
	return optional(b, cudadrv.WideFills, func(w cudadrv.WideWork) error { return w.MemsetD32Async(0, 0, 1, 0) })
}

func testWideFills(b *bench) {
	w, ok := b.wideWork()
	if !ok {
		return
	}
	const bytes = 4096
	p, s := must(b.dev.MemAlloc(bytes))(b), b.stream()
	for _, on := range []cudadrv.Stream{s, 0} {
		b.ok(b.dev.MemsetD8Async(p, 0xee, bytes, on))
		b.ok(w.MemsetD16Async(p+2, 0x1234, 100, on))
		b.ok(w.MemsetD32Async(p+1024, 0xdeadbeef, 100, on))
		b.holdsPattern(p, words(uint16(0xeeee)), 1, on)
		b.holdsPattern(p+2, words(uint16(0x1234)), 100, on)
		b.holdsPattern(p+202, words(uint16(0xeeee)), 411, on)
		b.holds(p+1024, 0xdeadbeef, 100, on)
		b.holds(p+1424, 0xeeeeeeee, 668, on)
	}
	b.ok(w.MemsetD16Async(p, 1, 0, s)) // no values are no work
	b.ok(w.MemsetD32Async(p, 1, 0, s))
	b.refused(w.MemsetD16Async(p+1, 1, 4, s), "cuMemsetD16Async", cudadrv.InvalidValue)
	b.refused(w.MemsetD32Async(p+2, 1, 4, s), "cuMemsetD32Async", cudadrv.InvalidValue)
	b.refused(w.MemsetD16Async(p, 1, -1, s), "cuMemsetD16Async", cudadrv.InvalidValue)
	b.refused(w.MemsetD32Async(p, 1, -1, s), "cuMemsetD32Async", cudadrv.InvalidValue)
	b.refused(w.MemsetD32Async(p, 1, 16<<30, s), "cuMemsetD32Async", cudadrv.InvalidValue, cudadrv.IllegalAddress)
	b.ok(b.dev.StreamSynchronize(s))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
}

func testRows(b *bench) {
	w, ok := b.wideWork()
	if !ok {
		return
	}
	const rows, width, fromPitch, toPitch = 7, 12, 64, 40
	from, to, s := must(b.dev.MemAlloc(rows*fromPitch))(b), must(b.dev.MemAlloc(rows*toPitch))(b), b.stream()
	c := cudadrv.Copy2D{Dst: to, Src: from, DstPitch: toPitch, SrcPitch: fromPitch, WidthBytes: width, Rows: rows}
	for _, on := range []cudadrv.Stream{s, 0} {
		b.ok(b.dev.MemsetD8Async(to, 0xee, rows*toPitch, on))
		for row := range cudadrv.Ptr(rows) {
			b.ok(b.dev.MemsetD8Async(from+row*fromPitch, byte(row+1), fromPitch, on))
		}
		b.ok(w.Memcpy2DAsync(c, on))
		for row := range cudadrv.Ptr(rows) {
			b.holdsPattern(to+row*toPitch, []byte{byte(row + 1)}, width, on)
			b.holdsPattern(to+row*toPitch+width, []byte{0xee}, toPitch-width, on)
		}
	}
	for _, change := range []func(c *cudadrv.Copy2D){
		func(c *cudadrv.Copy2D) { c.SrcPitch = width - 1 },
		func(c *cudadrv.Copy2D) { c.DstPitch = width - 1 },
		func(c *cudadrv.Copy2D) { c.WidthBytes = -1 },
		func(c *cudadrv.Copy2D) { c.Rows = -1 },
		func(c *cudadrv.Copy2D) { c.Dst = 0 },
	} {
		wrong := c
		change(&wrong)
		b.refused(w.Memcpy2DAsync(wrong, s), "cuMemcpy2DAsync", cudadrv.InvalidValue, cudadrv.IllegalAddress)
	}
	none := c
	none.Rows = 0
	b.ok(w.Memcpy2DAsync(none, s))
	row := cudadrv.Copy2D{Dst: to, Src: from + fromPitch, WidthBytes: width, Rows: 1} // needs no pitch
	b.ok(w.Memcpy2DAsync(row, s))
	b.holdsPattern(to, []byte{2}, width, s)
	none = c
	none.SrcPitch, none.DstPitch = 0, 0 // the driver takes it for several rows too, wherever it finds them
	b.ok(w.Memcpy2DAsync(none, s))
	b.ok(b.dev.StreamSynchronize(s))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(from))
	b.ok(b.dev.MemFree(to))
}
