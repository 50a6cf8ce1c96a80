package acceptance_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A leak is reported to Events and to the logger before Close returns the same error, which every
// call returns.
func TestALeakIsTold(t *testing.T) {
	var log text
	var told []*vram.InUseError
	h := openHouse(t, vram.Config{Logger: log.logger(), Events: vram.Events{Leak: func(e *vram.InUseError) { told = append(told, e) }}}, sim.Config{})
	b, err := h.stream().AllocFor(t.Context(), vram.Request{Bytes: mib, Tag: "forgotten"})
	require.NoError(t, err)
	err = h.Close()
	var leak *vram.InUseError
	require.ErrorAs(t, err, &leak)
	require.Equal(t, []*vram.InUseError{leak}, told)
	assert.Equal(t, uint64(1), leak.BufferCount)
	assert.Equal(t, b.Ptr(), leak.Buffers[0].Ptr)
	assert.Contains(t, leak.Error(), "closed with 1 live buffer, ")
	assert.Contains(t, log.String(), "vram: leak")
	assert.Contains(t, log.String(), "forgotten")
	assert.Equal(t, err, h.Close())
	assert.Len(t, told, 1, "once")
}

// A leak alone is not joined to other errors: encoding/json writes its fields, also after a CloseInto.
func TestALeakAloneIsAValueOfJSON(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	must(t, h.stream(), mib)
	closed := func() (err error) {
		defer vram.CloseInto(&err, h.Device)
		return nil
	}
	for _, err := range []error{closed(), h.Close()} {
		assert.IsType(t, (*vram.InUseError)(nil), err)
		text, failed := json.Marshal(err)
		require.NoError(t, failed)
		assert.Contains(t, string(text), `"buffer_count":1,"bytes":1048576`)
	}
	assert.NoError(t, func() (err error) {
		defer vram.CloseInto(&err, openHouse(t, vram.Config{}, sim.Config{}).Device)
		return nil
	}())
}

// A leak whose places are unknown names both ways to know them; one of which some are known, since they were sampled, has
// these.
func TestALeakSaysHowToSeeItsPlaces(t *testing.T) {
	const inError, inReport = "; Config.SampleBytes names where large ones were allocated, Config.Debug where each was",
		"to see where they were allocated: set SampleBytes, also at run time, for the large ones at little cost; or open the device with Config.Debug, for each\n"
	h := openHouse(t, vram.Config{}, sim.Config{})
	must(t, h.stream(), mib)
	var leak *vram.InUseError
	require.ErrorAs(t, h.Close(), &leak)
	assert.Contains(t, leak.Error(), inError)
	assert.Contains(t, leak.Report(), inReport)

	h = openHouse(t, vram.Config{}, sim.Config{})
	must(t, h.stream(), mib)
	require.NoError(t, h.Reconfigure(vram.Settings{SampleBytes: new(mib)}))
	must(t, h.stream(), 2*mib)
	require.ErrorAs(t, h.Close(), &leak)
	require.Len(t, leak.Buffers, 2)
	assert.NotContains(t, leak.Error(), inError)
	assert.NotContains(t, leak.Report(), inReport)
	assert.Contains(t, leak.Report(), "allocated at acceptance_test.must ")
}

// The error names the largest buffer of all streams, and sums up the others.
func TestALeakNamesTheLargestBuffer(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	first, second := h.stream(), h.stream()
	must(t, first, mib)
	large, err := second.AllocFor(t.Context(), vram.Request{Bytes: 8 * mib, Tag: "weights"})
	require.NoError(t, err)
	must(t, second, 2*mib)
	var leak *vram.InUseError
	require.ErrorAs(t, h.Close(), &leak)
	assert.Equal(t, large.Ptr(), leak.Buffers[0].Ptr)
	assert.Contains(t, leak.Error(), fmt.Sprintf("closed with 3 live buffers, 11 MiB in all, the largest a buffer of 8 MiB at %v on stream %d, tag \"weights\"; also 2 buffers of 3 MiB in all",
		large.Ptr(), second.ID()))
	assert.Contains(t, (&vram.InUseError{BufferCount: 1, Bytes: mib, Buffers: leak.Buffers[2:]}).Error(), "closed with 1 live buffer, 1 MiB in all: a buffer of 1 MiB at ")
}

// Without a leak nothing is reported.
func TestNoLeakIsTold(t *testing.T) {
	var log text
	h := openHouse(t, vram.Config{Logger: log.logger(), Events: vram.Events{Leak: func(e *vram.InUseError) { t.Error(e) }}}, sim.Config{})
	freeAll(t, must(t, h.stream(), mib))
	require.NoError(t, h.Close())
	assert.NotContains(t, log.String(), "leak")
}

// A wait for memory is reported once, about a second after it began, with the requested bytes; a
// shorter one is not.
func TestALongWaitIsTold(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		var log text
		var mu sync.Mutex
		var heard []vram.LongWaitEvent
		told := func() []vram.LongWaitEvent {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(heard)
		}
		h := openHouse(t, vram.Config{
			LimitBytes: 64 * mib, Logger: log.logger(),
			Events: vram.Events{LongWait: func(e vram.LongWaitEvent) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, e)
			}},
		}, sim.Config{})
		holder, s := h.stream(), h.stream()
		kept := must(t, holder, 40*mib)
		rest := must(t, holder, 20*mib)
		tenant, err := h.Tenant("gold", vram.Quota{LimitBytes: 4 * mib})
		require.NoError(t, err)
		full, err := s.AllocFor(t.Context(), vram.Request{Bytes: 4 * mib, Tenant: tenant})
		require.NoError(t, err)

		short := waitFor(s, vram.Request{Bytes: 10 * mib})
		waits(t, short)
		<-time.After(900 * time.Millisecond) // virtual
		freeAll(t, rest)
		freeAll(t, got(t, short))
		<-time.After(time.Second)
		synctest.Wait()
		assert.Empty(t, told())

		begun := time.Now()
		long := waitFor(s, vram.Request{Bytes: 50 * mib, Priority: 3, Tag: "weights"})
		waits(t, long)
		<-time.After(950 * time.Millisecond)
		synctest.Wait()
		assert.Empty(t, told(), "not yet")
		charged := waitFor(s, vram.Request{Bytes: 2 * mib, Tenant: tenant})
		waits(t, charged)
		batch := s.AllocBatchForAsync(t.Context(), vram.BatchRequest{Bytes: []int64{30 * mib, 30 * mib}, Wait: true})
		<-time.After(time.Until(begun.Add(1200 * time.Millisecond)))
		synctest.Wait()
		require.Len(t, told(), 1)
		first := told()[0]
		assert.GreaterOrEqual(t, first.Waited, time.Second)
		assert.LessOrEqual(t, first.Waited, 1100*time.Millisecond)
		first.Waited = 0
		assert.Equal(t, vram.LongWaitEvent{Stream: s.ID(), Bytes: 50 * mib, Priority: 3, Tag: "weights"}, first)
		<-time.After(5 * time.Second)
		synctest.Wait()
		require.Len(t, told(), 3, "each once")
		assert.ElementsMatch(t, []vram.LongWaitEvent{
			{Stream: s.ID(), Bytes: 2 * mib, Tenant: "gold", ForQuota: true, Waited: told()[1].Waited},
			{Stream: s.ID(), Bytes: 60 * mib, Waited: told()[2].Waited},
		}, told()[1:])
		assert.Contains(t, log.String(), "long wait for memory")
		assert.Contains(t, log.String(), "tag=weights")

		freeAll(t, kept)
		freeAll(t, got(t, long))
		require.NoError(t, full.Free())
		freeAll(t, got(t, charged))
		b, err := batch.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
		<-time.After(5 * time.Second)
		synctest.Wait()
		assert.Len(t, told(), 3)
		require.NoError(t, h.Close())
	})
}
