package pool

import (
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
	reads atomic.Int64
	usage core.Usage
}

func (c *counted) Usage() core.Usage {
	c.reads.Add(1)
	return c.usage
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
