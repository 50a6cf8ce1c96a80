//go:build linux

package etcd

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

// A cluster whose database is full refuses changes that would grow it, and loses nothing: grants live, are renewed and can be released. After an
// operator has made room, the gang that waited is granted.
func TestAFullDatabase(t *testing.T) {
	t.Parallel()
	const quota = 2 * mib
	c := startWith(t, 1, quota)
	ctx := timed(t)
	m := c.join("m0", leaseTime)
	direct := c.direct(c.servers...)
	l := c.ledger("m1", prefix)
	grant, err := m.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 40 * mib}}})
	require.NoError(t, err)
	next := make(chan error, 1)
	go func() {
		second, err := m.Reserve(ctx, fleet.Request{Wants: []fleet.Want{{Bytes: 60 * mib}}})
		if err == nil {
			err = second.Release()
		}
		next <- err
	}()
	until(t, l, "the second gang waits", func(s fleet.Status) bool { return len(s.Waiting) == 1 })
	own, err := l.Lease(ctx, leaseTime)
	require.NoError(t, err)

	last := int64(0)
	var full *FullError
	fill := func(i int) error {
		at, err := l.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "big", Value: make([]byte, 64<<10)}, {Key: "number", Value: fmt.Append(nil, i)}}})
		if !errors.As(err, &full) {
			require.NoError(t, err)
			last = at
		}
		return err
	}
	written := func() int64 {
		s, err := l.Read(ctx, "big", "number")
		require.NoError(t, err)
		require.Len(t, s.Pairs, 2)
		assert.Equal(t, s.Pairs[0].Mod, s.Pairs[1].Mod, "all of a transaction or nothing")
		return s.Pairs[0].Mod
	}
	for i := 0; full == nil; i++ {
		require.Less(t, i, 1000, "the quota is not reached")
		_ = fill(i)
	}
	assert.ErrorContains(t, full, "disarm")
	assert.GreaterOrEqual(t, written(), last, "the transaction that filled it may have been carried out")
	for alarms := 0; alarms == 0; {
		active, err := direct.AlarmList(ctx)
		require.NoError(t, err)
		alarms = len(active.Alarms)
	}
	before := written()
	require.ErrorAs(t, fill(1000), &full)
	assert.Equal(t, before, written(), "nothing of a refused transaction")
	_, err = l.Lease(ctx, leaseTime)
	require.ErrorAs(t, err, &full)
	_, err = l.Commit(ctx, ledger.Transaction{Delete: []string{"big"}})
	require.NoError(t, err, "a deletion")
	left, err := own.(*lease).renew(ctx)
	require.NoError(t, err)
	assert.Equal(t, leaseTime, left)
	assert.NoError(t, grant.Err(), "the grant lives")
	require.NoError(t, own.Close(), "the end of a lease")
	require.NoError(t, grant.Release())
	until(t, l, "the grant is released", func(s fleet.Status) bool { return len(s.Holding) == 0 && len(s.Waiting) == 1 })

	s, err := l.Read(ctx)
	require.NoError(t, err)
	_, err = direct.Compact(ctx, s.Revision, clientv3.WithCompactPhysical())
	require.NoError(t, err)
	for _, endpoint := range direct.Endpoints() {
		_, err = direct.Defragment(ctx, endpoint)
		require.NoError(t, err)
	}
	_, err = direct.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	require.NoError(t, err)
	require.NoError(t, <-next, "the gang that waited")
	until(t, l, "all comes back", func(s fleet.Status) bool { return len(s.Holding)+len(s.Waiting) == 0 && s.Devices[0].HeldBytes == 0 })
}
