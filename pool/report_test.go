package pool

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/pool/memory"
	"github.com/go-vram/vram/internal/region"
)

// Texts name a figure from the first byte on, and leave it out where it is 0.
func TestTextsNameFiguresFromTheFirstByteOn(t *testing.T) {
	t.Parallel()
	out := func(change func(*OutOfMemoryError)) (texts []string) {
		e := &OutOfMemoryError{RequestedBytes: 8, MissingBytes: 8}
		change(e)
		return []string{e.Error(), e.Report()}
	}
	deadlock := func(h Holder) []string {
		e := &DeadlockError{RequestedBytes: 8, Holders: []Holder{h}}
		return []string{e.Error(), e.Report()}
	}
	wait := func(w Waiter) []string {
		return []string{w.String(), (&WaitError{Ahead: &w, Err: context.Canceled}).Report()}
	}
	for name, test := range map[string]struct {
		with, without []string
		want          string
	}{
		"the driver's": {out(func(e *OutOfMemoryError) { e.DriverBytes = 1 }), out(func(*OutOfMemoryError) {}), "the driver has 1 B"},
		"shared":       {out(func(e *OutOfMemoryError) { e.SharedBytes = 1 }), out(func(*OutOfMemoryError) {}), "(1 B of it shared)"},
		"stream":       {out(func(e *OutOfMemoryError) { e.Stream = 1 }), out(func(*OutOfMemoryError) {}), "on stream 1"},
		"a cause": {
			out(func(e *OutOfMemoryError) { e.Cause = errors.New("planted") }), out(func(*OutOfMemoryError) {}), "planted",
		},
		"a fence": {
			out(func(e *OutOfMemoryError) { e.Streams = []Holding{{Stream: 3, UnpassedBytes: 1}} }),
			out(func(e *OutOfMemoryError) { e.Streams = []Holding{{Stream: 3}} }), "stream 3",
		},
		"a holder": {
			out(func(e *OutOfMemoryError) { e.Streams = []Holding{{Stream: 3, HeldBytes: 1}} }),
			out(func(e *OutOfMemoryError) { e.Streams = []Holding{{Stream: 3}} }), "stream 3",
		},
		"a reservation": {
			out(func(e *OutOfMemoryError) { e.Streams = []Holding{{HeldBytes: 1, Reservation: true}} }),
			out(func(e *OutOfMemoryError) { e.Streams = []Holding{{Reservation: true}} }), "a reservation",
		},
		"kept": {
			[]string{(&OutOfMemoryError{Streams: []Holding{{Stream: 3, HeldBytes: 9, UncoveredBytes: 1}}}).Report()},
			[]string{(&OutOfMemoryError{Streams: []Holding{{Stream: 3, HeldBytes: 9}}}).Report()},
			"; 1 B kept until",
		},
		"returned": {
			[]string{(&OutOfMemoryError{Streams: []Holding{{Stream: 3, HeldBytes: 9, UnpassedBytes: 1}}}).Report()},
			[]string{(&OutOfMemoryError{Streams: []Holding{{Stream: 3, HeldBytes: 9}}}).Report()},
			"; 1 B returned",
		},
		"others in the queue": {
			[]string{(&QuotaError{Queued: 2}).figures()}, []string{(&QuotaError{Queued: 1}).figures()}, "and 2 requests waited for it",
		},
		"a queue":         {[]string{(&QuotaError{Queued: 1}).Report()}, []string{(&QuotaError{}).Report()}, "in the queue for the quota: 1 request"},
		"a holder's wait": {deadlock(Holder{Stream: 1, WaitingBytes: 1}), deadlock(Holder{Stream: 1}), "and waits for 1 B"},
		"a suspension":    {deadlock(Holder{Stream: 1, Suspended: true}), deadlock(Holder{Stream: 1}), "is suspended"},
		"a priority":      {wait(Waiter{Priority: 1}), wait(Waiter{}), "priority 1"},
		"a low priority":  {wait(Waiter{Priority: -1}), wait(Waiter{}), "priority -1"},
		"a limit":         {[]string{Quota{LimitBytes: 1}.String()}, []string{Quota{}.String()}, "limit 1 B"},
		"a share":         {[]string{Quota{ShareBytes: 1}.String()}, []string{Quota{}.String()}, "share 1 B"},
	} {
		for i := range test.with {
			assert.Contains(t, test.with[i], test.want, name)
			assert.NotContains(t, test.without[i], test.want, name)
		}
	}
}

// The text of a wait has its place in the queue: the first has none before it.
func TestThePlaceOfAWait(t *testing.T) {
	t.Parallel()
	e := &WaitError{Position: 1, Err: context.Canceled}
	assert.Contains(t, e.Report(), "it was the first in the queue")
	e.Position, e.Ahead = 2, &Waiter{Stream: 9, Bytes: 5}
	assert.Contains(t, e.Report(), "its place in the queue was 2, directly after this request: stream 9 waits for 5 B")
	assert.NotContains(t, e.Report(), "the first")
	assert.NotContains(t, (&WaitError{Err: context.Canceled}).Report(), "queue", "unknown")
}

// The reason of a refusal follows from its figures.
func TestWhyARefusalCame(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		e    OutOfMemoryError
		want string
	}{
		{OutOfMemoryError{MissingBytes: 5, FreeBytes: 4}, "too little is free"},
		{OutOfMemoryError{MissingBytes: 5, FreeBytes: 4, PendingBytes: 4}, "too little is free"},
		{OutOfMemoryError{MissingBytes: 5, FreeBytes: 5}, "not in one range"},
		{OutOfMemoryError{MissingBytes: 5, FreeBytes: 5, PendingBytes: 1}, "has not finished"},
		{OutOfMemoryError{MissingBytes: 5, FreeBytes: 5, Waited: true}, "nobody is left"},
		{OutOfMemoryError{MissingBytes: 5, FreeBytes: 5, Waited: true, Cause: cudadrv.OutOfMemory}, "the driver has no more memory"},
	} {
		assert.Contains(t, test.e.Report(), "why: ")
		assert.Contains(t, test.e.why(), test.want)
	}
}

// The error of a deadlock names the stream of each request that waits, whichever came first.
func TestADeadlockNamesTheStreamsThatWait(t *testing.T) {
	t.Parallel()
	var q quotas
	d := core.Denial{Deadlock: &core.Deadlock{
		Waiters: []admission.Waiter{{ID: 1, Account: 5, Bytes: 10, Age: 2, Blocked: true}, {ID: 2, Account: 6, Bytes: 20, Age: 1, Priority: 3}},
		Clients: map[uint64]core.Client{1: 5, 2: 6}, Refused: 1,
	}}
	assert.Equal(t, []Waiter{{Stream: 5, Bytes: 10, Age: 2, Blocked: true}, {Stream: 6, Bytes: 20, Age: 1, Priority: 3}}, q.deadlockError(d).Waiters)
}

// A job that takes memory from the driver is traced as growth, also if it releases some before.
func TestRegionsOfJobs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		want  string
		verbs []memory.Verb
	}{
		{region.Growth, []memory.Verb{memory.Create, memory.Map, memory.Access}},
		{region.Growth, []memory.Verb{memory.Unmap, memory.Release, memory.Create, memory.Map, memory.Access}},
		{region.Growth, []memory.Verb{memory.FreePlain, memory.AllocPlain}},
		{region.Growth, []memory.Verb{memory.Create}},
		{region.DriverJob, []memory.Verb{memory.Unmap, memory.Map, memory.Access}},
		{region.DriverJob, []memory.Verb{memory.Unmap, memory.Release}},
		{region.DriverJob, []memory.Verb{memory.FreePlain}},
		{region.DriverJob, []memory.Verb{memory.Await}},
	} {
		var ops []memory.Op
		for _, v := range test.verbs {
			ops = append(ops, memory.Op{Verb: v})
		}
		assert.Equal(t, test.want, regionOf(ops), "%v", test.verbs)
	}
}

// Memory that is charged counts in the limit until it is uncharged; a refusal has the client and the figures. Of a closed pool
// there is no queue.
func TestChargesOfMemoryPastThePool(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(8))
	a := h.testClient(1)
	require.NoError(t, h.pool.Charge(t.Context(), 1, 6*page))
	var short *OutOfMemoryError
	require.ErrorAs(t, h.pool.Charge(t.Context(), 1, 4*page), &short)
	assert.EqualValues(t, 1, short.Stream)
	assert.Equal(t, 4*page, short.RequestedBytes)
	_, err := a.get(4)
	require.ErrorAs(t, err, &short)
	assert.Equal(t, [...]int64{6 * page, 8 * page, 6 * page}, [...]int64{short.SharedBytes, short.LimitBytes, short.ReservedBytes})
	h.pool.Uncharge(6 * page)
	a.free(a.must(8))
	q, err := h.pool.Queue(t.Context())
	require.NoError(t, err)
	assert.Empty(t, q.Waiters)
	assert.Empty(t, q.Holders)
	tenant := NewTenant("guest", 1, Quota{})
	h.pool.AddTenants(tenant)
	require.True(t, (*TenantControl)(tenant).Charge(9*page))
	(*TenantControl)(tenant).Hold(9 * page)
	run := a.must(8)
	q, err = h.pool.Queue(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []Holder{{Tenant: "guest", HeldBytes: 9 * page}, {Stream: 1, HeldBytes: 8 * page}}, q.Holders, "also where none waits")
	a.free(run)

	require.NoError(t, h.pool.Close())
	require.ErrorIs(t, h.pool.Charge(t.Context(), 1, page), ErrClosed)
	q, err = h.pool.Queue(t.Context())
	require.ErrorIs(t, err, ErrClosed)
	assert.Zero(t, q)
}

// Memory that was handed over is charged to the stream that has it, as far as its stream holds it; no bytes appear or vanish.
func TestChargesOfHandedMemory(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		handed Handed
		want   []Holding
	}{
		{Handed{1, 2, 1}, []Holding{{Stream: 1, HeldBytes: 9, LiveBytes: 7}, {Stream: 2, HeldBytes: 4, LiveBytes: 4}}},
		{Handed{1, 2, -1}, []Holding{{Stream: 1, HeldBytes: 10, LiveBytes: 8}, {Stream: 2, HeldBytes: 3, LiveBytes: 3}}},
		{Handed{1, 2, 4}, []Holding{{Stream: 1, HeldBytes: 6, LiveBytes: 4}, {Stream: 2, HeldBytes: 7, LiveBytes: 7}}},
		{Handed{1, 3, 4}, []Holding{{Stream: 1, HeldBytes: 6, LiveBytes: 4}, {Stream: 2, HeldBytes: 3, LiveBytes: 3}, {Stream: 3, HeldBytes: 4, LiveBytes: 4}}},
		{Handed{2, 1, 5}, []Holding{{Stream: 1, HeldBytes: 13, LiveBytes: 11}, {Stream: 2}}},
		{Handed{1, 2, 9}, []Holding{{Stream: 1, HeldBytes: 1}, {Stream: 2, HeldBytes: 12, LiveBytes: 12}}},
		{Handed{3, 1, 5}, []Holding{{Stream: 1, HeldBytes: 10, LiveBytes: 8}, {Stream: 2, HeldBytes: 3, LiveBytes: 3}}},
		{Handed{1, 3, 0}, []Holding{{Stream: 1, HeldBytes: 10, LiveBytes: 8}, {Stream: 2, HeldBytes: 3, LiveBytes: 3}}},
	} {
		got := chargeHoldings([]Holding{{Stream: 1, HeldBytes: 10, LiveBytes: 8}, {Stream: 2, HeldBytes: 3, LiveBytes: 3}}, []Handed{test.handed})
		assert.Equal(t, test.want, got, "%+v", test.handed)
		var want []Holder
		for _, h := range test.want {
			want = append(want, Holder{Stream: h.Stream, HeldBytes: h.HeldBytes})
		}
		p := &Pool{handed: func() []Handed { return []Handed{test.handed} }}
		deadlock, _ := errors.AsType[*DeadlockError](p.charged(&DeadlockError{Holders: []Holder{{Stream: 1, HeldBytes: 10}, {Stream: 2, HeldBytes: 3}}}))
		assert.Equal(t, want, deadlock.Holders, "of a deadlock")
		short, _ := errors.AsType[*OutOfMemoryError](p.charged(&OutOfMemoryError{Streams: []Holding{{Stream: 1, HeldBytes: 10, LiveBytes: 8}, {Stream: 2, HeldBytes: 3, LiveBytes: 3}}}))
		assert.Equal(t, test.want, short.Streams, "of a refusal")
		assert.Equal(t, want, ChargeHolders([]Holder{{Stream: 1, HeldBytes: 10}, {Stream: 2, HeldBytes: 3}}, []Handed{test.handed}), "%+v", test.handed)
	}
}

// A stream's counts are part of the device's, and each count is one of its own.
func TestATallyIsPartOfTheDevices(t *testing.T) {
	t.Parallel()
	device, stream := new(Tally), new(Tally)
	stream.Init(device)
	planted := errors.New("planted")
	var want RequestCounts
	for count, note := range map[*uint64]func(){
		&want.OutOfMemoryCount: stream.OutOfMemory,
		&want.RefusedCount:     func() { assert.Same(t, planted, stream.Refuse(planted)) },
		&want.RetryCount:       stream.Retry,
		&want.BadFreeCount:     stream.BadFree,
		&want.EndedWaitCount:   stream.EndWait,
	} {
		*count++
		note()
		assert.Equal(t, want, stream.Counts())
		assert.Equal(t, want, device.Counts())
	}
	device.Retry()
	assert.Equal(t, want, stream.Counts(), "another stream's is not its own")
}
