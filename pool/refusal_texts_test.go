package pool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pool/core"
)

// A report has each line once and in its order: a reader sees the whole of a refusal.
func TestReportsInFull(t *testing.T) {
	t.Parallel()
	tenants := []Holder{{Tenant: "small", HeldBytes: 1 << 20}, {Tenant: "large", HeldBytes: 3 << 20}}
	short := &OutOfMemoryError{
		RequestedBytes: 8 << 20, MissingBytes: 8 << 20, ReservedBytes: 14 << 20, LimitBytes: 16 << 20, SharedBytes: 1 << 20, DriverBytes: 15 << 20,
		FreeBytes: 2 << 20, LargestFreeBytes: 1 << 20, PendingBytes: 1 << 20, Stream: 1, Tenants: tenants, Cause: errors.New("no more"),
		Streams: []Holding{
			{Stream: 1, HeldBytes: 4 << 20, LiveBytes: 3 << 20, UncoveredBytes: 1 << 20},
			{Stream: 2},
			{Stream: 3, UnpassedBytes: 1 << 20},
			{HeldBytes: 6 << 20, Reservation: true},
		},
	}
	assert.Equal(t, `out of memory: requested 8 MiB on stream 1, of which 8 MiB were not found
why: the driver has no more memory: other programs, or other allocators of this one, have the rest of the GPU's
reserved from the driver: 14 MiB (1 MiB of it shared) of a limit of 16 MiB; the driver has 15 MiB in all
free in the pool: 2 MiB, the longest range 1 MiB, 1 MiB of it in use by unfinished work
holders of memory:
       4 MiB  stream 1: live or in its magazines 3 MiB, free in it 1 MiB; 1 MiB kept until its callers' next request or Trim
         0 B  stream 3: live or in its magazines 0 B, free in it 0 B; 1 MiB returned, in use by unfinished work
       6 MiB  a reservation
of that, in buffers of tenants:
       3 MiB  tenant "large"
       1 MiB  tenant "small"
what would help, the cheapest first:
  Trim on stream 1, which keeps 1 MiB
  the end of stream 3's work, which uses 1 MiB that are free
  releasing a reservation of 6 MiB
  Request.Wait, for frees of the 3 MiB that are live
  5 MiB of the GPU's that others have: the driver refuses
  a LimitBytes higher by at least 4 MiB
the driver's error: no more
`, short.Report())
	stuck := &DeadlockError{
		RequestedBytes: 2 << 20, LimitBytes: 16 << 20, Holders: []Holder{{Stream: 1, HeldBytes: 4 << 20, WaitingBytes: 2 << 20}},
		Waiters: []Waiter{{Stream: 1, Bytes: 2 << 20, Blocked: true}},
	}
	assert.Equal(t, `deadlock: the wait for 2 MiB was refused, since no holder of memory can proceed
who holds memory, of a limit of 16 MiB:
  stream 1 holds 4 MiB and waits for 2 MiB
who waits, in the order in which they would be served:
  stream 1 waits for 2 MiB, blocked
what would help: free what this goroutine holds and begin its step again, so that the others finish; or a higher LimitBytes
`, stuck.Report())
	late := &WaitError{
		RequestedBytes: 2 << 20, Waited: time.Second, Stream: 1, Position: 1, Pending: true, Holders: stuck.Holders, Tenants: tenants, Err: errors.New("too late"),
	}
	assert.Equal(t, `waited 1s for 2 MiB on stream 1: too late
it was the first in the queue
the request stays pending: Await waits for it again, and Cancel ends it
who holds memory:
  stream 1 holds 4 MiB and waits for 2 MiB
of that, in buffers of tenants:
       3 MiB  tenant "large"
       1 MiB  tenant "small"
what would help: frees by the streams above, a later deadline, a higher Priority, or a higher LimitBytes
`, late.Report())
	over := &QuotaError{Tenant: "owner", RequestedBytes: 2 << 20, ChargedBytes: 5 << 20, HeldBytes: 4 << 20, Queued: 1, Quota: Quota{LimitBytes: 6 << 20}}
	assert.Equal(t, `over the quota of tenant "owner": requested 2 MiB of a limit of 6 MiB
charged: 5 MiB, of that 4 MiB in buffers, and 1 MiB in its requests that wait
before it in the queue for the quota: 1 request
what would help: Request.Wait, for frees of the 4 MiB in buffers; or a Quota.LimitBytes of at least 7 MiB
Device.LiveBuffers lists the tenant's buffers
`, over.Report())
}

// A refusal names the largest holders, of equal ones the first stream, in whichever order the pool listed them, and sums up the others.
func TestARefusalNamesTheLargestHolders(t *testing.T) {
	t.Parallel()
	e := &OutOfMemoryError{Streams: []Holding{
		{Stream: 5, HeldBytes: 2 << 20},
		{Stream: 3, HeldBytes: 2 << 20},
		{Stream: 4},
		{Stream: 1, HeldBytes: 1 << 20},
		{Stream: 2, HeldBytes: 2 << 20},
		{Stream: 6, HeldBytes: 3 << 20},
		{Stream: 7, HeldBytes: 1 << 20},
	}}
	for range e.Streams {
		var b strings.Builder
		e.describeHolders(&b)
		var want strings.Builder
		for i, stream := range []int{6, 2, 3, 5, 1, 7}[:maxHolders] {
			fmt.Fprintf(&want, "; stream %d holds %d MiB, 0 B live", stream, []int{3, 2, 2, 2, 1, 1}[i])
		}
		assert.Contains(t, b.String(), want.String())
		assert.Contains(t, b.String(), fmt.Sprintf("; %d more hold ", 6-maxHolders))
		e.Streams = append(e.Streams[1:], e.Streams[0])
	}
}

// A refusal says how many holders it does not name, and nothing where it names all.
func TestARefusalCountsTheHoldersThatItLeavesOut(t *testing.T) {
	t.Parallel()
	for count := range maxHolders + 3 {
		e := &OutOfMemoryError{}
		for i := range count {
			e.Streams = append(e.Streams, Holding{Stream: uint32(i), HeldBytes: 1 << 20})
		}
		var b strings.Builder
		e.describeHolders(&b)
		assert.Equal(t, min(count, maxHolders), strings.Count(b.String(), "; stream "))
		if left := count - maxHolders; left > 0 {
			assert.Contains(t, b.String(), fmt.Sprintf("; %d more hold %d MiB", left, left))
		} else {
			assert.NotContains(t, b.String(), "more")
		}
	}
}

// A request that is withdrawn leaves the queue for its quota, and no other does. Those that are left are tried.
func TestWhoLeavesTheQueueForAQuota(t *testing.T) {
	t.Parallel()
	owner, other := NewTenant("owner", 1, Quota{}), NewTenant("other", 2, Quota{})
	var q quotas
	names := func() (all [][2]uint64) {
		for _, x := range q.queued {
			all = append(all, [2]uint64{uint64(x.client), x.token})
		}
		return all
	}
	fill := func(charge charger) {
		q = quotas{}
		for _, name := range [][2]uint64{{1, 1}, {2, 1}, {1, 2}} {
			q.queued = append(q.queued, queued{charger: charge, client: core.Client(name[0]), token: name[1]})
		}
		owner.queued.Store(3)
	}
	never := func(queued) { assert.Fail(t, "nobody is charged") }
	for _, name := range [][2]uint64{{1, 1}, {2, 1}, {1, 2}, {2, 2}, {3, 1}} {
		fill(refusedCharger{owner})
		want := slices.DeleteFunc(names(), func(x [2]uint64) bool { return x == name })
		q.unqueue(core.Client(name[0]), name[1], never)
		assert.Equal(t, want, names())
		assert.EqualValues(t, len(want), owner.queued.Load())
		assert.Zero(t, other.queued.Load())
	}
	fill(&countingCharger{tenant: owner})
	var served [][2]uint64
	q.unqueue(1, 1, func(x queued) { served = append(served, [2]uint64{uint64(x.client), x.token}) })
	assert.Equal(t, [][2]uint64{{2, 1}, {1, 2}}, served)
	assert.Empty(t, names())
}

// A request that leaves the queue lets later ones of its tenant be charged, also if others wait before it.
func TestWhoLeavesTheQueueAfterAnother(t *testing.T) {
	t.Parallel()
	owner, other := NewTenant("owner", 1, Quota{}), NewTenant("other", 2, Quota{})
	q := quotas{queued: []queued{
		{charger: refusedCharger{other}, client: 1, token: 1},
		{charger: refusedCharger{owner}, client: 1, token: 2},
		{charger: &countingCharger{tenant: owner}, client: 1, token: 3},
		{charger: &countingCharger{tenant: other}, client: 1, token: 4},
	}}
	owner.queued.Store(2)
	other.queued.Store(2)
	var served []uint64
	q.unqueue(1, 2, func(x queued) { served = append(served, x.token) })
	assert.Equal(t, []uint64{3}, served)
	assert.Len(t, q.queued, 2)
	assert.Zero(t, owner.queued.Load())
	assert.EqualValues(t, 2, other.queued.Load())
}

// refusedCharger is a request that its quota never allows.
type refusedCharger struct{ tenant *Tenant }

func (c refusedCharger) Tenant() *Tenant { return c.tenant }

func (refusedCharger) Take(func(int64) bool) (taken, gone bool) { return false, false }

// A quota without a negative bound, and with a share that the limit allows, is valid, and any other is refused by its field.
func TestQuotasThatAreValid(t *testing.T) {
	t.Parallel()
	for q, field := range map[Quota]string{
		{}:                               "",
		{LimitBytes: 5}:                  "",
		{ShareBytes: 5}:                  "",
		{LimitBytes: 5, ShareBytes: 5}:   "",
		{LimitBytes: 5, ShareBytes: 6}:   "ShareBytes",
		{LimitBytes: -1}:                 "LimitBytes",
		{ShareBytes: -1}:                 "ShareBytes",
		{LimitBytes: -1, ShareBytes: -1}: "LimitBytes",
	} {
		tenant := NewTenant("owner", 1, Quota{LimitBytes: 1})
		for _, err := range []error{CheckQuota(q), tenant.SetQuota(q)} {
			var bounds *QuotaBoundsError
			if field == "" {
				require.NoError(t, err, "%+v", q)
				continue
			}
			require.ErrorAs(t, err, &bounds, "%+v", q)
			assert.Equal(t, field, bounds.Field)
			assert.Equal(t, q.LimitBytes < 0 || q.ShareBytes < 0, errors.Is(err, ErrNegative))
		}
		want := q
		if field != "" {
			want = Quota{LimitBytes: 1}
		}
		assert.Equal(t, want, tenant.Stats().Quota)
		require.NoError(t, tenant.Close())
		require.ErrorIs(t, tenant.SetQuota(Quota{}), ErrTenantClosed)
	}
	require.ErrorIs(t, new(Tenant).SetQuota(Quota{}), ErrNotOpen)
	require.ErrorIs(t, (*Tenant)(nil).Close(), ErrNotOpen)
}

// The longest of durations that many goroutines note is the longest of all.
func TestTheLongestOfManyGoroutines(t *testing.T) {
	t.Parallel()
	for range 20 {
		var h durations
		var group sync.WaitGroup
		for i := range 8 {
			group.Go(func() {
				for n := range 100 {
					h.NoteWait(time.Duration(n*8 + i))
				}
			})
		}
		group.Wait()
		require.Equal(t, time.Duration(99*8+7), h.longest())
		require.EqualValues(t, 800, h.histogram().Counts[0])
	}
}

// Each kind of remedy has a text that leads back to it.
func TestTextsOfRemediesLeadBack(t *testing.T) {
	t.Parallel()
	for kind := RaiseLimit; kind <= RetryAfterFrees; kind++ {
		text, err := kind.MarshalText()
		require.NoError(t, err)
		var again RemedyKind
		require.NoError(t, again.UnmarshalText(text))
		assert.Equal(t, kind, again)
	}
	require.Error(t, new(RemedyKind).UnmarshalText([]byte("wait and see")))
}

// The text of a tenant is its string.
func TestTextsAreTheStrings(t *testing.T) {
	t.Parallel()
	tenant := NewTenant("owner", 1, Quota{LimitBytes: 1 << 20})
	text, err := tenant.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, tenant.String(), string(text))
	assert.Contains(t, string(text), "owner")
}
