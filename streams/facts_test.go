package streams

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// A batch with a size that can never be served is refused with its index, and counts once; and so is a request that names a tenant or a
// reservation of another device.
func TestRequestsThatCanNeverBeServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	foreign := newRig(t, 64*mib)
	stranger := pool.NewTenant("stranger", 1, pool.Quota{})
	foreign.pool.AddTenants(stranger)
	set, err := foreign.pool.Reserve(t.Context(), 99, 2*mib)
	require.NoError(t, err)
	refusals := uint64(0)
	for _, row := range []struct {
		bytes []int64
		index int
		want  error
	}{{[]int64{1, 2, -3}, 2, ErrNegative}, {[]int64{1, 65 * mib}, 1, ErrTooLarge}, {[]int64{60 * mib, 5 * mib}, -1, ErrTooLarge}} {
		_, err := s.AllocBatchFor(t.Context(), BatchRequest{Bytes: row.bytes})
		require.ErrorIs(t, err, row.want)
		if batch, ok := errors.AsType[*BatchError](err); assert.Equal(t, row.index >= 0, ok) && ok {
			assert.Equal(t, row.index, batch.Index)
			assert.Equal(t, 1, batch.Count)
		}
		refusals++
		assert.Equal(t, refusals, s.tally.Counts().RefusedCount)
	}
	for _, row := range []struct {
		tenant      *pool.Tenant
		reservation *pool.Reservation
	}{{stranger, nil}, {nil, set}} {
		_, err := s.AllocFor(t.Context(), Request{Bytes: mib, Tenant: row.tenant, Reservation: row.reservation})
		require.Error(t, err)
		_, err = s.AllocBatchFor(t.Context(), BatchRequest{Bytes: []int64{mib}, Tenant: row.tenant, Reservation: row.reservation})
		require.Error(t, err)
		refusals += 2
		assert.Equal(t, refusals, s.tally.Counts().RefusedCount)
	}
	assert.Zero(t, r.stats(s).LiveCount)
}

// A tenant's request queues if any request waits, also one for no bytes.
func TestARequestQueuesAfterOneForNothing(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 8*mib)
	b := must(t, s, 8*mib)
	assert.False(t, s.queues(true))
	f := other.AllocAsync(t.Context(), Request{Wait: true})
	r.until(func() bool { return r.books().Waits.Waiting == 1 })
	assert.True(t, s.queues(true))
	require.NoError(t, b.Free())
	b, err := f.Await(t.Context())
	require.NoError(t, err)
	require.NoError(t, b.Free())
}

// While a Receive waits, its stream is suspended until the sender makes progress, and while a Send waits for room, its stream; of the other
// stream nothing is reported.
func TestWhoWaitsInAHandover(t *testing.T) {
	t.Parallel()
	r, from, to := pair(t, 16*mib)
	from.Exclusive()
	to.Exclusive()
	h := NewHandover[int](from, to, 1)
	waits := func(s *Stream) [][]uint32 { return control(s).Suspensions() }
	done := make(chan error, 1)
	go func() {
		_, err := h.Receive(t.Context())
		done <- err
	}()
	r.until(func() bool { return len(waits(to)) == 1 })
	assert.Equal(t, [][]uint32{{from.ID()}}, waits(to))
	assert.Empty(t, waits(from))
	require.NoError(t, h.Send(t.Context(), 1))
	require.NoError(t, <-done)
	assert.Empty(t, waits(to))
	require.NoError(t, h.Send(t.Context(), 2))
	go func() { done <- h.Send(t.Context(), 3) }()
	r.until(func() bool { return len(waits(from)) == 1 })
	assert.Equal(t, [][]uint32{{to.ID()}}, waits(from))
	assert.Empty(t, waits(to))
	_, err := h.Receive(t.Context())
	require.NoError(t, err)
	require.NoError(t, <-done)
	assert.Empty(t, waits(from))
}

// A stream that got a buffer by a Transfer frees memory of the other from then on.
func TestATransferMakesAFreer(t *testing.T) {
	t.Parallel()
	_, home, to := pair(t, 16*mib)
	b := must(t, home, mib)
	assert.Nil(t, home.suspensions.progress.Load())
	moved, err := b.Transfer(to)
	require.NoError(t, err)
	assert.Equal(t, []poolcore.Client{to.id}, home.suspensions.progress.Load().freedBy)
	require.NoError(t, moved.Free())
}

// Watch finds each live buffer, and the observer sees their frees from then on.
func TestWatchFindsWhatLives(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.watched(&diary{})
	all := []Buffer{must(t, s, kib), must(t, s, 100*kib), must(t, s, 3*mib)}
	require.NoError(t, all[1].Free())
	var found []int64
	require.NoError(t, control(s).Watch(t.Context(), core.Settings{Share: magazine.Everything}, func(e BufferEvent) { found = append(found, e.Bytes) }))
	assert.Len(t, found, 2)
	require.NoError(t, control(s).Watch(t.Context(), core.Settings{Share: magazine.Everything}, nil))
	require.NoError(t, all[0].Free())
	require.NoError(t, all[2].Free())
}

// Shut waits for works in submission. If its context ends first, nothing is refused.
func TestAShutThatIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	x := r.sleeper(t, home)
	b, err := x.Alloc(mib)
	require.NoError(t, err)
	c := Submitter{home}.Crossing()
	require.NoError(t, c.Touch(b, false, 0))
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, x.Shut(ended), context.Canceled)
	assert.False(t, Asleep(x.s))
	c.Leave()
	require.NoError(t, x.Shut(ended))
	assert.True(t, Asleep(x.s))
	x.Open()
	require.NoError(t, b.Free())
}

// A hold whose End cannot wait for a stream stays, with that error.
func TestAnEndOfAHoldThatFails(t *testing.T) {
	t.Parallel()
	r, home, user := pair(t, 64*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	h, err := submitter(t, home).NewHold()
	require.NoError(t, err)
	r.work(user, time.Second)
	r.fail("cuStreamWaitEvent")
	require.ErrorIs(t, h.End(home, user), cudadrv.Unknown)
	assert.False(t, h.Stream().cuda.closing.Load())
	r.faults.Clear()
	require.NoError(t, h.End(user))
	assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
	require.NoError(t, h.End(user), "again")
}

// A buffer is frozen from Freeze to Thaw, while it lives. Thaw waits for works on it that are in submission.
func TestWhenABufferIsFrozen(t *testing.T) {
	t.Parallel()
	r, home, other := pair(t, 64*mib)
	b := must(t, home, mib)
	x := Submitter{home}
	assert.False(t, Frozen(b))
	require.NoError(t, x.Freeze(b, "here"))
	assert.True(t, Frozen(b))
	c := Submitter{other}.Crossing()
	require.NoError(t, c.Touch(b, false, 0))
	_, err := c.Begin()
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- x.Thaw(b) }()
	yield(1000)
	assert.Empty(t, done, "a work that reads is in submission")
	assert.True(t, Frozen(b))
	c.After()
	c.Leave()
	require.NoError(t, <-done)
	assert.False(t, Frozen(b))
	require.NoError(t, x.Freeze(b, "here"))
	require.NoError(t, b.Free())
	assert.False(t, Frozen(b))
	r.quiet(home)
}

// The first call that hears of the device's fault has all facts, and later ones that the device had failed. An error of a call of its own
// is no fault.
func TestFaultsOfADevice(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	var f Faults
	launches := []FailedLaunch{{Kernel: "add", Arguments: []string{"argument 0 1 byte"}}, {Kernel: "scale"}}
	recorded := func() ([]FailedLaunch, bool) { return launches, true }
	broken := &cudadrv.CallError{Func: "cuLaunchKernel", Result: cudadrv.IllegalAddress}
	other := &cudadrv.CallError{Func: "cuLaunchKernel", Result: cudadrv.InvalidValue}
	for _, err := range []error{nil, errPlanned, other, broken} {
		assert.Equal(t, err, f.Failed(err, r.device, recorded), "the device works")
		assert.Equal(t, err, f.Tell(err))
	}
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuMemGetInfo", Result: cudadrv.IllegalAddress}))
	failed := f.Failed(broken, r.device, recorded)
	r.faults.Clear()
	var before *DeviceFailedError
	require.ErrorAs(t, failed, &before)
	assert.Equal(t, "cuLaunchKernel", before.Func)
	require.ErrorIs(t, failed, ErrDeviceFailed)
	require.ErrorIs(t, failed, cudadrv.IllegalAddress)
	assert.Equal(t, failed, f.Failed(failed, r.device, recorded), "it is translated already")
	first, ok := errors.AsType[*FaultError](f.Tell(failed))
	require.True(t, ok)
	assert.Equal(t, launches, first.Launches)
	assert.Equal(t, broken, first.Unwrap())
	assert.ErrorContains(t, first, "add")
	assert.ErrorContains(t, first, "argument 0 1 byte")
	assert.Equal(t, error(first), f.Failed(first, r.device, recorded), "it is translated already")
	assert.Equal(t, failed, f.Tell(failed), "it is told once")
	later := f.Failed(&cudadrv.CallError{Func: "cuMemAlloc", Result: cudadrv.IllegalAddress}, r.device, recorded)
	assert.ErrorContains(t, later, "vram: cuMemAlloc: the device failed before: CUDA_ERROR_ILLEGAL_ADDRESS of one of 2 launches; the youngest: kernel add")
	assert.Equal(t, "vram: the device failed before", (&DeviceFailedError{}).Error())
	require.ErrorIs(t, error(&DeviceFailedError{}), ErrDeviceFailed)
	text, err := json.Marshal(&FaultError{Err: broken})
	require.NoError(t, err)
	assert.Contains(t, string(text), `"launches":[]`)
}

// A recorded launch names its arguments: with the tag of one that lives.
func TestTheArgumentsOfALaunchThatFailed(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	r.peers.RecordLaunches(false)
	s := r.stream(core.Budget{})
	live, err := s.AllocFor(t.Context(), Request{Bytes: 512, Tag: "weights"})
	require.NoError(t, err)
	freed := must(t, s, kib)
	require.NoError(t, freed.Free())
	Submitter{s}.Launching("add", []LaunchBuffer{{0, live}, {3, freed}})
	all, recorded := r.peers.unfinished()
	assert.True(t, recorded)
	require.Len(t, all, 1)
	assert.Equal(t, []string{`argument 0 512 bytes, tag "weights"`, "argument 3 1024 bytes, freed since"}, all[0].Arguments)
	require.NoError(t, live.Free())
}

// The texts of events have each fact that is known, and nothing of others.
func TestTheTextsOfEvents(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]interface{ String() string }{
		"stream 1 has waited 2s for 1 MiB": LongWait{Stream: 1, Waited: 2 * time.Second, Bytes: mib},
		`stream 1 has waited 2s for 1 MiB, for its quota, priority 3, tag "a", tenant "b"`: LongWait{
			Stream: 1, Waited: 2 * time.Second, Bytes: mib, ForQuota: true, Priority: 3, Tag: "a", Tenant: "b",
		},
		"buffer of 1 KiB at 0x200 of stream 2":                        BufferEvent{Bytes: kib, Ptr: 0x200, Stream: 2},
		`buffer of 1 KiB at 0x200 of stream 2, tag "a"`:               BufferEvent{Bytes: kib, Ptr: 0x200, Stream: 2, Tag: "a"},
		`buffer of 1 KiB at 0x200 of stream 2, tenant "b"`:            BufferEvent{Bytes: kib, Ptr: 0x200, Stream: 2, Tenant: "b"},
		`buffer of 1 KiB at 0x200 of stream 2, tag "a", stands for 7`: SampledBuffer{Bytes: kib, Ptr: 0x200, Stream: 2, Tag: "a", Weight: 7},
	} {
		assert.Equal(t, want, event.String())
	}
}

// A tenant's requests are served by the magazines, as others are, also while another goroutine is in the turn; one that owes waits.
func TestATenantsRequestsTakeTheShortWay(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 32 * kib})
	r.pool.AddTenants(owner)
	must(t, s, 4*kib)
	for _, owes := range []bool{false, true} {
		if owes {
			require.True(t, (*pool.TenantControl)(owner).Charge(30*kib))
		}
		leave := r.occupy(s)
		one := s.AllocAsync(t.Context(), Request{Bytes: 4 * kib, Tenant: owner, Wait: true})
		many := s.AllocBatchForAsync(t.Context(), BatchRequest{Bytes: []int64{4 * kib, 4 * kib}, Tenant: owner, Wait: true})
		assert.Equal(t, !owes, one.Completed())
		assert.Equal(t, !owes, many.Completed())
		leave()
		if owes {
			assert.True(t, one.Cancel())
			assert.True(t, many.Cancel())
			continue
		}
		b, err := one.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
		all, err := many.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, all.Free())
	}
	r.until(func() bool { return r.stats(s).Waiting == 0 })
}

// A request may have all memory within the limit.
func TestARequestForAllMemory(t *testing.T) {
	t.Parallel()
	_, s, _ := pair(t, 64*mib)
	require.NoError(t, must(t, s, 64*mib).Free())
	all, err := s.AllocBatchFor(t.Context(), BatchRequest{Bytes: []int64{32 * mib, 32 * mib}})
	require.NoError(t, err)
	require.NoError(t, all.Free())
	_, err = s.Alloc(64*mib + 1)
	require.ErrorIs(t, err, ErrTooLarge)
}

// Shut waits for each work in submission, however many there are. The pages of a sleeper stay with it.
func TestShutWaitsForAllWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	home := r.stream(core.Budget{})
	x := r.sleeper(t, home)
	b, err := x.Alloc(8 * mib)
	require.NoError(t, err)
	works := make([]Crossing, 3)
	for i := range works {
		works[i] = Submitter{home}.Crossing()
		require.NoError(t, works[i].TouchStream(x.s))
	}
	done := make(chan error, 1)
	go func() { done <- x.Shut(t.Context()) }()
	r.until(func() bool { return Asleep(x.s) })
	for i := range works {
		yield(100)
		assert.Empty(t, done)
		works[i].Leave()
	}
	require.NoError(t, <-done)
	x.Open()
	require.NoError(t, b.Free())
	held := r.stats(x.s).HeldBytes
	require.NoError(t, x.s.Trim(t.Context()))
	assert.Equal(t, held, r.stats(x.s).HeldBytes)
	assert.NotZero(t, held)
}

// Freeze and Thaw refuse buffers that are not live, and memory of a graph.
func TestWhichBuffersFreeze(t *testing.T) {
	t.Parallel()
	r, home, _ := pair(t, 64*mib)
	home.sibling = func() (*Stream, error) { return r.stream(core.Budget{}), nil }
	x := submitter(t, home)
	h, err := x.NewHold()
	require.NoError(t, err)
	kept, err := h.Alloc(mib)
	require.NoError(t, err)
	freed := must(t, home, mib)
	require.NoError(t, freed.Free())
	for _, call := range []func(b Buffer) error{func(b Buffer) error { return x.Freeze(b, "here") }, x.Thaw} {
		require.ErrorIs(t, call(kept), ErrGraphMemory)
		require.ErrorIs(t, call(freed), ErrNotLive)
	}
	require.NoError(t, kept.Free())
	require.NoError(t, h.End())
}

// Errors of calls that are no faults stay as they are, and launches that are not recorded are none.
func TestErrorsOfADeviceThatWorks(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	assert.Equal(t, errPlanned, r.peers.Failed(errPlanned, r.device))
	assert.Equal(t, errPlanned, r.peers.Tell(errPlanned))
	assert.Equal(t, errPlanned, Submitter{s}.Failure(errPlanned))
	require.NoError(t, Submitter{s}.Failure(nil))
	all, recorded := r.peers.unfinished()
	assert.Empty(t, all)
	assert.False(t, recorded)
}

// A wait for others is a wait for a stream whose work may wait for another process, and makes no call for others.
func TestWhichStreamsAwaitOthers(t *testing.T) {
	t.Parallel()
	r, s, _ := pair(t, 16*mib)
	x := submitter(t, s)
	for _, strands := range []bool{false, true} {
		if strands {
			x.Tail().MayStrand()
		}
		before := r.faults.Calls("cuStreamSynchronize") + uint64(r.gpu.Now())
		r.work(s, time.Second)
		require.NoError(t, x.AwaitOthers())
		assert.Equal(t, strands, r.faults.Calls("cuStreamSynchronize")+uint64(r.gpu.Now()) > before)
	}
}

// The value that package cuda keeps with a stream is made once, and a caller replaces only the observer that it knows.
func TestWhatIsKeptIsMadeOnce(t *testing.T) {
	t.Parallel()
	_, s, _ := pair(t, 16*mib)
	made := 0
	for range 3 {
		assert.Equal(t, 1, Submitter{s}.Attached(func() any { made++; return made }))
	}
	assert.Equal(t, 1, made)
	var all Observers
	first, second := new(Observer), new(Observer)
	all.Store(first)
	assert.False(t, all.CompareAndSwap(second, first))
	assert.True(t, all.CompareAndSwap(first, second))
	assert.Same(t, second, all.Load())
}

// A sampled buffer was allocated when it was.
func TestWhenASampledBufferWasAllocated(t *testing.T) {
	t.Parallel()
	s, _ := newRig(t, 64*mib).profiled(magazine.Everything)
	before := time.Now()
	b := must(t, s, mib)
	after := time.Now()
	all, err := control(s).Sampled(t.Context())
	require.NoError(t, err)
	if assert.Len(t, all, 1) {
		assert.False(t, all[0].Allocated.Before(before.Truncate(time.Microsecond)))
		assert.False(t, all[0].Allocated.After(after))
	}
	require.NoError(t, b.Free())
}

// A reclaim request that waits for runs when its turn panics is handled again, and by nothing before that.
func TestAReclaimRequestWaitsOnceAfterAPanic(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	s := r.stream(core.Budget{})
	leave := r.occupy(s)
	x := &s.turn.reclaims
	a := &reclaim{stream: &s.wiring, runsGranted: s.turn.state.claims.ReceivedRuns() + 1}
	x.handle(a)
	require.Same(t, a, x.due)
	require.NoError(t, s.turn.ending.panicked(actors.Panic{Value: recoveredtest.Planted("planted")}))
	assert.Nil(t, x.due)
	leave()
	r.settled(s)
	leave = r.occupy(s)
	assert.Same(t, a, x.due, "its runs have not arrived")
	x.due = nil
	leave()
}
