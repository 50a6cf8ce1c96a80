package acceptance_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/pool"
)

// mapped calls f and reports whether the driver mapped memory in it.
func (a *account) mapped(f func()) bool {
	before := a.h.faults.Calls("cuMemMap")
	f()
	synctest.Wait()
	return a.h.faults.Calls("cuMemMap") > before
}

// alloc allocates a buffer, for the guest in some cases.
func (a *account) alloc(t *testing.T, s *streamAccount, guest bool) {
	t.Helper()
	n := lengths[a.rng.IntN(len(lengths))]
	want := vram.Request{Bytes: n[0]}
	if guest {
		want.Tenant = a.guest
	}
	heldBytes := a.heldBytes(s)
	var b vram.Buffer
	var err error
	mapped := a.mapped(func() { b, err = s.AllocFor(t.Context(), want) })
	switch refused := (*vram.QuotaError)(nil); {
	case guest && sumBlocks(a.owned.live)+n[1] > quotaBytes:
		require.ErrorAs(t, err, &refused)
		require.Equal(t, vram.QuotaError{
			Tenant: "guest", RequestedBytes: n[1], ChargedBytes: sumBlocks(a.owned.live), HeldBytes: sumBlocks(a.owned.live), Quota: a.quota,
		}, *refused)
		a.owned.overQuota++
		s.tries.RefusedCount++
	default:
		require.NoError(t, err)
		a.add(s, b, n[1], guest)
		switch {
		case mapped:
			s.misses++
		case a.heldBytes(s) > heldBytes:
			s.pooled++
		}
	}
}

// batch allocates three buffers at once.
func (a *account) batch(t *testing.T, s *streamAccount) {
	t.Helper()
	bytes, blocks := make([]int64, 3), make([]int64, 3)
	for i := range bytes {
		n := lengths[a.rng.IntN(len(lengths))]
		bytes[i], blocks[i] = n[0], n[1]
	}
	dst := make([]vram.Buffer, 3)
	if a.mapped(func() { require.NoError(t, s.AllocBatch(dst, bytes)) }) {
		s.misses++
	}
	s.fromBatches = true
	for i, b := range dst {
		a.add(s, b, blocks[i], false)
	}
}

// refuse makes calls that are refused, each once.
func (a *account) refuse(t *testing.T, s *streamAccount) {
	t.Helper()
	_, err := s.Alloc(-1)
	require.ErrorIs(t, err, vram.ErrNegative)
	_, err = s.Alloc(accountLimit + 1)
	require.ErrorIs(t, err, vram.ErrTooLarge)
	_, err = s.AllocFor(t.Context(), vram.Request{Bytes: quotaBytes + 1, Tenant: a.guest})
	require.ErrorIs(t, err, vram.ErrQuota)
	a.owned.overQuota++
	s.tries.RefusedCount += 3
	if b := a.one(); b != nil {
		copied := b.Buffer
		a.free(t, b)
		require.ErrorIs(t, copied.Free(), vram.ErrBadFree)
		b.of.tries.BadFreeCount++
	}
}

// one returns a live buffer, nil if there is none.
func (a *account) one() *heldBuffer {
	s := a.any()
	if len(s.live) == 0 {
		return nil
	}
	return s.live[a.rng.IntN(len(s.live))]
}

// exhaust requests more than there is: in vain, or at the second attempt, after OnOutOfMemory has freed a buffer.
func (a *account) exhaust(t *testing.T, s *streamAccount) {
	t.Helper()
	a.finish(t)
	bytes := accountLimit - a.liveBytes() - a.set + 10*mib // too much also without the rescue
	if bytes > accountLimit {
		return
	}
	if rescue := a.one(); rescue != nil && a.rng.IntN(2) == 0 {
		a.rescue = rescue
		s.tries.RetryCount++
	}
	want := vram.Request{Bytes: bytes, Tag: "exhausts"}
	_, err := s.AllocFor(t.Context(), want)
	var short *vram.OutOfMemoryError
	require.ErrorAs(t, err, &short)
	require.Nil(t, a.rescue)
	s.tries.OutOfMemoryCount++
	synctest.Wait()
	a.refusal(t, s, want, short)
}

// refusal compares the figures of a refusal with the record.
func (a *account) refusal(t *testing.T, s *streamAccount, want vram.Request, e *vram.OutOfMemoryError) {
	t.Helper()
	n := a.h.Stats()
	require.Equal(t, [...]any{want.Bytes, s.ID(), want.Tag, want.Tenant.Name()}, [...]any{e.RequestedBytes, e.Stream, e.Tag, e.Tenant})
	require.Equal(t, [...]int64{a.limit, 0, 0}, [...]int64{e.LimitBytes, e.SharedBytes, e.DriverBytes})
	require.False(t, e.Waited)
	require.NoError(t, e.Cause)
	require.Len(t, e.Streams, len(n.Streams)+min(1, int(a.set)))
	var liveBytes int64
	for _, held := range e.Streams {
		if held.Reservation {
			require.Equal(t, a.set, held.HeldBytes)
			continue
		}
		liveBytes += held.LiveBytes
		require.LessOrEqual(t, held.LiveBytes, held.HeldBytes)
	}
	require.GreaterOrEqual(t, liveBytes, a.liveBytes())
	if owned := sumBlocks(a.owned.live); owned > 0 {
		require.Equal(t, []pool.Holder{{Tenant: "guest", HeldBytes: owned}}, e.Tenants)
	}
	var all []int64
	for _, s := range a.open {
		for _, b := range s.live {
			all = append(all, b.blockBytes)
		}
	}
	slices.SortFunc(all, func(x, y int64) int { return cmp.Compare(y, x) })
	var largest []int64
	for _, b := range e.Largest {
		largest = append(largest, b.Bytes)
	}
	require.Equal(t, all[:min(10, len(all))], largest)
}

// leave returns memory of a stream to the pool while the stream's work runs.
func (a *account) leave(t *testing.T, check func()) {
	t.Helper()
	b := a.one()
	if b == nil {
		return
	}
	a.finish(t)
	a.ownTime += a.timed(func() { require.NoError(t, a.h.gpu.Launch(b.of.Handle(), time.Hour)) })
	a.free(t, b)
	require.NoError(t, b.of.Trim(t.Context()))
	check()
	a.finish(t)
}

// use frees a buffer that work of another stream uses for an hour.
func (a *account) use(t *testing.T) {
	t.Helper()
	b := a.one()
	if b == nil {
		return
	}
	for _, by := range a.open {
		if by != b.of {
			synctest.Wait()
			a.ownTime += a.timed(func() { require.NoError(t, a.h.gpu.Launch(by.Handle(), time.Hour)) })
			require.NoError(t, b.RecordStream(by.Stream))
			a.free(t, b)
			b.of.pendingBytes += b.blockBytes
			return
		}
	}
}

// finish lets all work of the GPU end, and streams find out.
func (a *account) finish(t *testing.T) {
	t.Helper()
	a.h.gpu.Advance(100 * time.Hour)
	for range 2 { // the first finds the ends of uses
		for _, s := range a.open {
			require.NoError(t, s.Trim(t.Context()))
			s.pendingBytes = 0
		}
		<-time.After(time.Second) // virtual: some ticks
		synctest.Wait()
	}
}

// wait lets a request wait for memory, or for the quota of the guest, until a free serves it or its context ends.
func (a *account) wait(t *testing.T, check func()) {
	t.Helper()
	a.finish(t)
	s, holder := a.open[0], a.open[1]
	guest := a.rng.IntN(2) == 0
	if sumBlocks(a.owned.live) > 4*mib {
		return
	}
	spare := accountLimit - 4*mib
	for _, s := range a.open {
		spare -= a.heldBytes(s)
	}
	hog := a.large(t, holder, spare, false)
	bytes, duration := 16*mib, time.Duration(1+a.rng.IntN(1<<24))*time.Microsecond
	want := vram.Request{Bytes: bytes}
	if guest {
		want.Tenant = a.guest
		_, err := s.AllocFor(t.Context(), want)
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		s.tries.OutOfMemoryCount++
		a.owned.outOfMemory++
		a.refusal(t, s, want, short)
		a.owned.chargedBytes = bytes
	}
	ends := a.rng.IntN(2) == 0
	ctx, cancel := context.WithCancel(t.Context())
	answer := waitWithin(ctx, s.Stream, want)
	synctest.Wait()
	<-time.After(duration) // virtual
	a.waits.waiting, a.waits.demandBytes, s.waiting = 1, bytes, 1
	a.waits.count++
	check()
	var got served
	if a.mapped(func() {
		if ends {
			cancel()
		} else {
			a.free(t, hog)
		}
		got = <-answer
	}) && !ends {
		s.misses++
	}
	cancel()
	a.waits.waiting, a.waits.demandBytes, s.waiting, a.owned.chargedBytes = 0, 0, 0, 0
	a.note(duration, guest)
	s.fromBatches = true
	if ends {
		require.ErrorIs(t, got.err, context.Canceled)
		s.tries.EndedWaitCount++
		a.free(t, hog)
		return
	}
	require.NoError(t, got.err)
	a.add(s, got.Buffer, bytes, guest)
}

// waitForQuota lets a request of the guest wait for a free of the guest's own.
func (a *account) waitForQuota(t *testing.T, check func()) {
	t.Helper()
	a.finish(t)
	for len(a.owned.live) > 0 {
		a.free(t, a.owned.live[0])
	}
	a.h.Stats() // a turn of each stream: until then an exact peak has its freed buffers
	s := a.open[0]
	hog := a.large(t, s, 20*mib, true)
	duration := time.Duration(1+a.rng.IntN(1<<14)) * time.Microsecond
	answer := waitFor(s.Stream, vram.Request{Bytes: 8 * mib, Tenant: a.guest})
	<-time.After(duration) // virtual
	a.owned.queued, s.waiting, a.waits.waiting, a.waits.demandBytes = 1, 1, 1, 8*mib
	a.waits.count++
	check()
	a.free(t, hog)
	b := got(t, answer)
	a.add(s, b, 8*mib, true)
	a.owned.queued, s.waiting, a.waits.waiting, a.waits.demandBytes = 0, 0, 0, 0
	a.note(duration, true)
	a.reset() // the quota has the buffer back before the stream has it: both may count for a moment
	n := a.h.Stats().Streams[0].DriverMisses
	require.LessOrEqual(t, n, s.misses+1, "it is mapped, if its request overtakes the free")
	s.misses = n
}

// repeat allocates and frees buffers of one length, which then stay in magazines.
func (a *account) repeat(t *testing.T, s *streamAccount) {
	t.Helper()
	for range 10 {
		a.free(t, a.large(t, s, 3*mib, false))
	}
}

// large allocates a buffer of whole pages.
func (a *account) large(t *testing.T, s *streamAccount, bytes int64, guest bool) *heldBuffer {
	t.Helper()
	want := vram.Request{Bytes: bytes}
	if guest {
		want.Tenant = a.guest
	}
	var b vram.Buffer
	var err error
	if a.mapped(func() { b, err = s.AllocFor(t.Context(), want) }) {
		s.misses++
	}
	require.NoError(t, err)
	s.fromBatches = true
	return a.add(s, b, bytes, guest)
}

// note counts a wait that has ended.
func (a *account) note(waited time.Duration, guest bool) {
	a.waits.durations = append(a.waits.durations, waited)
	a.waits.longest = max(a.waits.longest, waited)
	if guest {
		a.owned.durations = append(a.owned.durations, waited)
		a.owned.longest = max(a.owned.longest, waited)
	}
}

// deadlock lets the only holder wait.
func (a *account) deadlock(t *testing.T) {
	t.Helper()
	a.empty(t)
	s := a.open[0]
	s.Exclusive()
	held := a.large(t, s, 200*mib, false)
	_, err := s.AllocFor(t.Context(), vram.Request{Bytes: 100 * mib, Wait: true})
	require.ErrorIs(t, err, vram.ErrWouldDeadlock)
	a.waits.count++
	a.waits.deadlocks++
	a.note(0, false)
	a.free(t, held)
}

// empty frees all buffers.
func (a *account) empty(t *testing.T) {
	t.Helper()
	for _, s := range a.open {
		for len(s.live) > 0 {
			a.free(t, s.live[0])
		}
	}
	a.finish(t)
}

// replace ends a stream, and opens another.
func (a *account) replace(t *testing.T) {
	t.Helper()
	a.finish(t)
	s := a.open[0]
	for len(s.live) > 0 {
		a.free(t, s.live[0])
	}
	synctest.Wait()
	n := a.h.Stats().Streams[0]
	a.goneStats.MagazineHits += n.MagazineHits
	a.goneStats.RangeHits += n.RangeHits
	a.goneStats.PoolHits += n.PoolHits
	a.goneStats.DriverMisses += n.DriverMisses
	require.NoError(t, s.Close())
	<-time.After(time.Second) // virtual: the stream is forgotten
	synctest.Wait()
	a.open = slices.Delete(a.open, 0, 1)
	a.gone = append(a.gone, s)
	s.pendingBytes = 0
	a.openStream()
}

// reserve sets memory aside, checks, and releases it.
func (a *account) reserve(t *testing.T, check func()) {
	t.Helper()
	a.finish(t)
	if a.liveBytes() > 200*mib {
		return
	}
	r, err := a.h.Reserve(t.Context(), 6*mib)
	require.NoError(t, err)
	a.set = 6 * mib
	check()
	r.Release()
	a.set = 0
}

// fail lets a call of the driver fail in a request.
func (a *account) fail(t *testing.T, s *streamAccount) {
	t.Helper()
	a.finish(t)
	a.h.trim()
	require.NoError(t, a.h.faults.Add(fault.Rule{Func: "cuMemMap", Result: cudadrv.Unknown}))
	_, err := s.Alloc(32 * mib)
	a.h.faults.Clear()
	synctest.Wait()
	if err == nil { // it had the memory
		require.Fail(t, "the stream had 32 MiB after a trim")
	}
	require.ErrorIs(t, err, cudadrv.Unknown)
	a.injected["cuMemMap"]++
}

// reset restarts the peaks at the present values.
func (a *account) reset() {
	a.h.ResetPeaks()
	a.peakLive, a.peakRead = a.liveBytes(), a.liveBytes()
	a.peakReserved.Reset(a.usedBytes())
	a.peakPending = 0
	for _, s := range a.open {
		s.peakPending = s.pendingBytes
		a.peakPending += s.pendingBytes
	}
	a.owned.peakHeld = sumBlocks(a.owned.live)
	a.waits.longest, a.owned.longest = 0, 0
}

// step plays one step of a program. It calls check in the middle of steps that last.
func (a *account) step(t *testing.T, check func()) {
	t.Helper()
	s := a.any()
	kind := a.rng.IntN(100)
	a.played = append(a.played, fmt.Sprintf("%d on stream %d", kind, s.ID()))
	switch {
	case kind < 35 && a.liveBytes() < 100*mib:
		a.alloc(t, s, kind < 10)
	case kind < 65:
		if b := a.one(); b != nil {
			a.free(t, b)
		}
	case kind < 70 && a.liveBytes() < 100*mib:
		a.batch(t, s)
	case kind < 74:
		a.refuse(t, s)
	case kind < 76 && a.liveBytes() < 100*mib:
		a.repeat(t, s)
	case kind < 78:
		a.use(t)
	case kind < 80:
		a.leave(t, check)
	case kind < 83:
		a.finish(t)
	case kind < 86:
		a.wait(t, check)
	case kind < 88:
		a.exhaust(t, s)
	case kind < 90:
		a.reserve(t, check)
	case kind < 92:
		a.fail(t, s)
	case kind < 94:
		a.replace(t)
	case kind < 96:
		a.reset()
	case kind < 97:
		a.deadlock(t)
	case kind < 98:
		a.waitForQuota(t, check)
	case kind < 99 && a.liveBytes() < 100*mib:
		a.finish(t)
		require.NoError(t, a.h.Warm(t.Context(), vram.Demand{Bytes: 8 * mib, Count: 1}))
	default:
		<-time.After(10 * time.Second) // virtual: old free memory goes to the driver
	}
	synctest.Wait()
}
