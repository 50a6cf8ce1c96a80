package fleet

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

// While an owner joins, notes failures, reserves and releases, goroutines that ask get a reservation with the fence they ask for or none, and
// a failure that was noted or none. Afterwards nothing is reserved.
func TestAnOwnerMeetsThoseWhoAsk(t *testing.T) {
	const asking, rounds, bytes = 3, 100, 2 << 20
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	o := &owned{device: d, joined: make(chan struct{}), grants: map[string]reservation{}}
	noted := errors.New("noted")
	var over atomic.Bool
	var all sync.WaitGroup
	for range asking {
		all.Go(func() {
			for !over.Load() {
				for fence := range int64(3) {
					if r := o.reservation("b", fence); r != nil {
						assert.EqualValues(t, 1, fence)
						assert.EqualValues(t, bytes, r.Bytes())
					}
				}
				if err := o.failure(); err != nil {
					assert.ErrorIs(t, err, noted)
				}
			}
		})
	}
	owner := core.NewOwner(core.Device{}, 1)
	for range rounds {
		o.note(noted)
		first, second := core.Hold{Ticket: "a", Fence: 1, Bytes: bytes}, core.Hold{Ticket: "b", Fence: 1, Bytes: bytes}
		o.carryOut(t.Context(), owner, core.OwnerStep{Reserve: []core.Hold{first, second}})
		assert.NotNil(t, o.reservation("a", 1))
		o.join()
		o.carryOut(t.Context(), owner, core.OwnerStep{Release: []core.Hold{first}})
		assert.Nil(t, o.reservation("a", 1))
		o.releaseAll()
	}
	over.Store(true)
	all.Wait()
	require.NoError(t, o.failure())
	<-o.joined
	assert.Empty(t, o.grants)
	assert.Zero(t, d.Stats().SetAsideBytes)
}

// An owner reads its figures often for a time after a gang has ended, and rarely otherwise.
func TestHowOftenFiguresAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.Equal(t, reportInterval, intervalAfter(time.Time{}), "no gang has ended")
		released := time.Now()
		assert.Equal(t, drainInterval, intervalAfter(released))
		<-time.After(drainTime - 1) // virtual
		assert.Equal(t, drainInterval, intervalAfter(released))
		<-time.After(1)
		assert.Equal(t, reportInterval, intervalAfter(released))
	})
}

// slow is a ledger whose calls last until their context ends, and then until a test lets them go. With leases it makes leases at once, whose
// Close lasts as long.
type slow struct {
	Ledger
	leases bool
	free   chan struct{}
}

func (s slow) lasts(ctx context.Context) error {
	<-ctx.Done()
	<-s.free
	return fmt.Errorf("slow: %w", ctx.Err())
}

func (s slow) Lease(ctx context.Context, _ time.Duration) (Lease, error) {
	if s.leases {
		return slowLease{s.free}, nil
	}
	return nil, s.lasts(ctx)
}

func (s slow) Read(ctx context.Context, _ ...string) (ledger.Snapshot, error) {
	return ledger.Snapshot{}, s.lasts(ctx)
}

type slowLease struct{ free chan struct{} }

func (slowLease) ID() int64             { return 1 }
func (slowLease) Done() <-chan struct{} { return nil }
func (l slowLease) Close() error {
	<-l.free
	return nil
}

// A member that is closed ends the calls that wait in the ledger, and returns after them. Later calls are refused.
func TestCloseMeetsACall(t *testing.T) {
	for name, x := range map[string]struct {
		leases bool
		call   func(m *Member) error
	}{
		"a lease": {false, func(m *Member) error {
			_, err := m.Reserve(context.Background(), Request{Wants: []Want{{Bytes: 1}}})
			return err
		}},
		"a request": {true, func(m *Member) error {
			_, err := m.Reserve(context.Background(), Request{Wants: []Want{{Bytes: 1}}})
			return err
		}},
		"a claim": {false, func(m *Member) error {
			_, err := m.Claim(context.Background(), "a", Ticket{})
			return err
		}},
		"a placement": {false, func(m *Member) error {
			_, err := m.Place(context.Background(), 1, "")
			return err
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := slow{leases: x.leases, free: make(chan struct{})}
			m, err := Join(t.Context(), l)
			require.NoError(t, err, name)
			m.owned = []*owned{{record: core.Device{Name: "a"}}}
			failed, closed := make(chan error, 1), make(chan error, 1)
			go func() { failed <- x.call(m) }()
			synctest.Wait()
			assert.Empty(t, failed, name)
			go func() { closed <- m.Close() }()
			synctest.Wait()
			assert.Empty(t, closed, "%s: the call uses the ledger", name)
			require.ErrorIs(t, x.call(m), ErrClosed, name)
			close(l.free)
			require.NoError(t, <-closed, name)
			require.ErrorIs(t, <-failed, ErrClosed, name)
			require.NoError(t, m.Close(), name)
		})
	}
}

// counted is a context that counts the contexts that were made of it and have not ended.
type counted struct {
	context.Context
	children *atomic.Int64
}

// Value hides the context inside, which would have the children.
func (counted) Value(any) any { return nil }

func (c counted) AfterFunc(run func()) (stop func() bool) {
	c.children.Add(1)
	stopped := context.AfterFunc(c.Context, run)
	return func() bool {
		c.children.Add(-1)
		return stopped()
	}
}

// ended is a lease that has ended.
type ended struct{ Lease }

func (ended) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}
func (ended) Close() error { return nil }

// granted makes a grant of a lease by a ledger.
func granted(m *Member, l Ledger, lease Lease) *Grant {
	requester := core.NewRequester("t", 1, Request{Policy: Pack, Wants: []Want{{Bytes: 1}}}, core.DefaultSettings())
	return m.granted(&gang{ledger: l, lease: lease, requester: requester}, core.RequesterStep{
		Gang: &core.Gang{Ticket: "t"}, Holds: []*core.Hold{{Device: "a", Fence: 1}}, Devices: []*core.Device{{Name: "a"}},
	})
}

// A grant that has ended leaves nothing in its member, also where it is not released.
func TestALostGrantLeavesNothing(t *testing.T) {
	m, err := Join(t.Context(), slow{})
	require.NoError(t, err)
	children := new(atomic.Int64)
	m.running = counted{m.running, children}
	for range 3 {
		grant := granted(m, nil, ended{})
		<-grant.Done()
		require.ErrorIs(t, grant.Err(), ErrLost)
	}
	assert.Zero(t, children.Load())
	for range 3 {
		_, end, err := m.begin(t.Context())
		require.NoError(t, err)
		end()
	}
	assert.Zero(t, children.Load(), "nor do calls")
	require.NoError(t, m.Close())
}

// A grant that is released is not lost, also where the member ends before the goroutine that watches it has seen that.
func TestAReleasedGrantIsNotLost(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := slow{free: make(chan struct{})}
			m, err := Join(t.Context(), l)
			require.NoError(t, err)
			grant := granted(m, l, slowLease{l.free})
			results := make(chan error, 2)
			go func() { results <- grant.Release() }()
			synctest.Wait() // until the read has ended
			assert.Empty(t, results)
			if closes {
				go func() { results <- m.Close() }()
				synctest.Wait()
			}
			close(l.free)
			require.NoError(t, <-results)
			require.NoError(t, grant.Err())
			require.NoError(t, grant.Release())
			require.NoError(t, grant.Err())
			require.NoError(t, m.Close())
		})
	}
}

// Each function, and each method of a nil and of a zero member, grant and request, returns with nil and zero arguments: with a typed error, or
// without a result.
func TestCallsWithNilAndZeroValuesReturn(t *testing.T) {
	var noContext context.Context
	l := slow{}
	var argument *ArgumentError
	refused := func(name string, want, err error) {
		if want == nil {
			assert.True(t, errors.As(err, &argument), "%s: %v", name, err)
		} else {
			assert.ErrorIs(t, err, want, name)
		}
	}
	open, err := Join(t.Context(), l)
	require.NoError(t, err)
	for name, m := range map[string]*Member{"nil": nil, "zero": {}, "open": open} {
		for _, ctx := range []context.Context{noContext, t.Context()} {
			if m == open && ctx != nil {
				continue
			}
			want := ErrNotOpen
			if m == open {
				want = ErrNilContext
			}
			_, err := m.Reserve(ctx, Request{})
			refused(name+" Reserve", want, err)
			_, err = m.Claim(ctx, "", Ticket{})
			refused(name+" Claim", want, err)
			_, err = m.Place(ctx, 0, "")
			refused(name+" Place", want, err)
		}
		if m != open {
			refused(name+" Close", ErrNotOpen, m.Close())
		}
	}
	require.NoError(t, open.Close())
	for name, g := range map[string]*Grant{"nil": nil, "zero": {}} {
		assert.Zero(t, g.Ticket(), name)
		assert.Empty(t, g.Parts(), name)
		<-g.Done()
		refused(name+" Err", ErrNotOpen, g.Err())
		refused(name+" Release", ErrNotOpen, g.Release())
	}
	for name, call := range map[string]func(ctx context.Context, l Ledger) error{
		"Join":  func(ctx context.Context, l Ledger) error { _, err := Join(ctx, l, Device{}); return err },
		"Look":  func(ctx context.Context, l Ledger) error { _, err := Look(ctx, l); return err },
		"Plain": func(ctx context.Context, l Ledger) error { return Plain(ctx, l, core.Device{}) },
	} {
		refused(name, ErrNilContext, call(noContext, nil))
		refused(name, ErrNilContext, call(noContext, l))
		refused(name, nil, call(t.Context(), nil))
	}
	_, err = ParseTicket("")
	refused("ParseTicket", nil, err)
	refused("Plain", nil, Plain(t.Context(), l, core.Device{}))
	assert.Equal(t, "@0", Ticket{}.String())
	require.Error(t, (*Request)(nil).Check())
	require.Error(t, new(Request).Check())
	require.Error(t, (*core.Device)(nil).Check())
	require.Error(t, new(core.Device).Check())
	assert.Equal(t, 4, reflect.TypeFor[*Member]().NumMethod(), "all are called here")
	assert.Equal(t, 5, reflect.TypeFor[*Grant]().NumMethod(), "all are called here")
}
