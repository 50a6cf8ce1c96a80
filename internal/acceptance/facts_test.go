package acceptance_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// errNoList is the error of a list of processes.
var errNoList = errors.New("planned")

// town is a device with a limit of 128 MiB, with two streams and three tenants.
type town struct {
	*house
	a, b               *vram.Stream
	gold, silver, late *vram.Tenant
	gilded, plain      vram.Buffer   // of a: 24 MiB of gold, 15 MiB of nobody
	steel              vram.Buffer   // of b: 36 MiB of silver
	live               []vram.Buffer // to be freed at the end
	began              time.Time
}

func newTown(t *testing.T, machine sim.Config) *town {
	t.Helper()
	w := &town{began: time.Now()}
	w.house = openHouse(t, vram.Config{
		LimitBytes: 128 * mib,
		Processes:  func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) { return nil, errNoList },
	}, machine)
	w.a, w.b = w.stream(), w.stream()
	w.gold, w.silver, w.late = w.tenant("gold", vram.Quota{LimitBytes: 100 * mib}), w.tenant("silver", vram.Quota{}), w.tenant("late", vram.Quota{})
	w.gilded = w.get(t, w.a, vram.Request{Bytes: 24 * mib, Tag: "cache", Tenant: w.gold})
	w.plain = w.get(t, w.a, vram.Request{Bytes: 15 * mib})
	w.steel = w.get(t, w.b, vram.Request{Bytes: 36 * mib, Tenant: w.silver})
	w.live = []vram.Buffer{w.gilded, w.plain, w.steel}
	<-time.After(3 * time.Second) // virtual
	return w
}

func (w *town) get(t *testing.T, s *vram.Stream, want vram.Request) vram.Buffer {
	t.Helper()
	b, err := s.AllocFor(t.Context(), want)
	require.NoError(t, err)
	return b
}

// largest returns the live buffers of the town as an error lists them.
func (w *town) largest() []pool.LiveBuffer {
	age := time.Since(w.began)
	return []pool.LiveBuffer{
		{Stream: 2, Ptr: w.steel.Ptr(), Bytes: 36 * mib, RequestedBytes: 36 * mib, Age: age, Tenant: "silver"},
		{Stream: 1, Ptr: w.gilded.Ptr(), Bytes: 24 * mib, Tag: "cache", RequestedBytes: 24 * mib, Age: age, Tenant: "gold"},
		{Stream: 1, Ptr: w.plain.Ptr(), Bytes: 15 * mib},
	}
}

// inDebt lets requests of gold and of a tenant without buffers wait: both are charged with more than they hold.
func (w *town) inDebt(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	first := waitWithin(ctx, w.a, vram.Request{Bytes: 60 * mib, Tenant: w.gold, Priority: 2})
	waits(t, first)
	second := waitWithin(ctx, w.b, vram.Request{Bytes: 62 * mib, Tenant: w.late, Priority: 1})
	waits(t, second)
	return sync.OnceFunc(func() {
		cancel()
		require.ErrorIs(t, (<-first).err, context.Canceled)
		require.ErrorIs(t, (<-second).err, context.Canceled)
	})
}

// factsOf makes refusals. Each scenario makes one, and returns it with the same one as the program would write it down. Where
// figures may be mistaken for each other they differ: a tenant's charged and held bytes, a request with and without what its
// stream has, free memory with and without what work still uses.
var factsOf = map[string]func(t *testing.T, w *town) (got, want error){
	"too little memory": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		r, err := w.Reserve(t.Context(), 6*mib)
		require.NoError(t, err)
		c := w.adopt()
		kept, used, own := must(t, c, 8*mib), must(t, w.a, 10*mib), must(t, w.b, 4*mib)
		require.NoError(t, w.gpu.Launch(w.a.Handle(), time.Hour))
		freeAll(t, kept, used, own)
		require.NoError(t, w.a.Trim(t.Context()))
		w.a.ExcludeFromWaits(true) // nobody waits for its work
		end := w.inDebt(t)
		defer end()
		_, got = w.b.AllocFor(t.Context(), vram.Request{Bytes: 70 * mib, Tag: "more", Tenant: w.silver})
		w.gpu.Advance(2 * time.Hour)
		r.Release()
		return got, &vram.OutOfMemoryError{
			RequestedBytes: 70 * mib, Stream: 2, Tag: "more", Tenant: "silver", LimitBytes: 128 * mib,
			FreeBytes: 14 * mib, LargestFreeBytes: 10 * mib, PendingBytes: 10 * mib, ReservedBytes: 104 * mib, MissingBytes: 70 * mib,
			Streams: []pool.Holding{
				{Stream: 1, HeldBytes: 40 * mib, LiveBytes: 39 * mib, UnpassedBytes: 10 * mib},
				{Stream: 2, HeldBytes: 36 * mib, LiveBytes: 36 * mib},
				{Stream: 3, HeldBytes: 6 * mib, Reservation: true},
				{Stream: 4, HeldBytes: 8 * mib, UncoveredBytes: 8 * mib},
			},
			Tenants: []pool.Holder{{Tenant: "gold", HeldBytes: 24 * mib}, {Tenant: "silver", HeldBytes: 36 * mib}},
			Largest: w.largest(),
		}
	},
	"a wait for memory": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		defer w.inDebt(t)()
		ctx, cancel := context.WithTimeout(t.Context(), 1003*time.Millisecond)
		defer cancel()
		_, got = w.b.AllocFor(ctx, vram.Request{Bytes: 58 * mib, Tag: "more", Tenant: w.silver, Wait: true})
		return got, &vram.WaitError{
			RequestedBytes: 58 * mib, Waited: 1003 * time.Millisecond, Stream: 2, Tag: "more", Tenant: "silver",
			Holders:  []pool.Holder{{Stream: 1, HeldBytes: 40 * mib}, {Stream: 2, HeldBytes: 36 * mib}},
			Tenants:  []pool.Holder{{Tenant: "silver", HeldBytes: 36 * mib}, {Tenant: "gold", HeldBytes: 24 * mib}},
			Ahead:    &pool.Waiter{Stream: 2, Tenant: "late", Bytes: 62 * mib, Priority: 1, Age: 2},
			Position: 3, Largest: w.largest(), Err: context.DeadlineExceeded,
		}
	},
	"a wait for a quota": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		defer w.inDebt(t)()
		ctx, cancel := context.WithTimeout(t.Context(), 1003*time.Millisecond)
		defer cancel()
		future := w.b.AllocAsync(t.Context(), vram.Request{Bytes: 20 * mib, Tenant: w.gold, Wait: true})
		defer future.Cancel()
		_, got = future.Await(ctx)
		return got, &vram.WaitError{
			RequestedBytes: 20 * mib, Waited: 1003 * time.Millisecond, Stream: 2, Tenant: "gold",
			Holders:  []pool.Holder{{Stream: 1, HeldBytes: 40 * mib}, {Stream: 2, HeldBytes: 36 * mib}},
			Tenants:  []pool.Holder{{Tenant: "silver", HeldBytes: 36 * mib}, {Tenant: "gold", HeldBytes: 24 * mib}},
			Ahead:    &pool.Waiter{Stream: 2, Tenant: "late", Bytes: 62 * mib, Priority: 1, Age: 2},
			Position: 3, Largest: w.largest()[1:2], Err: context.DeadlineExceeded, Pending: true,
			Quota: &vram.QuotaError{
				Tenant: "gold", RequestedBytes: 20 * mib, ChargedBytes: 84 * mib, Quota: vram.Quota{LimitBytes: 100 * mib}, HeldBytes: 24 * mib, Queued: 1,
			},
		}
	},
	"a quota": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		defer w.inDebt(t)()
		future := w.b.AllocAsync(t.Context(), vram.Request{Bytes: 20 * mib, Tenant: w.gold, Wait: true})
		defer future.Cancel()
		synctest.Wait()
		_, got = w.b.AllocFor(t.Context(), vram.Request{Bytes: 18*mib - 1, Tenant: w.gold})
		return got, &vram.QuotaError{
			Tenant: "gold", RequestedBytes: 18 * mib, ChargedBytes: 84 * mib, Quota: vram.Quota{LimitBytes: 100 * mib}, HeldBytes: 24 * mib, Queued: 1,
		}
	},
	"a deadlock": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		w.a.Exclusive()
		w.b.Exclusive()
		require.NoError(t, w.gold.SetQuota(vram.Quota{LimitBytes: 100 * mib, Exclusive: true}))
		require.NoError(t, w.silver.SetQuota(vram.Quota{Exclusive: true}))
		end := w.inDebt(t)
		defer end()
		third := waitFor(w.a, vram.Request{Bytes: 56 * mib})
		waits(t, third)
		ctx, cancel := context.WithCancel(t.Context())
		indebted := waitWithin(ctx, w.a, vram.Request{Bytes: 20 * mib, Tenant: w.gold})
		waits(t, indebted)
		_, got = w.b.AllocFor(t.Context(), vram.Request{Bytes: 54 * mib, Tenant: w.silver, Wait: true})
		cancel()
		require.ErrorIs(t, (<-indebted).err, context.Canceled)
		end()
		freeAll(t, w.plain)
		w.live = []vram.Buffer{w.gilded, w.steel, (<-third).Buffer}
		return got, &vram.DeadlockError{
			RequestedBytes: 54 * mib, LimitBytes: 128 * mib,
			Holders: []pool.Holder{ // all of stream 2 is silver's
				{Stream: 1, HeldBytes: 40 * mib, WaitingBytes: 56 * mib},
				{Tenant: "gold", HeldBytes: 24 * mib, WaitingBytes: 80 * mib},
				{Tenant: "silver", HeldBytes: 36 * mib, WaitingBytes: 54 * mib},
			},
			Waiters: []pool.Waiter{
				{Stream: 1, Tenant: "gold", Bytes: 60 * mib, Priority: 2, Blocked: true, Age: 1},
				{Stream: 2, Tenant: "late", Bytes: 62 * mib, Priority: 1, Age: 2},
				{Stream: 1, Bytes: 56 * mib, Blocked: true, Age: 3},
				{Stream: 1, Tenant: "gold", Bytes: 20 * mib, Blocked: true, ForQuota: true, Age: 4},
				{Stream: 2, Tenant: "silver", Bytes: 54 * mib, Blocked: true, Age: 5},
			},
			Largest: w.largest(),
		}
	},
	"a deadlock for a quota": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		c := w.exclusive()
		w.a.Exclusive()
		w.b.Exclusive()
		gold := vram.Quota{LimitBytes: 100 * mib, ShareBytes: 98 * mib, Exclusive: true}
		require.NoError(t, w.gold.SetQuota(gold))
		require.NoError(t, w.silver.SetQuota(vram.Quota{Exclusive: true}))
		small := must(t, c, 2*mib)
		resume := c.Suspend(w.a)
		ctx, cancel := context.WithCancel(t.Context())
		first := waitWithin(ctx, w.a, vram.Request{Bytes: 60 * mib})
		waits(t, first)
		second := waitWithin(ctx, w.b, vram.Request{Bytes: 62 * mib, Tenant: w.silver, Priority: 1})
		waits(t, second)
		_, got = w.b.AllocFor(t.Context(), vram.Request{Bytes: 80 * mib, Tenant: w.gold, Wait: true})
		resume()
		cancel()
		require.ErrorIs(t, (<-first).err, context.Canceled)
		require.ErrorIs(t, (<-second).err, context.Canceled)
		freeAll(t, small)
		return got, &vram.DeadlockError{
			RequestedBytes: 80 * mib, LimitBytes: 128 * mib,
			Holders: []pool.Holder{
				{Stream: 1, HeldBytes: 40 * mib, WaitingBytes: 60 * mib},
				{Stream: 3, HeldBytes: 2 * mib, Suspended: true},
				{Tenant: "gold", HeldBytes: 24 * mib, WaitingBytes: 80 * mib},
				{Tenant: "silver", HeldBytes: 36 * mib, WaitingBytes: 62 * mib},
			},
			Waiters: []pool.Waiter{
				{Stream: 2, Tenant: "silver", Bytes: 62 * mib, Priority: 1, Blocked: true, Age: 2},
				{Stream: 1, Bytes: 60 * mib, Blocked: true, Age: 1},
				{Stream: 2, Tenant: "gold", Bytes: 80 * mib, Blocked: true, ForQuota: true, Age: 3},
			},
			Largest: append(w.largest(), pool.LiveBuffer{Stream: 3, Ptr: small.Ptr(), Bytes: 2 * mib}),
			Quota:   &vram.QuotaError{Tenant: "gold", RequestedBytes: 80 * mib, ChargedBytes: 24 * mib, Quota: gold, HeldBytes: 24 * mib, Queued: 1},
		}
	},
	"the driver": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		defer w.occupy(4*gib - 120*mib)()
		defer w.inDebt(t)()
		_, got = w.b.AllocFor(t.Context(), vram.Request{Bytes: 50 * mib, Tenant: w.silver})
		require.ErrorIs(t, got, cudadrv.OutOfMemory)
		short, _ := errors.AsType[*vram.OutOfMemoryError](got)
		return got, &vram.OutOfMemoryError{
			RequestedBytes: 50 * mib, Stream: 2, Tenant: "silver", LimitBytes: 128 * mib, DriverBytes: 120 * mib,
			ReservedBytes: 76 * mib, MissingBytes: 50 * mib,
			Streams: []pool.Holding{
				{Stream: 1, HeldBytes: 40 * mib, LiveBytes: 39 * mib},
				{Stream: 2, HeldBytes: 36 * mib, LiveBytes: 36 * mib},
			},
			Tenants: []pool.Holder{{Tenant: "gold", HeldBytes: 24 * mib}, {Tenant: "silver", HeldBytes: 36 * mib}},
			Largest: w.largest(), Cause: short.Cause, ProcessesErr: errNoList,
		}
	},
	"the driver, before a wait for work": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		defer w.occupy(4*gib - 120*mib)()
		used := must(t, w.a, 10*mib)
		require.NoError(t, w.gpu.Launch(w.a.Handle(), time.Hour))
		freeAll(t, used)
		require.NoError(t, w.a.Trim(t.Context()))
		answer := make(chan error, 1)
		go func() {
			_, err := w.b.Alloc(52 * mib)
			answer <- err
		}()
		synctest.Wait()
		defer w.occupy(20 * mib)() // another process takes memory that the driver had
		w.gpu.Advance(2 * time.Hour)
		got = <-answer
		require.ErrorIs(t, got, cudadrv.OutOfMemory)
		short, _ := errors.AsType[*vram.OutOfMemoryError](got)
		return got, &vram.OutOfMemoryError{
			RequestedBytes: 52 * mib, Stream: 2, LimitBytes: 128 * mib, DriverBytes: 120 * mib,
			FreeBytes: 10 * mib, LargestFreeBytes: 10 * mib, ReservedBytes: 86 * mib, MissingBytes: 52 * mib,
			Streams: []pool.Holding{
				{Stream: 1, HeldBytes: 40 * mib, LiveBytes: 39 * mib},
				{Stream: 2, HeldBytes: 36 * mib, LiveBytes: 36 * mib},
			},
			Tenants: []pool.Holder{{Tenant: "gold", HeldBytes: 24 * mib}, {Tenant: "silver", HeldBytes: 36 * mib}},
			Largest: w.largest(), Cause: short.Cause, ProcessesErr: errNoList,
		}
	},
	"a wait that nobody's free can end": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		defer w.occupy(4*gib - 100*mib)()
		freeAll(t, w.live...)
		w.live = nil
		_, got = w.b.AllocFor(t.Context(), vram.Request{Bytes: 110 * mib, Tenant: w.silver, Wait: true})
		free := w.Stats().ReservedBytes // it depends on which stream gives its memory back first how many pages are moved, and lost with the failed growth
		require.Contains(t, []int64{54 * mib, 64 * mib}, free)
		return got, &vram.OutOfMemoryError{
			RequestedBytes: 110 * mib, Stream: 2, Tenant: "silver", LimitBytes: 128 * mib, DriverBytes: 100 * mib, Waited: true,
			FreeBytes: free, LargestFreeBytes: 40 * mib, ReservedBytes: free, MissingBytes: 110 * mib,
			Streams: []pool.Holding{{Stream: 1}, {Stream: 2}}, Largest: []pool.LiveBuffer{},
		}
	},
	"memory ahead of need": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		got = w.Warm(t.Context(), vram.Demand{Bytes: 30 * mib, Count: 2})
		var short *vram.LimitError
		require.ErrorAs(t, got, &short)
		return short, &vram.LimitError{WantedBytes: 60 * mib, LimitBytes: 128 * mib}
	},
	"a leak": func(t *testing.T, w *town) (got, want error) {
		t.Helper()
		want = &vram.InUseError{BufferCount: 3, Bytes: 75 * mib, Buffers: w.largest()}
		w.live = nil
		return w.Close(), want
	},
}

// The facts of a refusal are of its moment, and each is compared. What the program does with one error changes no other.
func TestTheFactsOfRefusals(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, facts := range factsOf {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTown(t, sim.Config{TotalBytes: 4 * gib})
				got, want := facts(t, w)
				assert.Equal(t, want, got)
				look(reflect.ValueOf(want).Elem(), seen)
				synctest.Wait()
				if len(w.live) == 3 && w.live[1] == w.plain {
					time.Sleep(time.Second) //nolint:forbidigo // of virtual time: a list that was made without waiting for turns expires with the next tick
					_, err := w.a.Alloc(127 * mib)
					short, ok := errors.AsType[*vram.OutOfMemoryError](err)
					require.True(t, ok, "%v", err)
					assert.Equal(t, w.largest(), short.Largest, "afterwards")
				}
				freeAll(t, w.live...)
			})
		})
	}
	for path, filled := range seen {
		assert.True(t, filled, "no scenario has a value of %s", path)
	}
}

// look notes which fields of the types of a value have a value.
func look(v reflect.Value, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Elem().Kind() != reflect.Interface {
			look(v.Elem(), seen)
		}
	case reflect.Slice:
		for i := range v.Len() {
			look(v.Index(i), seen)
		}
	case reflect.Struct:
		for field, x := range v.Fields() {
			path := v.Type().Name() + "." + field.Name
			switch {
			case !field.IsExported() || field.Type.Name() == "error":
				continue
			case slices.Contains([]string{"OutOfMemoryError.SharedBytes", "OutOfMemoryError.LimitSource", "OutOfMemoryError.Processes", "Buffer.Allocated"}, path):
				continue // other tests have them
			}
			seen[path] = seen[path] || !x.IsZero()
			look(x, seen)
		}
	default:
	}
}
