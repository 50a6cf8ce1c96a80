//go:build linux

package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/ledger"
)

const (
	mib = 1 << 20
	// leaseTime is as short as leases can be that outlive an election, so that tests do not wait for long.
	leaseTime = electionTime * 3
	prefix    = "test/"
	// recoveryTime bounds how long after the loss of a server, and the election that it makes necessary, gangs are granted again.
	recoveryTime = 2 * time.Second
)

// limited is a ledger whose leases have a time of the test.
type limited struct {
	fleet.Ledger
	ttl time.Duration
}

func (l limited) Lease(ctx context.Context, _ time.Duration) (fleet.Lease, error) {
	return l.Ledger.Lease(ctx, l.ttl)
}

// member is a member of a fleet, which the network knows by its name.
type member struct {
	*fleet.Member
	name   string
	ledger *Ledger
	device *vram.Device
	grants atomic.Int64 // that it got
}

// join joins the fleet with a device of 64 MiB, which has the member's name.
func (c *cluster) join(name string, ttl time.Duration) *member {
	c.t.Helper()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: 128 * mib}), LimitBytes: 64 * mib})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { assert.NoError(c.t, d.Close()) })
	m := &member{name: name, ledger: c.ledger(name, prefix), device: d}
	m.Member, err = fleet.Join(timed(c.t), limited{m.ledger, ttl}, fleet.Device{Device: d, Name: name})
	require.NoError(c.t, err)
	c.t.Cleanup(func() { assert.NoError(c.t, m.Close()) })
	return m
}

// work reserves on two devices and releases, until the context ends. While the cluster does not answer it tries again.
func (m *member) work(ctx context.Context) error {
	for n := int64(0); ctx.Err() == nil; n++ {
		grant, err := m.reserve(ctx, fleet.Request{Policy: fleet.Spread, Wants: []fleet.Want{{Bytes: 40 * mib}, {Bytes: (n%3 + 1) * 10 * mib}}})
		if err == nil {
			m.grants.Add(1)
			err = released(grant)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// reserve requests again where the cluster did not answer, and where the lease ended because it was not renewed.
func (m *member) reserve(ctx context.Context, r fleet.Request) (*fleet.Grant, error) {
	for {
		grant, err := m.Reserve(ctx, r)
		var unreachable *UnreachableError
		if !errors.Is(err, fleet.ErrLost) && !errors.As(err, &unreachable) {
			return grant, err
		}
	}
}

// released releases a grant, whose lease ends by itself where the cluster does not answer.
func released(g *fleet.Grant) error {
	err := g.Release()
	var unreachable *UnreachableError
	if errors.As(err, &unreachable) {
		return nil
	}
	return err
}

// requireFenced requires that a ticket has no grant on a device of a member.
func (m *member) requireFenced(t *testing.T, ticket fleet.Ticket) {
	t.Helper()
	for ctx := timed(t); ; {
		_, err := m.Claim(ctx, m.name, ticket)
		var unreachable *UnreachableError
		if !errors.As(err, &unreachable) {
			require.ErrorIs(t, err, fleet.ErrFenced)
			return
		}
	}
}

// has reports whether a device is in a fleet.
func has(s fleet.Status, device string) bool {
	return slices.ContainsFunc(s.Devices, func(d fleet.DeviceStatus) bool { return d.Name == device })
}

// BenchmarkReserve measures reservations of four devices by eight members, each with a device and connections of its own, on a cluster of
// three servers: from the call to the grant, and the next after its release. Each device has memory for all.
func BenchmarkReserve(b *testing.B) {
	b.Run("ledger=etcd/servers=3/members=8/devices=4", func(b *testing.B) {
		c := start(b, 3)
		var members []*member
		for i := range 8 {
			members = append(members, c.join(fmt.Sprint("m", i), fleet.LeaseTime))
		}
		took := make(chan time.Duration)
		working, stop := context.WithCancel(b.Context())
		var workers sync.WaitGroup
		for _, m := range members {
			workers.Go(func() {
				for working.Err() == nil {
					begin := time.Now()
					grant, err := m.Reserve(working, fleet.Request{Wants: slices.Repeat([]fleet.Want{{Bytes: 2 * mib}}, 4)})
					if working.Err() == nil && assert.NoError(b, err) {
						select {
						case took <- time.Since(begin):
						case <-working.Done():
						}
						assert.NoError(b, grant.Release())
					}
				}
			})
		}
		for range 80 {
			<-took
		}
		all := make([]time.Duration, 0, b.N)
		b.ResetTimer()
		for range b.N {
			all = append(all, <-took)
		}
		b.StopTimer()
		stop()
		workers.Wait()
		slices.Sort(all)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reservations/s")
		b.ReportMetric(all[b.N/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(all[b.N*99/100].Seconds()*1e3, "p99-ms")
	})
}

// until waits until a condition of the ledger holds. Failures of the ledger are not counted.
func until(tb testing.TB, l fleet.Ledger, what string, holds func(fleet.Status) bool) {
	tb.Helper()
	ctx := timed(tb)
	for {
		s, err := fleet.Look(ctx, l)
		if err == nil && holds(s) {
			return
		}
		require.NoError(tb, ctx.Err(), "%s: %+v %v", what, s, err)
		if err == nil {
			_ = l.Wait(ctx, s.Revision)
		}
	}
}

// progress waits until each of some members has got two more grants: the second was requested after this call.
func progress(tb testing.TB, l fleet.Ledger, members []*member, what string) {
	tb.Helper()
	before := map[*member]int64{}
	for _, m := range members {
		before[m] = m.grants.Load()
	}
	until(tb, l, what, func(fleet.Status) bool {
		return !slices.ContainsFunc(members, func(m *member) bool { return m.grants.Load() < before[m]+2 })
	})
}

// leaseLong waits until the cluster has ended a lease that began now and nobody renews.
func leaseLong(t *testing.T, l *Ledger) {
	t.Helper()
	ctx := timed(t)
	var begun int64
	for begun == 0 { // a server that is cut off does not answer
		require.NoError(t, ctx.Err())
		granted, err := repeated(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.LeaseGrantResponse, error) {
			return c.Grant(ctx, int64(leaseTime/time.Second))
		})
		if err != nil {
			continue
		}
		put, err := repeated(ctx, l, func(ctx context.Context, c *clientv3.Client) (*clientv3.PutResponse, error) {
			return c.Put(ctx, "clock", "", clientv3.WithLease(granted.ID))
		})
		if err == nil {
			begun = put.Header.Revision
		}
	}
	for change := range l.clients[l.servers.present().server].Watch(ctx, "clock", clientv3.WithRev(begun+1)) {
		if len(change.Events) > 0 && change.Events[0].Type == clientv3.EventTypeDelete {
			return
		}
	}
	require.Fail(t, "the lease does not end")
}

// Members reserve while servers are killed and cut off, and while a member is cut off with its device and its grants. Nothing is granted
// twice, no request is stuck, and everything comes back.
func TestServersAndMembersAreLost(t *testing.T) {
	t.Parallel()
	c := start(t, 3)
	var members []*member
	for i := range 4 {
		members = append(members, c.join(fmt.Sprint("m", i), leaseTime))
	}
	outside, direct := c.ledger("m4", prefix), c.direct(c.servers...)
	working, stop := context.WithCancel(t.Context())
	defer stop()
	var workers sync.WaitGroup
	for _, m := range members[:3] {
		workers.Go(func() { assert.NoError(t, m.work(working)) })
	}
	rounds := 1
	if !testing.Short() {
		rounds = 10
	}
	for round := range rounds {
		killed := c.leader(direct)
		c.recovers(outside, members[:3], killed, "kill -9 of the leader", killed.kill)
		c.run(killed)()

		cut := c.leader(direct)
		if round%2 == 0 {
			cut = c.servers[(slices.Index(c.servers, cut)+1)%len(c.servers)]
		}
		c.recovers(outside, members[:3], cut, "a server was cut off", func() { c.set(cut.config.Name, true) })
		leaseLong(t, outside)
		progress(t, outside, members[:3], "a server is cut off for longer than a lease")
		c.set(cut.config.Name, false)

		alone := c.leader(direct)
		c.recovers(outside, members[:3], alone, "the leader was cut off from the other servers", func() { c.set(alone.config.Name+peers, true) })
		c.set(alone.config.Name+peers, false)

		c.cutMember(t, outside, members[3], members[0])
	}
	stop()
	workers.Wait()
	until(t, outside, "everything comes back", func(s fleet.Status) bool { return len(s.Holding)+len(s.Waiting) == 0 })
	for _, m := range members {
		until(t, outside, "the device's memory is free", func(fleet.Status) bool { return m.device.Stats().SetAsideBytes == 0 })
	}
	audit(t, outside)
}

// recovers loses a server, and requires that members get grants again soon after, or soon after the others have elected a leader: in recoveryTime and
// four times the time that as many grants take while all servers serve.
func (c *cluster) recovers(l *Ledger, members []*member, lost *server, what string, lose func()) {
	c.t.Helper()
	begin := time.Now()
	progress(c.t, l, members, "all servers")
	usual := time.Since(begin)
	elections := c.elections(lost)
	begin = time.Now()
	lose()
	progress(c.t, l, members, what)
	end, elected := time.Now(), elections()
	if elected.Before(begin) {
		elected = begin
	}
	c.t.Logf("granted again %v after %s, %v after the election, with all servers in %v", end.Sub(begin), what, end.Sub(elected), usual)
	assert.Less(c.t, end.Sub(elected), recoveryTime+4*usual)
}

// cutMember cuts a member off that holds memory of its own device and of another one, until the other one is granted again.
func (c *cluster) cutMember(t *testing.T, outside *Ledger, m, other *member) {
	t.Helper()
	ctx := timed(t)
	grant, err := m.reserve(ctx, fleet.Request{Priority: 1, Wants: []fleet.Want{{Bytes: 64 * mib, Device: m.name}, {Bytes: 60 * mib, Device: other.name}}})
	require.NoError(t, err)
	c.set(m.name, true)
	begin := time.Now()
	next, err := other.reserve(ctx, fleet.Request{Priority: 2, Wants: []fleet.Want{{Bytes: 64 * mib, Device: other.name}}})
	require.NoError(t, err, "the memory of a member that is cut off")
	t.Logf("granted again %v after the member was cut off, with leases of %v", time.Since(begin), leaseTime)
	require.NoError(t, released(next))
	other.requireFenced(t, grant.Ticket())
	<-grant.Done() // though it hears of nothing
	require.ErrorIs(t, grant.Err(), fleet.ErrLost)
	until(t, outside, "the device is gone", func(s fleet.Status) bool { return !has(s, m.name) })
	c.set(m.name, false)
	until(t, outside, "the device is back", func(s fleet.Status) bool { return has(s, m.name) })
	m.requireFenced(t, grant.Ticket())
}

// audit plays the whole history of the keys again, and checks each grant: no device promises more than it offers, and a gang gets all of
// its wants at one revision.
func audit(t *testing.T, l *Ledger) {
	t.Helper()
	ctx, cancel := context.WithCancel(timed(t))
	defer cancel()
	last, err := l.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "end"}}})
	for ; err != nil; last, err = l.Commit(ctx, ledger.Transaction{Put: []ledger.Put{{Key: "end"}}}) {
		require.NoError(t, ctx.Err(), err)
	}
	state := ledger.Snapshot{}
	var reader core.Reader
	grants := 0
	check := func() {
		books := reader.Read(state)
		for _, g := range books.Gangs {
			for i, name := range g.Granted {
				h := books.Hold(name, g.Ticket)
				if h == nil || h.Fence != state.Revision {
					continue // not of this revision
				}
				grants++
				d := books.Device(name)
				require.NotNil(t, d, "a hold of no device at %d", state.Revision)
				require.Equal(t, d.Incarnation, h.Incarnation)
				require.GreaterOrEqual(t, books.FreeBytes(d), int64(0), "%s is granted twice at %d", name, state.Revision)
				require.GreaterOrEqual(t, h.Bytes, g.Wants[i].Bytes)
				for _, other := range g.Granted {
					require.NotNil(t, books.Hold(other, g.Ticket))
					require.Equal(t, h.Fence, books.Hold(other, g.Ticket).Fence, "not all at once")
				}
			}
		}
	}
	// The end of a lease and a transaction are one revision each, which a watch does not divide.
	for changes := range l.clients[l.servers.present().server].Watch(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(1)) {
		require.NoError(t, changes.Err())
		for i, e := range changes.Events {
			state.Revision = e.Kv.ModRevision
			key := string(e.Kv.Key[len(l.prefix):])
			state = replaced(state, ledger.Pair{Key: key, Value: e.Kv.Value, Create: e.Kv.CreateRevision, Mod: e.Kv.ModRevision, Lease: e.Kv.Lease}, e.Type == clientv3.EventTypeDelete)
			if i+1 == len(changes.Events) || changes.Events[i+1].Kv.ModRevision != state.Revision {
				check()
			}
		}
		if state.Revision >= last {
			break
		}
	}
	t.Logf("%d grants, %d revisions", grants, state.Revision)
	assert.Positive(t, grants)
}

// replaced returns a state with one pair put or deleted.
func replaced(s ledger.Snapshot, p ledger.Pair, gone bool) ledger.Snapshot {
	t := ledger.Transaction{Put: []ledger.Put{{Key: p.Key}}}
	if gone {
		t = ledger.Transaction{Delete: []string{p.Key}}
	}
	next, _ := s.Apply(t, nil)
	for i := range next.Pairs {
		if next.Pairs[i].Key == p.Key {
			next.Pairs[i] = p
		}
	}
	next.Revision = s.Revision
	return next
}
