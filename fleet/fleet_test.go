//go:build linux

package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/directory"
	"github.com/go-vram/vram/fleet/ledger"
)

const mib = 1 << 20

// opened opens a ledger in a folder.
func opened(t *testing.T, path string) *directory.Ledger {
	t.Helper()
	l, err := directory.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// device opens a simulated device of so many MiB.
func device(t *testing.T, mibs int64) *vram.Device {
	t.Helper()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: 2 * mibs * mib}), LimitBytes: mibs * mib})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func joined(t *testing.T, l fleet.Ledger, devices ...fleet.Device) *fleet.Member {
	t.Helper()
	m, err := fleet.Join(t.Context(), l, devices...)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	return m
}

// timed returns a context for something that must not take long: a minute is a failure.
func timed(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// until waits until a condition of the ledger holds.
func until(t *testing.T, l fleet.Ledger, what string, holds func(fleet.Status) bool) fleet.Status {
	t.Helper()
	ctx := timed(t)
	for {
		s, err := fleet.Look(ctx, l)
		require.NoError(t, err, what)
		if holds(s) {
			return s
		}
		require.NoError(t, l.Wait(ctx, s.Revision), what)
	}
}

func heldBytes(s fleet.Status) (held int64) {
	for _, d := range s.Devices {
		held += d.HeldBytes
	}
	return held
}

// A gang gets reservations on the devices of two members, which draw them down; others wait until it ends.
func TestAGangOnTwoMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		a, b := device(t, 64), device(t, 64)
		here := joined(t, patiently(opened(t, path)), fleet.Device{Device: a, Name: "a"})
		there := joined(t, patiently(opened(t, path)), fleet.Device{Device: b, Name: "b", Labels: map[string]string{"kind": "far"}})
		ctx := timed(t)
		far := map[string]string{"kind": "far"}
		grant, err := here.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 40 * mib, Device: "a"}, {Bytes: 40*mib - 1, Labels: far}}})
		require.NoError(t, err)
		parts := grant.Parts()
		assert.Equal(t, []string{"a", "b"}, []string{parts[0].Device, parts[1].Device})
		assert.Equal(t, int64(40*mib), parts[1].Bytes, "whole pages")
		require.NotNil(t, parts[0].Reservation)
		assert.Nil(t, parts[1].Reservation, "it is in the owner's process")

		ticket, err := fleet.ParseTicket(grant.Ticket().String())
		require.NoError(t, err)
		r, err := there.Claim(ctx, "b", ticket)
		require.NoError(t, err)
		stream, err := b.NewStream()
		require.NoError(t, err)
		buffer, err := stream.AllocFor(ctx, vram.Request{Bytes: 40 * mib, Reservation: r})
		require.NoError(t, err)
		_, err = stream.Alloc(40 * mib)
		assert.ErrorIs(t, err, vram.ErrOutOfMemory)
		require.NoError(t, buffer.Free())
		require.NoError(t, stream.Close())

		var waited *fleet.WaitError
		for within := 200 * time.Millisecond; waited == nil || len(waited.Verdict.Holders) == 0; within *= 2 { // until it has looked at the books
			require.NoError(t, ctx.Err())
			short, cancel := context.WithTimeout(ctx, within)
			_, err = there.Reserve(short, fleet.Request{Wants: []fleet.Want{{Bytes: 30 * mib, Device: "a"}}})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			errors.As(err, &waited)
		}
		assert.Equal(t, []string{ticket.Name}, waited.Verdict.Holders)
		assert.Contains(t, err.Error(), ticket.Name)

		require.NoError(t, grant.Release())
		assert.NoError(t, grant.Err())
		_, err = there.Claim(ctx, "b", ticket)
		assert.ErrorIs(t, err, fleet.ErrFenced)
		next, err := there.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib, Device: "a"}}})
		require.NoError(t, err)
		require.NoError(t, next.Release())
		until(t, opened(t, path), "all comes back", func(s fleet.Status) bool { return heldBytes(s) == 0 && len(s.Holding) == 0 })
		for _, d := range []*vram.Device{a, b} {
			for d.Stats().SetAsideBytes > 0 {
				require.NoError(t, ctx.Err())
				<-time.After(time.Millisecond) // virtual
			}
		}
	})
}

// A member that leaves closes the grants on its devices, and its own.
func TestALostDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		owner := joined(t, patiently(opened(t, path)), fleet.Device{Device: device(t, 64), Name: "a"})
		user := joined(t, patiently(opened(t, path)))
		ctx := timed(t)
		grant, err := user.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: mib}}})
		require.NoError(t, err)
		own, err := owner.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: mib}}})
		require.NoError(t, err)
		require.NoError(t, owner.Close())
		for _, g := range []*fleet.Grant{grant, own} {
			<-g.Done()
			assert.ErrorIs(t, g.Err(), fleet.ErrLost)
			assert.NoError(t, g.Release())
		}
		_, err = owner.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: mib}}})
		assert.ErrorIs(t, err, fleet.ErrClosed)
		_, err = owner.Claim(ctx, "a", grant.Ticket())
		assert.ErrorIs(t, err, fleet.ErrClosed)
	})
}

// Memory that the process uses itself is not offered, and offered again when it is freed.
func TestMemoryInUseIsNotOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := opened(t, t.TempDir())
		d := device(t, 64)
		stream, err := d.NewStream()
		require.NoError(t, err)
		buffer, err := stream.Alloc(32 * mib)
		require.NoError(t, err)
		m := joined(t, l, fleet.Device{Device: d, Name: "a"})
		s, err := fleet.Look(t.Context(), l)
		require.NoError(t, err)
		assert.Equal(t, int64(32*mib), s.Devices[0].OfferBytes)
		ctx := timed(t)
		small, err := m.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 30 * mib}}})
		require.NoError(t, err)
		inUse, err := stream.AllocFor(ctx, vram.Request{Bytes: 30 * mib, Reservation: small.Parts()[0].Reservation})
		require.NoError(t, err)
		require.NoError(t, small.Release())
		until(t, l, "the drawn memory is not offered", func(s fleet.Status) bool { return s.Devices[0].OfferBytes <= 2*mib })
		<-time.After(3 * time.Second) // virtual: the ledger is quiet
		freed := time.Now()
		require.NoError(t, buffer.Free())
		require.NoError(t, inUse.Free())
		until(t, l, "the drawn memory is offered again", func(s fleet.Status) bool { return s.Devices[0].OfferBytes == 64*mib })
		assert.LessOrEqual(t, time.Since(freed), 300*time.Millisecond)
		grant, err := m.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib}}})
		require.NoError(t, err)
		require.NoError(t, grant.Release())
		require.NoError(t, stream.Close())
	})
}

// A device offers no more than its GPU has free for it, and nothing where all of it is in use; its load has the free bytes that are left.
func TestTheFiguresOfADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		machine := sim.New(sim.Config{TotalBytes: 64 * mib})
		d, err := vram.Open(vram.Config{Driver: machine, LimitBytes: 64 * mib})
		require.NoError(t, err)
		outside, err := machine.Open(0)
		require.NoError(t, err)
		others, err := outside.MemAlloc(16 * mib)
		require.NoError(t, err)
		stream, err := d.NewStream()
		require.NoError(t, err)
		for inUse, want := range map[int64]int64{0: 48 * mib, 24 * mib: 24 * mib, 48 * mib: 0} {
			var buffer vram.Buffer
			if inUse > 0 {
				buffer, err = stream.Alloc(inUse)
				require.NoError(t, err)
			}
			l := opened(t, t.TempDir())
			m := joined(t, l, fleet.Device{Device: d, Name: "a"})
			s := until(t, l, "the load is known", func(s fleet.Status) bool { return s.Devices[0].Owned })
			assert.Equal(t, want, s.Devices[0].Load.FreeBytes, "%d bytes are in use", inUse)
			assert.Equal(t, want, s.Devices[0].OfferBytes, "%d bytes are in use", inUse)
			require.NoError(t, m.Close())
			if inUse > 0 {
				require.NoError(t, buffer.Free())
			}
		}
		require.NoError(t, outside.MemFree(others))
		require.NoError(t, outside.Close())
		require.NoError(t, stream.Close())
		require.NoError(t, d.Close())
	})
}

// A placement of a ledger that cannot be read is an error.
func TestAPlacementWithoutItsLedger(t *testing.T) {
	l := faulty{opened(t, t.TempDir()), new(atomic.Pointer[error])}
	m := joined(t, l)
	failure := errors.New("the ledger fails")
	l.failure.Store(&failure)
	_, err := m.Place(t.Context(), 1, "")
	require.ErrorIs(t, err, failure)
	l.failure.Store(nil)
	_, err = m.Place(t.Context(), 1, "")
	require.ErrorIs(t, err, fleet.ErrNoDevice)
}

// patient is a ledger whose waits return only when a pair of their keys has changed since it was read.
type patient struct {
	fleet.Ledger
	lock *sync.Mutex
	read map[string][]ledger.Pair
}

func patiently(l fleet.Ledger) fleet.Ledger {
	return patient{l, new(sync.Mutex), map[string][]ledger.Pair{}}
}

func (p patient) Read(ctx context.Context, keys ...string) (ledger.Snapshot, error) {
	s, err := p.Ledger.Read(ctx, keys...)
	p.lock.Lock()
	defer p.lock.Unlock()
	p.read[fmt.Sprint(s.Revision, keys)] = s.Pairs
	return s, err
}

func (p patient) Wait(ctx context.Context, after int64, keys ...string) error {
	p.lock.Lock()
	before := p.read[fmt.Sprint(after, keys)]
	p.lock.Unlock()
	for {
		if err := p.Ledger.Wait(ctx, after, keys...); err != nil {
			return err
		}
		s, err := p.Ledger.Read(ctx, keys...)
		if err != nil || !reflect.DeepEqual(before, s.Pairs) {
			return err
		}
		after = s.Revision
	}
}

// An owner reports its device's figures while nothing changes in the ledger.
func TestFiguresAreReportedInAQuietFleet(t *testing.T) {
	l := opened(t, t.TempDir())
	d := device(t, 64)
	joined(t, patiently(l), fleet.Device{Device: d, Name: "a"})
	stream, err := d.NewStream()
	require.NoError(t, err)
	buffer, err := stream.Alloc(32 * mib)
	require.NoError(t, err)
	until(t, l, "the memory is in use", func(s fleet.Status) bool { return s.Devices[0].OfferBytes == 32*mib })
	require.NoError(t, buffer.Free())
	until(t, l, "the memory is free", func(s fleet.Status) bool { return s.Devices[0].OfferBytes == 64*mib })
	require.NoError(t, stream.Close())
}

// faulty is a ledger that fails for a time.
type faulty struct {
	fleet.Ledger
	failure *atomic.Pointer[error] // nil: it serves
}

func (f faulty) now() error {
	if err := f.failure.Load(); err != nil {
		return *err
	}
	return nil
}

func (f faulty) Read(ctx context.Context, keys ...string) (ledger.Snapshot, error) {
	if err := f.now(); err != nil {
		return ledger.Snapshot{}, err
	}
	return f.Ledger.Read(ctx, keys...)
}

func (f faulty) Commit(ctx context.Context, t ledger.Transaction) (int64, error) {
	if err := f.now(); err != nil {
		return 0, err
	}
	return f.Ledger.Commit(ctx, t)
}

func (f faulty) Wait(ctx context.Context, after int64, keys ...string) error {
	return errors.Join(f.Ledger.Wait(ctx, after, keys...), f.now())
}

// A request is served soon after a ledger has begun to serve again, however long it has failed.
func TestALedgerThatServesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		l := faulty{opened(t, path), new(atomic.Pointer[error])}
		m := joined(t, l, fleet.Device{Device: device(t, 64), Name: "a"})
		failure := errors.New("the ledger fails")
		for i := range 50 {
			l.failure.Store(&failure)
			begin := make(chan time.Time, 1)
			time.AfterFunc(time.Minute+time.Duration(i)*17*time.Millisecond, func() {
				l.failure.Store(nil)
				begin <- time.Now()
			})
			grant, err := m.Reserve(t.Context(), fleet.Request{Wants: []fleet.Want{{Bytes: 40 * mib, Device: "a"}}})
			require.NoError(t, err)
			assert.Less(t, time.Since(<-begin), 400*time.Millisecond)
			require.NoError(t, grant.Release())
		}
	})
}

// A gang that loses one of its devices gives the other back at once.
func TestAGangThatLosesADevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		leaving := joined(t, patiently(opened(t, path)), fleet.Device{Device: device(t, 64), Name: "a"})
		staying := device(t, 64)
		joined(t, patiently(opened(t, path)), fleet.Device{Device: staying, Name: "b"})
		user := joined(t, patiently(opened(t, path)))
		grant, err := user.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: mib, Device: "a"}, {Bytes: 40 * mib, Device: "b"}}})
		require.NoError(t, err)
		require.NoError(t, leaving.Close())
		<-grant.Done()
		require.ErrorIs(t, grant.Err(), fleet.ErrLost)
		until(t, opened(t, path), "the other device is free", func(s fleet.Status) bool { return heldBytes(s) == 0 && len(s.Holding) == 0 })
		for ctx := timed(t); staying.Stats().SetAsideBytes > 0; <-time.After(time.Millisecond) { // virtual
			require.NoError(t, ctx.Err())
		}
		require.NoError(t, grant.Release())
	})
}

// A grant is lost where its ledger is closed, and is not where that is closed after Release.
func TestALedgerThatIsClosedBeforeAGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		joined(t, patiently(opened(t, path)), fleet.Device{Device: device(t, 64), Name: "a"})
		for _, released := range []bool{false, true} {
			l := opened(t, path)
			grant, err := joined(t, l).Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: 40 * mib}}})
			require.NoError(t, err)
			if released {
				require.NoError(t, grant.Release())
			}
			synctest.Wait() // it waits in the ledger
			require.NoError(t, l.Close())
			<-grant.Done()
			if released {
				require.NoError(t, grant.Err())
			} else {
				require.ErrorIs(t, grant.Err(), fleet.ErrLost)
			}
			require.NoError(t, grant.Release())
		}
	})
}

// A gang that waits, and that somebody deletes, is lost.
func TestAGangThatIsDeletedIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		l, user := opened(t, path), joined(t, patiently(opened(t, path)))
		failed := make(chan error, 1)
		go func() {
			_, err := user.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: mib}}})
			failed <- err
		}()
		s := until(t, l, "it waits", func(s fleet.Status) bool { return len(s.Waiting) == 1 })
		synctest.Wait() // it has seen that
		_, err := l.Commit(timed(t), ledger.Transaction{Delete: []string{"gang/" + s.Waiting[0].Ticket}})
		require.NoError(t, err)
		require.ErrorIs(t, <-failed, fleet.ErrLost)
		until(t, l, "nothing is left", func(s fleet.Status) bool { return len(s.Waiting) == 0 })
	})
}

// doubtful is a ledger whose leases a test ends, and whose answers for one hold have a later fence.
type doubtful struct {
	fleet.Ledger
	leases chan *mortal
	later  atomic.Int64
}

// mortal is a lease that a test ends.
type mortal struct {
	fleet.Lease
	done chan struct{}
}

func (m *mortal) Done() <-chan struct{} { return m.done }

func (d *doubtful) Lease(ctx context.Context, most time.Duration) (fleet.Lease, error) {
	lease, err := d.Ledger.Lease(ctx, most)
	if err != nil {
		return nil, err
	}
	m := &mortal{lease, make(chan struct{})}
	d.leases <- m
	return m, nil
}

func (d *doubtful) Read(ctx context.Context, keys ...string) (ledger.Snapshot, error) {
	s, err := d.Ledger.Read(ctx, keys...)
	if len(keys) == 1 && len(s.Pairs) == 1 { // a claim
		s.Pairs = []ledger.Pair{s.Pairs[0]}
		s.Pairs[0].Mod += d.later.Load()
	}
	return s, err
}

// A claim needs the fence that both the ledger and the owner have. An owner whose lease ends gives the memory back, and joins again; the
// grant is lost.
func TestAnOwnerWhoseLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, ctx := t.TempDir(), timed(t)
		l, d := &doubtful{Ledger: opened(t, path), leases: make(chan *mortal, 10)}, device(t, 64)
		owner := joined(t, l, fleet.Device{Device: d, Name: "a"})
		grant, err := joined(t, opened(t, path)).Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 40 * mib}}})
		require.NoError(t, err)
		ticket := grant.Ticket()
		for _, x := range []struct{ asked, ledger int64 }{{1, 0}, {-1, 0}, {0, 1}, {1, 1}} {
			l.later.Store(x.ledger)
			_, err = owner.Claim(ctx, "a", fleet.Ticket{Name: ticket.Name, Fence: ticket.Fence + x.asked})
			require.ErrorIs(t, err, fleet.ErrFenced, "%+v", x)
		}
		l.later.Store(0)
		_, err = owner.Claim(ctx, "a", ticket)
		require.NoError(t, err)
		assert.Equal(t, int64(40*mib), d.Stats().SetAsideBytes)

		close((<-l.leases).done)
		<-grant.Done()
		require.ErrorIs(t, grant.Err(), fleet.ErrLost)
		for ; d.Stats().SetAsideBytes > 0; <-time.After(time.Millisecond) { // virtual
			require.NoError(t, ctx.Err())
		}
		require.NoError(t, grant.Release())
		next, err := owner.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib, Device: "a"}}})
		require.NoError(t, err)
		require.NoError(t, next.Release())
	})
}

// An error of a wait has the last failure of the ledger; a conflict with others is none. Since and Holder are filled where they are empty.
func TestWhatAWaitTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		l := conflicting{opened(t, path), new(atomic.Pointer[error])}
		m := joined(t, l)
		failure := errors.New("the ledger fails")
		passes := errors.New("the ledger fails for half a second")
		for _, with := range []error{ledger.ErrConflict, failure, passes} {
			l.failure.Store(&with)
			if errors.Is(with, passes) {
				time.AfterFunc(time.Second/2, func() { l.failure.Store(nil) })
			}
			short, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := m.Reserve(short, fleet.Request{Wants: []fleet.Want{{Bytes: 1}}})
			cancel()
			var waited *fleet.WaitError
			require.True(t, errors.As(err, &waited), "%v", err)
			if errors.Is(with, failure) {
				assert.ErrorIs(t, waited.Ledger, failure)
			} else {
				assert.NoError(t, waited.Ledger)
			}
		}
		l.failure.Store(nil)
		require.NoError(t, fleet.Plain(t.Context(), l, core.Device{Name: "a", OfferBytes: 10}))
		for since, want := range map[int64]int64{7: 7, 0: time.Now().Unix()} {
			grant, err := m.Reserve(t.Context(), fleet.Request{Wants: []fleet.Want{{Bytes: 1}}, Since: since})
			require.NoError(t, err)
			s, err := fleet.Look(t.Context(), l)
			require.NoError(t, err)
			require.Len(t, s.Holding, 1)
			assert.InDelta(t, want, s.Holding[0].Since.Unix(), 1)
			assert.NotEmpty(t, s.Holding[0].Holder)
			require.NoError(t, grant.Release())
			until(t, l, "it comes back", func(s fleet.Status) bool { return len(s.Holding) == 0 })
		}
	})
}

// conflicting is a ledger whose transactions fail for a time.
type conflicting struct {
	fleet.Ledger
	failure *atomic.Pointer[error]
}

func (c conflicting) Commit(ctx context.Context, t ledger.Transaction) (int64, error) {
	if err := c.failure.Load(); err != nil {
		return 0, *err
	}
	return c.Ledger.Commit(ctx, t)
}

// Two members cannot have a device of one name: the second waits until the first has left.
func TestANameIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		first := joined(t, opened(t, path), fleet.Device{Device: device(t, 64), Name: "a"})
		second := device(t, 64)
		ctx := timed(t)
		for within := 200 * time.Millisecond; ; within *= 2 { // until it has looked at the books
			require.NoError(t, ctx.Err())
			short, cancel := context.WithTimeout(ctx, within)
			_, err := fleet.Join(short, opened(t, path), fleet.Device{Device: second, Name: "a"})
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if strings.Contains(err.Error(), "of this name") {
				break
			}
		}
		require.NoError(t, first.Close())
		joined(t, opened(t, path), fleet.Device{Device: second, Name: "a"})
	})
}

// Arguments are checked before anything is written.
func TestArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := opened(t, t.TempDir())
		d := device(t, 64)
		var wrong *fleet.ArgumentError
		for _, devices := range [][]fleet.Device{
			{{Device: d, Name: "a/b"}}, {{Device: d, LimitBytes: -1}}, {{Device: d, Name: "a"}, {Device: d, Name: "a"}},
		} {
			_, err := fleet.Join(t.Context(), l, devices...)
			assert.True(t, errors.As(err, &wrong), "%v", err)
		}
		_, err := fleet.Join(t.Context(), l, fleet.Device{})
		assert.ErrorIs(t, err, vram.ErrNotOpen)
		m := joined(t, l)
		_, err = m.Reserve(t.Context(), fleet.Request{})
		assert.True(t, errors.As(err, &wrong), "%v", err)
		_, err = m.Place(t.Context(), 0, "")
		assert.True(t, errors.As(err, &wrong), "%v", err)
		_, err = m.Place(t.Context(), 1, "")
		assert.ErrorIs(t, err, fleet.ErrNoDevice)
		_, err = m.Claim(t.Context(), "a", fleet.Ticket{})
		assert.True(t, errors.As(err, &wrong), "%v", err)
		assert.True(t, errors.As(fleet.Plain(t.Context(), l, core.Device{}), &wrong))
		_, err = fleet.ParseTicket("a")
		assert.True(t, errors.As(err, &wrong), "%v", err)
	})
}

// Devices without an owner are counted alone, and their offer can change.
func TestPlainDevices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := opened(t, t.TempDir())
		ctx := timed(t)
		require.NoError(t, fleet.Plain(ctx, l, core.Device{Name: "a", Host: "h", Ordinal: 1, OfferBytes: 10}))
		require.NoError(t, fleet.Plain(ctx, l, core.Device{Name: "a", Host: "h", Ordinal: 1, OfferBytes: 8}))
		m := joined(t, l)
		grant, err := m.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 8}}, Holder: "me"})
		require.NoError(t, err)
		assert.Equal(t, []fleet.Part{{Device: "a", Host: "h", Ordinal: 1, Bytes: 8}}, grant.Parts())
		p, err := m.Place(ctx, 8, "")
		require.NoError(t, err)
		assert.Equal(t, fleet.Placement{Device: "a", Host: "h", Ordinal: 1}, p)
		s, err := fleet.Look(ctx, l)
		require.NoError(t, err)
		assert.Equal(t, "me", s.Holding[0].Holder)
		assert.Equal(t, []fleet.DeviceStatus{{Name: "a", Host: "h", Ordinal: 1, OfferBytes: 8, HeldBytes: 8}}, s.Devices)
		require.NoError(t, grant.Release())
		require.NoError(t, grant.Release())
	})
}

// Goroutines of four members reserve on three devices: every request gets one result, none beyond the memory, and all comes back.
func TestGoroutinesReserve(t *testing.T) {
	path := t.TempDir()
	ctx := timed(t)
	results := make(chan error)
	const members, each = 4, 8
	for i := range members {
		var own []fleet.Device
		if i < 3 {
			own = append(own, fleet.Device{Device: device(t, 64), Name: fmt.Sprint("d", i)})
		}
		m := joined(t, patiently(opened(t, path)), own...)
		for range 2 {
			go func() {
				for n := range each / 2 {
					grant, err := m.Reserve(ctx, fleet.Request{Priority: n % 2, Policy: fleet.Spread, Wants: []fleet.Want{{Bytes: 40 * mib}, {Bytes: int64(n+1) * 10 * mib}}})
					if err == nil {
						err = errors.Join(grant.Err(), grant.Release())
					}
					results <- err
				}
			}()
		}
	}
	for range members * each {
		assert.NoError(t, <-results)
	}
	until(t, opened(t, path), "all comes back", func(s fleet.Status) bool { return heldBytes(s) == 0 && len(s.Holding)+len(s.Waiting) == 0 })
}
