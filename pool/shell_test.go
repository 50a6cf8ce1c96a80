package pool

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// A pool in use for long keeps nothing of clients that are gone, nor of requests that have ended.
func TestAPoolKeepsNothingOfClientsThatAreGone(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(16))
		stays := h.testClient(1)
		stays.must(1)
		sizes := func() (all []int) {
			h.settle()
			h.inTurn(func() {
				p := h.pool
				all = []int{len(p.clients), len(p.reporters), len(p.granted), len(p.askedAt), len(p.waiting)}
			})
			return all
		}
		before := sizes()
		for id := core.Client(2); id < 8; id++ {
			c := h.testClient(id)
			run := c.must(4)
			_, err := h.pool.Trim(t.Context(), 0) // asks all
			require.NoError(t, err)
			c.free(run)
			c.release(0)
			h.pool.Leave(id, true)
			_, err = h.pool.Warm(t.Context(), []uint32{1})
			require.NoError(t, err)
			after := sizes()
			for i := range after { // the client that stays has been asked, too
				assert.LessOrEqual(t, after[i], max(before[i], 1), "%d: %v, before %v", i, after, before)
			}
		}
	})
}

// demanded is a client that counts the changes of the demand, and how much it was then.
type demanded struct {
	*testClient
	told []bool // whether there was demand
}

func (c *demanded) Demanded() { c.told = append(c.told, c.house.pool.Demand() > 0) }

// Each client learns that requests wait when the first does, and that none does when the last has ended, and of no change between.
// The demand is their bytes, and not 0 while one waits that wants nothing.
func TestClientsLearnWhetherRequestsWait(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	holder := h.testClient(1)
	run := holder.must(4)
	clients := []*demanded{{testClient: h.testClient(2)}, {testClient: h.testClient(3)}}
	for i, c := range clients { // join again, as clients that count
		c.reporter = h.pool.NewReporter(core.Client(10+i), c)
		c.id = core.Client(10 + i)
		h.pool.Join(c.reporter, false)
	}
	told := func() (all [][]bool) {
		h.inTurn(func() {}) // those who were told have returned
		for _, c := range clients {
			all = append(all, slices.Clone(c.told))
		}
		return all
	}
	wait := func(c *demanded, pages uint32, bytes int64) core.Refill {
		r, _ := c.expect(pages)
		r.Patience, r.Bytes, r.Place = core.Waiting, bytes, core.Place{Account: 10, Age: h.pool.NextAge(), Align: 1}
		h.pool.Refill(c, r)
		return r
	}
	first := wait(clients[0], 2, 0)
	assert.EqualValues(t, 1, h.pool.Demand(), "it wants nothing")
	second := wait(clients[1], 3, 3*page)
	assert.EqualValues(t, 3*page, h.pool.Demand())
	assert.Equal(t, [][]bool{{true}, {true}}, told())
	h.pool.Withdraw(clients[0].id, first.Token)
	assert.EqualValues(t, 3*page, h.pool.Demand())
	assert.Equal(t, [][]bool{{true}, {true}}, told())
	h.pool.Withdraw(clients[1].id, second.Token)
	assert.Zero(t, h.pool.Demand())
	assert.Equal(t, [][]bool{{true, false}, {true, false}}, told())
	holder.free(run)
}

// An answer to a reclaim request has the time since that request, and no other return has one.
func TestAnAnswerHasItsTime(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	h.testClient(1)
	var now time.Duration
	h.inTurn(func() {
		p := h.pool
		p.clock = func() time.Duration { return now }
		var fx core.Effects
		now = 5
		effect.Push(&fx.Asks, core.Ask{Client: 1})
		p.collect(&fx)
		effect.Reset(&p.out.reclaims)
		now = 12
		for answer, took := range map[bool]int64{true: 7, false: 0} {
			s := &step{pool: p, message: core.Return{Client: 1, Answer: answer}}
			p.step(s)
			assert.Equal(t, took, s.message.(core.Return).TookNs, answer)
		}
	})
}

// idler is a client whose stream has work, or not.
type idler struct {
	listener
	idle bool
}

func (c *idler) Idle() bool { return c.idle }

// The device is idle if no client's stream has work.
func TestTheDeviceIsIdleIfAllClientsAre(t *testing.T) {
	t.Parallel()
	idle, busy := &idler{idle: true}, &idler{}
	for _, test := range []struct {
		clients []Client
		idle    bool
	}{
		{nil, true},
		{[]Client{idle, idle}, true},
		{[]Client{busy}, false},
		{[]Client{busy, idle}, false},
		{[]Client{idle, busy}, false},
	} {
		assert.Equal(t, test.idle, new(driver).idle(test.clients))
	}
}

// The limit is at most half of the arena: the rest is room for windows.
func TestTheLimitIsAtMostHalfOfTheArena(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		s := roomy(1 << 30)
		h := k.build(t, s)
		half := h.pool.bytes / 2
		assert.Equal(t, half, h.snapshot().LimitBytes)
		require.NoError(t, h.pool.Reconfigure(t.Context(), roomy(8)))
		assert.EqualValues(t, 8*page, h.snapshot().LimitBytes)
		require.NoError(t, h.pool.Reconfigure(t.Context(), s))
		assert.Equal(t, half, h.snapshot().LimitBytes)
	})
}

// A request of a tenant that was closed, and has left the pool, brings it back for as long as it has a charge.
func TestALateChargeBringsAClosedTenantBack(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(8))
	owner := NewTenant("owner", 1, Quota{})
	h.pool.AddTenants(owner)
	require.NoError(t, owner.Close())
	count := func() int {
		h.settle()
		return len(h.pool.quotas.tenants())
	}
	assert.Zero(t, count())
	require.True(t, owner.take(3))
	assert.Equal(t, 1, count())
	require.True(t, owner.take(2))
	assert.Equal(t, 1, count())
	(*TenantControl)(owner).Refund(3)
	assert.Equal(t, 1, count())
	(*TenantControl)(owner).Refund(2)
	assert.Zero(t, count())
}

// A charge fits up to the last byte of the limit, and one that does not fit changes nothing.
func TestAChargeFitsUpToTheLimit(t *testing.T) {
	t.Parallel()
	owner := NewTenant("owner", 1, Quota{LimitBytes: 10})
	assert.False(t, owner.take(11))
	assert.Zero(t, owner.Stats().ChargedBytes)
	assert.True(t, owner.take(7))
	assert.False(t, owner.take(4))
	assert.True(t, owner.take(3))
	assert.False(t, owner.take(1))
	assert.True(t, owner.take(0))
	assert.EqualValues(t, 10, owner.Stats().ChargedBytes)
	unbounded := NewTenant("unbounded", 2, Quota{})
	assert.True(t, unbounded.take(1<<60))
}

// A mark whose watch has ended is released by the driver goroutine, and by the watch otherwise: once.
func TestAWatchHandsItsMarkOverOnce(t *testing.T) {
	t.Parallel()
	for _, finishes := range []bool{false, true} {
		w := new(watch)
		if finishes {
			w.state.Store(finished)
		}
		assert.Equal(t, !finishes, w.handOver(), "the watch releases the mark")
		assert.False(t, w.handOver(), "it was handed over, or never will be")
	}
}

// A poll that sees a watched mark pass leaves its release to the watch: no event is released twice, and none is kept.
func TestAWatchedMarkIsReleasedOnce(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	a, b := h.testClient(1), h.testClient(2)
	held := a.must(4)
	watching := make(chan struct{})
	release := h.hold("cuEventSynchronize", func() { close(watching) })
	require.NoError(t, h.sim.Occupy(a.stream, time.Second))
	a.free(held)
	answers := b.refill(4)
	<-watching
	h.sim.Advance(time.Second)
	var got answer
	for answered := false; !answered; { // the poll of a tick sees the mark pass, unless the request is still on its way to its wait
		h.pool.Tick()
		select {
		case got = <-answers:
			answered = true
		default:
			runtime.Gosched()
		}
	}
	require.NoError(t, got.err)
	for range 4 { // with the events of all marks that were released
		_, err := h.fences.Record(b.stream)
		require.NoError(t, err)
		h.ownEvents++
	}
	assert.Equal(t, 4+1, h.sim.Objects()["event"], "the watch still has its event")
	release()
	b.free(got.run)
}

// The mark of a Return belongs to the pool once its step has begun: the failure of a step that panics later releases none.
func TestAReceivedMarkIsReleasedOnce(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(4))
	c := h.testClient(1)
	mark, err := h.fences.Record(c.stream)
	require.NoError(t, err)
	h.inTurn(func() {
		p := h.pool
		s := &step{pool: p, message: core.Return{Client: 1, Fence: 1}, mark: mark}
		p.step(s)
		require.Equal(t, []markedFence{{1, 1, mark}}, p.marks)
		assert.True(t, s.mark.Zero())
		s.Fail(recoveredtest.Planted("a later mistake of the step"))
	})
}
