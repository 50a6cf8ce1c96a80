//go:build linux

package sim_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

func TestWideWorkThatCannotBe(t *testing.T) {
	_, dev := start(t, sim.Config{})
	p, err := dev.MemAlloc(granule)
	require.NoError(t, err)
	require.ErrorIs(t, dev.MemsetD16Async(p+1, 0, 1, 0), cudadrv.InvalidValue)
	require.ErrorIs(t, dev.MemsetD32Async(p+2, 0, 1, 0), cudadrv.InvalidValue)
	require.ErrorIs(t, dev.MemsetD32Async(p, 0, -1, 0), cudadrv.InvalidValue)
	require.ErrorIs(t, dev.MemsetD32Async(p, 0, math.MaxInt64/2, 0), cudadrv.InvalidValue)
	require.ErrorIs(t, dev.MemsetD32Async(p, 0, granule/4+1, 0), cudadrv.IllegalAddress)
	require.ErrorIs(t, dev.MemsetD32Async(p, 0, 1, 77), cudadrv.InvalidHandle)
	require.NoError(t, dev.MemsetD16Async(p+2, 0, 1, 0))
	require.NoError(t, dev.MemsetD32Async(1<<40, 0, 0, 0), "nothing is filled")

	good := cudadrv.Copy2D{Dst: p, Src: p + cudadrv.Ptr(granule/2), DstPitch: 512, SrcPitch: 256, WidthBytes: 200, Rows: 16}
	require.NoError(t, dev.Memcpy2DAsync(good, 0))
	require.ErrorIs(t, dev.Memcpy2DAsync(good, 77), cudadrv.InvalidHandle)
	for want, change := range map[cudadrv.Result][]func(c *cudadrv.Copy2D){
		cudadrv.InvalidValue: {
			func(c *cudadrv.Copy2D) { c.DstPitch = 199 },
			func(c *cudadrv.Copy2D) { c.SrcPitch = 199 },
			func(c *cudadrv.Copy2D) { c.WidthBytes = -1 },
			func(c *cudadrv.Copy2D) { c.Rows = -1 },
			func(c *cudadrv.Copy2D) { c.DstPitch = 1 << 31 },
			func(c *cudadrv.Copy2D) { c.Rows = math.MaxInt64/512 + 1 },
		},
		cudadrv.IllegalAddress: {
			func(c *cudadrv.Copy2D) { c.Dst = p + cudadrv.Ptr(granule) },
			func(c *cudadrv.Copy2D) { c.Rows = 1 << 13 },
			func(c *cudadrv.Copy2D) { c.Rows = math.MaxInt64 / 512 },
			func(c *cudadrv.Copy2D) { c.DstPitch = 1<<31 - 1 },
			func(c *cudadrv.Copy2D) { c.Src = 16 },
			func(c *cudadrv.Copy2D) { c.Dst, c.Rows = p+cudadrv.Ptr(granule)-199, 1 },
			func(c *cudadrv.Copy2D) { c.Src, c.Rows = p+cudadrv.Ptr(granule)-199, 1 },
		},
	} {
		for i, f := range change {
			c := good
			f(&c)
			require.ErrorIs(t, dev.Memcpy2DAsync(c, 0), want, "%v %d", want, i)
		}
	}
	end := good // whose last row ends with the memory
	end.Dst, end.Rows, end.WidthBytes, end.DstPitch, end.SrcPitch = p+cudadrv.Ptr(granule)-1025, 1025, 1, 1, 1
	require.NoError(t, dev.Memcpy2DAsync(end, 0))
	without := good
	without.DstPitch, without.SrcPitch = 0, 0
	require.NoError(t, dev.Memcpy2DAsync(without, 0))
	good.Rows = 0
	require.NoError(t, dev.Memcpy2DAsync(good, 0))
}

// A fill takes the time of its bytes, of any width, and so does a copy of rows.
func TestWideWorkTakesTheTimeOfItsBytes(t *testing.T) {
	_, dev := start(t, sim.Config{})
	const size = 64 << 20
	p, err := dev.MemAlloc(2 * size)
	require.NoError(t, err)
	q := p + size
	took := func(submit func(s cudadrv.Stream) error) time.Duration {
		s, begin := newStream(t, dev), dev.Now()
		require.NoError(t, submit(s))
		require.NoError(t, dev.StreamSynchronize(s))
		return dev.Now() - begin
	}
	fill := took(func(s cudadrv.Stream) error { return dev.MemsetD8Async(p, 0, size, s) })
	assert.Equal(t, fill, took(func(s cudadrv.Stream) error { return dev.MemsetD16Async(p, 0, size/2, s) }))
	assert.Equal(t, fill, took(func(s cudadrv.Stream) error { return dev.MemsetD32Async(p, 0, size/4, s) }))
	flat := took(func(s cudadrv.Stream) error { return dev.MemcpyDtoDAsync(q, p, size, s) })
	assert.Equal(t, flat, took(func(s cudadrv.Stream) error {
		return dev.Memcpy2DAsync(cudadrv.Copy2D{Dst: q, Src: p, DstPitch: 4096, SrcPitch: 4096, WidthBytes: 4096, Rows: size / 4096}, s)
	}))
	for _, one := range []cudadrv.Copy2D{{Dst: q, Src: p, WidthBytes: 1, Rows: 1}, {Dst: q, Src: p, DstPitch: 1, SrcPitch: 1, WidthBytes: 1, Rows: 1}} {
		assert.NotZero(t, took(func(s cudadrv.Stream) error { return dev.Memcpy2DAsync(one, s) }), "one byte is work")
	}
}

// Memory between the rows need not be mapped.
func TestRowsWithHolesBetweenThem(t *testing.T) {
	r := newRig(t, sim.Config{})
	p, err := r.dev.MemAddressReserve(3 * granule)
	require.NoError(t, err)
	for _, at := range []cudadrv.Ptr{p, p + cudadrv.Ptr(2*granule)} {
		h, err := r.dev.MemCreate(granule)
		require.NoError(t, err)
		require.NoError(t, r.dev.MemMap(at, granule, h))
		require.NoError(t, r.dev.MemSetAccess(at, granule))
	}
	q := r.plain(granule)
	require.NoError(t, r.dev.MemsetD8Async(q, 7, granule, 0))
	c := cudadrv.Copy2D{Dst: p, DstPitch: 2 * granule, Src: q, SrcPitch: 1024, WidthBytes: 1024, Rows: 2}
	require.NoError(t, r.dev.Memcpy2DAsync(c, 0))
	require.NoError(t, r.dev.CtxSynchronize())
	assert.EqualValues(t, 7, r.read(p+1023))
	assert.Zero(t, r.read(p+1024))
	assert.EqualValues(t, 7, r.read(p+cudadrv.Ptr(2*granule)+1023))
	c.DstPitch = granule
	require.ErrorIs(t, r.dev.Memcpy2DAsync(c, 0), cudadrv.IllegalAddress)
}

// A copy of rows fails if the memory of any of them is gone when it runs.
func TestRowsWhoseMemoryIsGone(t *testing.T) {
	const rows = 3
	for gone := range 2 * rows {
		_, dev := start(t, sim.Config{Bytes: true})
		p, err := dev.MemAddressReserve(2 * rows * granule)
		require.NoError(t, err)
		at := func(i int) cudadrv.Ptr { return p + cudadrv.Ptr(int64(i)*granule) }
		for i := range 2 * rows { // a row is at the begin of each
			h, err := dev.MemCreate(granule)
			require.NoError(t, err)
			require.NoError(t, dev.MemMap(at(i), granule, h))
			require.NoError(t, dev.MemSetAccess(at(i), granule))
		}
		c := cudadrv.Copy2D{Dst: p, Src: at(rows), DstPitch: granule, SrcPitch: granule, WidthBytes: 64, Rows: rows}
		require.NoError(t, dev.Memcpy2DAsync(c, 0))
		require.NoError(t, dev.MemUnmap(at(gone), granule))
		err = dev.CtxSynchronize()
		require.ErrorIs(t, err, cudadrv.IllegalAddress, "%d", gone)
		require.ErrorContains(t, err, "cuMemcpy2DAsync")
		require.NoError(t, dev.Close())
	}
}

// Fills of all widths and copies of rows leave the bytes that a slice has after the same.
func TestWideWorkAgainstASlice(t *testing.T) {
	const size = 4096
	rapid.Check(t, func(rt *rapid.T) {
		drv := sim.New(sim.Config{Bytes: true, GranularityBytes: 64 << 10})
		opened, err := drv.Open(0)
		require.NoError(rt, err)
		dev := drv.Device(0)
		p, err := dev.MemAlloc(size)
		require.NoError(rt, err)
		want := make([]byte, size)
		rt.Repeat(map[string]func(*rapid.T){
			"d16": func(rt *rapid.T) {
				at, value := 2*rapid.IntRange(0, size/2-1).Draw(rt, "at"), rapid.Uint16().Draw(rt, "value")
				count := rapid.IntRange(0, (size-at)/2).Draw(rt, "count")
				require.NoError(rt, dev.MemsetD16Async(p+cudadrv.Ptr(at), value, int64(count), 0))
				for i := range count {
					binary.LittleEndian.PutUint16(want[at+2*i:], value)
				}
			},
			"d32": func(rt *rapid.T) {
				at, value := 4*rapid.IntRange(0, size/4-1).Draw(rt, "at"), rapid.Uint32().Draw(rt, "value")
				count := rapid.IntRange(0, (size-at)/4).Draw(rt, "count")
				require.NoError(rt, dev.MemsetD32Async(p+cudadrv.Ptr(at), value, int64(count), 0))
				for i := range count {
					binary.LittleEndian.PutUint32(want[at+4*i:], value)
				}
			},
			"rows": func(rt *rapid.T) { // from the lower half to the upper one
				width, rows := rapid.Int64Range(1, 64).Draw(rt, "width"), rapid.Int64Range(1, 16).Draw(rt, "rows")
				to, from := rapid.Int64Range(width, 128).Draw(rt, "to"), rapid.Int64Range(width, 128).Draw(rt, "from")
				require.NoError(rt, dev.Memcpy2DAsync(cudadrv.Copy2D{Dst: p + size/2, Src: p, DstPitch: to, SrcPitch: from, WidthBytes: width, Rows: rows}, 0))
				for i := range rows {
					copy(want[size/2+i*to:][:width], want[i*from:][:width])
				}
			},
			"": func(rt *rapid.T) {
				got := make([]byte, size)
				require.NoError(rt, dev.MemcpyDtoHAsync(got, p, 0))
				require.True(rt, bytes.Equal(want, got))
			},
		})
		require.NoError(rt, opened.Close())
	})
}

// A graph changes bytes when it runs, with the memory that is mapped then.
func TestAGraphChangesBytes(t *testing.T) {
	r := newRig(t, sim.Config{})
	p, s := r.plain(granule), newStream(t, r.dev)
	require.NoError(t, r.dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
	require.NoError(t, r.dev.MemsetD32Async(p, 0x01020304, 2, s))
	require.NoError(t, r.dev.MemcpyDtoDAsync(p+8, p, 8, s))
	g, err := r.dev.StreamEndCapture(s)
	require.NoError(t, err)
	x, err := r.dev.GraphInstantiate(g)
	require.NoError(t, err)
	assert.Zero(t, r.read(p))
	require.NoError(t, r.dev.GraphLaunch(x, s))
	require.NoError(t, r.dev.StreamSynchronize(s))
	assert.EqualValues(t, 4, r.read(p))
	assert.EqualValues(t, 2, r.read(p+14))
	require.NoError(t, r.dev.MemsetD8Async(p, 0, granule, s))
	require.NoError(t, r.dev.GraphLaunch(x, s))
	require.NoError(t, r.dev.StreamSynchronize(s))
	assert.EqualValues(t, 1, r.read(p+15), "every launch runs anew")
}

// A graph that is launched after its memory was unmapped ends the context.
func TestAGraphWhoseMemoryIsGone(t *testing.T) {
	_, dev := start(t, sim.Config{Bytes: true})
	p, err := dev.MemAddressReserve(granule)
	require.NoError(t, err)
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemMap(p, granule, h))
	require.NoError(t, dev.MemSetAccess(p, granule))
	s := newStream(t, dev)
	require.NoError(t, dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
	require.NoError(t, dev.Memcpy2DAsync(cudadrv.Copy2D{Dst: p, Src: p + 64, DstPitch: 8, SrcPitch: 8, WidthBytes: 8, Rows: 2}, s))
	g, err := dev.StreamEndCapture(s)
	require.NoError(t, err)
	x, err := dev.GraphInstantiate(g)
	require.NoError(t, err)
	require.NoError(t, dev.GraphLaunch(x, s))
	require.NoError(t, dev.StreamSynchronize(s))
	require.NoError(t, dev.MemUnmap(p, granule))
	require.NoError(t, dev.GraphLaunch(x, s))
	err = dev.StreamSynchronize(s)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.ErrorContains(t, err, "cuMemcpy2DAsync")
	require.NoError(t, dev.Close())
}

// Bytes go from one device to the other when the copy ends, in the time of the stream's device.
func TestBytesBetweenDevices(t *testing.T) {
	first, second := pair(t, sim.Config{Bytes: true})
	p, err := first.MemAlloc(granule)
	require.NoError(t, err)
	q, err := second.MemAlloc(granule)
	require.NoError(t, err)
	s := newStream(t, second)
	got := make([]byte, 4)
	read := func() []byte {
		require.NoError(t, second.MemcpyDtoHAsync(got, q, 0))
		return got
	}
	require.NoError(t, first.MemsetD8Async(p, 5, granule, 0))
	require.NoError(t, first.CtxSynchronize())
	require.NoError(t, second.Launch(s, time.Second))
	require.NoError(t, second.MemcpyPeerAsync(q, second.Context(), p, first.Context(), 2, s))
	assert.Equal(t, []byte{0, 0, 0, 0}, read())
	require.NoError(t, second.StreamSynchronize(s))
	assert.Equal(t, []byte{5, 5, 0, 0}, read())

	// The memory on the other side is gone when the copy runs.
	require.NoError(t, first.MemcpyPeerAsync(q, second.Context(), p, first.Context(), 2, s))
	require.NoError(t, first.MemFree(p))
	require.ErrorIs(t, second.StreamSynchronize(s), cudadrv.IllegalAddress)
	_, _, err = first.MemGetInfo()
	require.NoError(t, err, "the other device's context goes on")
}
