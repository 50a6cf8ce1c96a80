package fleet

import (
	"context"
	"errors"
	"fmt"
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

// leaseless is a ledger that makes no lease before the context ends.
type leaseless struct{ Ledger }

func (leaseless) Lease(ctx context.Context, _ time.Duration) (Lease, error) {
	<-ctx.Done()
	return nil, fmt.Errorf("no lease: %w", ctx.Err())
}

// A member that is closed while a request waits for its lease ends the request.
func TestCloseMeetsARequestForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := Join(t.Context(), leaseless{})
		require.NoError(t, err)
		failed := make(chan error, 1)
		go func() {
			_, err := m.Reserve(context.Background(), Request{Wants: []Want{{Bytes: 1}}})
			failed <- err
		}()
		synctest.Wait()
		assert.Empty(t, failed)
		require.NoError(t, m.Close())
		require.ErrorIs(t, <-failed, ErrClosed)
	})
}
