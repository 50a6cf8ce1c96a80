//go:build linux

package sim_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// user is the last use of a place.
type user struct {
	write  cudadrv.Event
	reads  []cudadrv.Event
	device cudadrv.Ptr
	want   []byte
}

// TestOrderedWorkIsAsIfDoneAtOnce queues work on several streams, with the necessary order, and expects the bytes that the same
// work leaves when done one piece at a time. Handles move between places.
func TestOrderedWorkIsAsIfDoneAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const page, count = 64 << 10, 4
		ok := func(err error) { require.NoError(t, err) }
		drv := sim.New(sim.Config{Bytes: true, GranularityBytes: page})
		opened, err := drv.Open(0)
		ok(err)
		defer func() { ok(opened.Close()) }()
		dev := drv.Device(0)
		host, err := dev.MemHostAlloc(page)
		ok(err)
		base, err := dev.MemAddressReserve(count * page)
		ok(err)
		var handles []cudadrv.Handle
		var places []*user
		for i := range cudadrv.Ptr(count) {
			h, err := dev.MemCreate(page)
			ok(err)
			handles = append(handles, h)
			ok(dev.MemMap(base+i*page, page, h))
			places = append(places, &user{device: base + i*page, want: make([]byte, page)})
		}
		ok(dev.MemSetAccess(base, count*page))
		plain, err := dev.MemAlloc(page)
		ok(err)
		places = append(places, &user{device: plain, want: make([]byte, page)})
		streams := []cudadrv.Stream{0}
		for range 3 {
			s, err := dev.StreamCreate()
			ok(err)
			streams = append(streams, s)
		}

		place := func(what string) *user { return rapid.SampledFrom(places).Draw(t, what) }
		wait := func(s cudadrv.Stream, e cudadrv.Event) {
			if e != 0 {
				ok(dev.StreamWaitEvent(s, e))
			}
		}
		// work orders s after the earlier work on the places, and later work on them after s.
		work := func(write, read *user, do func(s cudadrv.Stream) error) {
			s := rapid.SampledFrom(streams).Draw(t, "stream")
			wait(s, write.write)
			for _, e := range write.reads {
				wait(s, e)
			}
			if read != nil {
				wait(s, read.write)
			}
			ok(do(s))
			e, err := dev.EventCreate()
			ok(err)
			ok(dev.EventRecord(e, s))
			if read != nil {
				read.reads = append(read.reads, e)
			}
			write.write, write.reads = e, nil
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				to, value := place("to"), rapid.Byte().Draw(t, "value")
				from := rapid.IntRange(0, page-1).Draw(t, "from")
				part := to.want[from : from+rapid.IntRange(0, page-from).Draw(t, "bytes")]
				for i := range part {
					part[i] = value
				}
				work(to, nil, func(s cudadrv.Stream) error {
					return dev.MemsetD8Async(to.device+cudadrv.Ptr(from), value, int64(len(part)), s)
				})
			},
			"copy": func(t *rapid.T) {
				to, from := place("to"), place("source")
				n := rapid.IntRange(0, page).Draw(t, "bytes")
				offset := rapid.IntRange(0, page-n).Draw(t, "offset")
				copy(to.want, from.want[offset:offset+n])
				work(to, from, func(s cudadrv.Stream) error {
					return dev.MemcpyDtoDAsync(to.device, from.device+cudadrv.Ptr(offset), int64(n), s)
				})
			},
			"time": func(*rapid.T) { dev.Advance(10 * time.Microsecond) },
			"exchange": func(t *rapid.T) {
				i := rapid.IntRange(0, count-2).Draw(t, "which")
				a, b := places[i], places[i+1]
				ok(dev.CtxSynchronize())
				ok(dev.MemUnmap(a.device, 2*page))
				handles[i], handles[i+1] = handles[i+1], handles[i]
				ok(dev.MemMap(a.device, page, handles[i]))
				ok(dev.MemMap(b.device, page, handles[i+1]))
				ok(dev.MemSetAccess(a.device, 2*page))
				a.want, b.want = b.want, a.want
			},
			"renew": func(t *rapid.T) {
				i := rapid.IntRange(0, count-1).Draw(t, "which")
				ok(dev.CtxSynchronize())
				ok(dev.MemRelease(handles[i]))
				ok(dev.MemUnmap(places[i].device, page))
				handles[i], err = dev.MemCreate(page)
				ok(err)
				ok(dev.MemMap(places[i].device, page, handles[i]))
				ok(dev.MemSetAccess(places[i].device, page))
				clear(places[i].want)
			},
		})
		ok(dev.CtxSynchronize())
		for _, at := range places {
			ok(dev.MemcpyDtoHAsync(host, at.device, 0))
			ok(dev.CtxSynchronize())
			require.True(t, bytes.Equal(at.want, host), "%#x", at.device)
		}
		ok(dev.Audit())
	})
}
