package acceptance_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The error of a call on a closed device or stream names which of them is closed.
func TestARefusalSaysWhatIsClosed(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	kept := must(t, b, 2*mib)
	require.NoError(t, a.Close())
	ofStream := map[string]error{
		"Alloc":      second(a.Alloc(kib)),
		"AllocFor":   second(a.AllocFor(t.Context(), vram.Request{Bytes: kib})),
		"AllocAsync": second(a.AllocAsync(t.Context(), vram.Request{Bytes: kib}).Await(t.Context())),
		"AllocBatch": a.AllocBatch(make([]vram.Buffer, 1), []int64{kib}),
		"Use":        second(kept.Use(a)),
		"Transfer":   second(kept.Transfer(a)),
		"Trim":       a.Trim(t.Context()),
		"Stats":      second(a.Stats(t.Context())),
	}
	var leaked *vram.InUseError
	require.ErrorAs(t, h.Close(), &leaked)
	ofDevice := map[string]error{
		"NewStream":   second(h.NewStream()),
		"Reserve":     second(h.Reserve(t.Context(), mib)),
		"Warm":        h.Warm(t.Context(), vram.Demand{Bytes: mib, Count: 1}),
		"Trim":        second(h.Trim(t.Context(), 0)),
		"Coalesce":    h.Coalesce(t.Context()),
		"Reconfigure": h.Reconfigure(vram.Settings{LimitBytes: new(mib)}),
		"Tenant":      second(h.Tenant("late", vram.Quota{})),
		"Observe":     second(h.Observe(vram.Observer{})),
		"MemoryMap":   second(h.MemoryMap(t.Context(), 0)),
		"GPUMemory":   second(h.GPUMemory()),
		"Free":        kept.Free(),
		"Alloc":       second(b.Alloc(kib)),
	}

	is := func(name, text string, want vram.ClosedError, err error) {
		t.Helper()
		var closed *vram.ClosedError
		require.ErrorIs(t, err, vram.ErrClosed, name)
		require.ErrorAs(t, err, &closed, name)
		assert.Equal(t, want, *closed, name)
		assert.Equal(t, text, err.Error(), name)
	}
	for name, err := range ofStream {
		is("stream: "+name, "vram: stream 1 is closed", vram.ClosedError{Stream: 1}, err)
	}
	for name, err := range ofDevice {
		is("device: "+name, "vram: the device is closed", vram.ClosedError{}, err)
	}
}

// Requests that wait for memory when the device is closed hear that it was, and not that their stream was closed.
func TestWaitersHearThatTheDeviceIsClosed(t *testing.T) {
	const waiters = 50
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	streams := []*vram.Stream{h.stream(), h.stream(), h.stream()}
	held := must(t, streams[0], 60*mib)
	errs := make(chan error, waiters)
	for i := range waiters {
		request := vram.Request{Bytes: 32 * mib, Wait: true}
		if s := streams[i%len(streams)]; i%2 == 0 {
			go func() { errs <- second(s.AllocFor(t.Context(), request)) }()
		} else {
			answer := s.AllocAsync(t.Context(), request)
			go func() { errs <- second(answer.Await(t.Context())) }()
		}
	}
	for h.Stats().Waits.Waiting < waiters {
		runtime.Gosched()
	}
	var leaked *vram.InUseError
	require.ErrorAs(t, h.Close(), &leaked)
	for range waiters {
		err := <-errs
		require.ErrorIs(t, err, vram.ErrClosed)
		assert.Equal(t, "vram: the device is closed", err.Error())
	}
	require.ErrorIs(t, held.Free(), vram.ErrClosed)
}
