package pool

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// counted is a client that counts how often its usage is read.
type counted struct {
	*testClient
	reads  atomic.Int64
	usage  core.Usage
	during func() // called while the usage is read
}

func (c *counted) Usage() core.Usage {
	c.reads.Add(1)
	usage := c.usage
	if during := c.during; during != nil {
		c.during = nil
		during()
	}
	return usage
}

// A decision reads the usage of the clients that may have changed it, each once, however many others there are.
func TestOnlyChangedUsageIsRead(t *testing.T) {
	t.Parallel()
	h := build(t, core.Settings{LimitBytes: 1024 * page})
	clients := make([]*counted, 200)
	reporters := make([]*Reporter, len(clients))
	for i := range clients {
		clients[i] = &counted{testClient: h.testClient(core.Client(1000 + i))}
		reporters[i] = h.pool.NewReporter(core.Client(i+1), clients[i])
		h.pool.Join(reporters[i], false)
	}
	reads := func() (all int64) {
		for _, c := range clients {
			all += c.reads.Swap(0)
		}
		return all
	}
	asker := h.testClient(900)
	asker.must(1)
	require.EqualValues(t, len(clients), reads(), "each has just joined")
	for range 10 {
		asker.must(1)
	}
	assert.Zero(t, reads())

	clients[7].usage = core.Usage{UsedBytes: page, FreePages: 3, MaxFreePages: 2}
	reporters[7].Changed()
	reporters[7].Changed()
	asker.must(1)
	assert.EqualValues(t, 1, clients[7].reads.Load())
	assert.EqualValues(t, 1, reads())
	h.pool.Return(core.Return{Client: 8, LiveBytes: 5}, fence.Mark{}) // it reports otherwise than its usage: read again
	asker.must(1)
	assert.EqualValues(t, 1, clients[7].reads.Load())
	h.pool.Tick()
	assert.EqualValues(t, 1, reads())
	for _, r := range reporters {
		assert.Nil(t, r.next, "a reporter that was read keeps no other")
	}
}

// A usage that changes while the pool reads usages is read again for the next decision: the usage of the client that is being
// read, of one that was read before, and of one that is read next.
func TestAUsageThatChangesDuringTheReadIsReadAgain(t *testing.T) {
	t.Parallel()
	h := build(t, core.Settings{LimitBytes: 1024 * page})
	clients := make([]*counted, 3)
	reporters := make([]*Reporter, len(clients))
	for i := range clients {
		clients[i] = &counted{testClient: h.testClient(core.Client(1000 + i))}
		reporters[i] = h.pool.NewReporter(core.Client(i+1), clients[i])
		h.pool.Join(reporters[i], false)
	}
	decide := func() { h.inTurn(func() { h.pool.tellUsage(core.Tick{}) }) }
	decide()
	for _, one := range clients {
		require.EqualValues(t, 1, one.reads.Swap(0))
	}
	for reading, c := range clients {
		for changing, other := range clients {
			for _, r := range reporters {
				r.Changed()
			}
			changedFirst := false
			c.during = func() {
				changedFirst = other.reads.Load() > 0
				other.usage.UsedBytes += page
				reporters[changing].Changed()
			}
			decide()
			decide()
			decide()
			for i, one := range clients {
				want := 1
				if i == changing && changedFirst {
					want = 2
				}
				require.EqualValues(t, want, one.reads.Swap(0), "of %d: %d changed while %d was read", i, changing, reading)
			}
		}
	}
}

// Of clients that report changes at once the pool lists each once.
func TestReportsAmongGoroutines(t *testing.T) {
	t.Parallel()
	const goroutines, each = 3, 8
	for range 300 {
		p := &Pool{}
		var reporters [goroutines * each]*Reporter
		for i := range reporters {
			reporters[i] = p.NewReporter(core.Client(i+1), nil)
		}
		var ready atomic.Int64
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				for ready.Add(1); ready.Load() < goroutines; {
					runtime.Gosched()
				}
				for i := range each {
					reporters[g*each+i].Changed()
					reporters[i].Changed() // of the first goroutine, too
				}
			})
		}
		all.Wait()
		var listed []*Reporter
		for r := p.changed.Load(); r != nil && len(listed) <= len(reporters); r = r.next {
			listed = append(listed, r)
		}
		require.ElementsMatch(t, reporters[:], listed)
	}
}
