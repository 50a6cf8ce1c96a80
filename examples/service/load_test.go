package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// pipes is a network of one listener without sockets, for synctest's bubbles.
type pipes struct {
	connections chan net.Conn
	closed      chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connections:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.connections <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Clients that need four times the memory are all answered, each tenant as its quota says, and stopping loses none. Few streams
// have many requests each, whose memory returns to the stream where others wait, too.
func TestLoad(t *testing.T) {
	t.Run("requests of all sizes", func(t *testing.T) { testLoad(t, 128, loading{ClientCount: 240, Duration: 20 * time.Second, Seed: 1}) })
	t.Run("equal requests", func(t *testing.T) {
		testLoad(t, 128, loading{ClientCount: 240, Duration: 20 * time.Second, Seed: 1, Equal: true})
	})
	t.Run("few streams", func(t *testing.T) {
		testLoad(t, 8, loading{ClientCount: 240, Duration: 80 * time.Second, Seed: 1, Equal: true})
	})
}

func testLoad(t *testing.T, workers int, l loading) {
	t.Helper()
	short := raceDetected || testing.Short() // under the race detector the books are checked at each step
	if short {
		l.Duration /= 5
	}
	synctest.Test(t, func(t *testing.T) {
		tenants, err := parseTenants("gold=2,silver=1,bronze=1")
		require.NoError(t, err)
		s := settings{
			Config: vram.Config{Driver: sim.New(sim.Config{Clock: sim.Running})}, WorkerCount: workers, BacklogCount: 1000,
			Timeout: 80 * time.Second, Tenants: tenants,
		}
		require.NoError(t, l.defaults(&s))
		sv, err := Open(s)
		require.NoError(t, err)
		network := newPipes()
		l.Transport = &http.Transport{DialContext: network.dial, MaxIdleConnsPerHost: l.ClientCount}
		o, err := sv.load(t.Context(), t.Context(), network, l, shutdown{Deadline: 80 * time.Second})
		require.NoError(t, err)
		require.NoError(t, sv.Close())
		require.NoError(t, o.err())

		each, all := o.standings()
		require.Len(t, each, 3)
		const off = 0.1
		// Quotas bound memory. The number of answers follows if all requests hold theirs equally long. A kernel waits for
		// earlier kernels of its stream, and its request holds memory during the wait: if equal requests of many workers keep
		// step, requests of one tenant meet on the same streams in some runs, and hold it longer.
		offAnswers := off
		if l.Equal && workers > 8 {
			offAnswers = 0.25
		}
		if short { // the first request of every client comes before any quota counts, and the load is short
			offAnswers += float64(l.ClientCount) / float64(o.answered)
		}
		for _, x := range each {
			ofMemory, ofRequests := x.deviations()
			assert.InDelta(t, 0, ofMemory, off, "%s has %.3f of the memory, its quota is %.3f", x.name, x.served, x.quota)
			assert.InDelta(t, 0, ofRequests, offAnswers, "%s has %.3f of the answers, its quota is %.3f", x.name, x.requests, x.quota)
			assert.Equal(t, 80, x.clientCount)
			assert.Positive(t, x.oldest)
			assert.Less(t, x.oldest, l.Duration, x.name)
		}
		assert.Equal(t, l.ClientCount/shortage*int(meanBytes()), int(o.stats.LimitBytes))
		assert.LessOrEqual(t, o.stats.PeakReservedBytes, o.stats.LimitBytes)
		assert.Greater(t, o.stats.Waits.Count, o.answered/2, "most of them have waited")
		assert.Equal(t, int64(l.ClientCount), o.inFlight)
		assert.EqualValues(t, l.ClientCount, o.drained)
		assert.EqualValues(t, all.answered, o.answered+o.drained)
		assert.Zero(t, o.stats.LiveBytes)
		var text bytes.Buffer
		o.print(&text)
		assert.Contains(t, text.String(), "never exceeded")
		t.Log("\n" + text.String())
	})
}

// A load reports each fault.
func TestLoadIsJudged(t *testing.T) {
	t.Parallel()
	o := outcome{
		tenants:     []weight{{"a", 3}, {"b", 1}},
		byteSeconds: map[string]float64{"a": 60, "b": 40},
		requests:    map[string]float64{"a": 9, "b": 1},
		clients:     []*client{{tenant: "a"}, {tenant: "b"}},
	}
	for n := range 100 {
		o.clients[0].samples = append(o.clients[0].samples, sample{latency: time.Duration(100-n) * time.Second, waited: time.Second})
	}
	each, all := o.standings()
	ofMemory, ofRequests := each[0].deviations()
	assert.InDelta(t, -0.2, ofMemory, 1e-9)
	assert.InDelta(t, 0.2, ofRequests, 1e-9)
	ofMemory, ofRequests = each[1].deviations()
	assert.InDelta(t, 0.6, ofMemory, 1e-9)
	assert.InDelta(t, -0.6, ofRequests, 1e-9)
	assert.Equal(t, []time.Duration{50 * time.Second, 99 * time.Second, 100 * time.Second}, []time.Duration{all.median, all.high, all.longest})
	assert.Zero(t, each[1].longest)
	require.NoError(t, o.err())
	o.stats.LimitBytes, o.stats.PeakReservedBytes = 1, 2
	require.ErrorContains(t, o.err(), "over the limit of 1")
	var text bytes.Buffer
	o.print(&text)
	assert.Contains(t, text.String(), "EXCEEDED")
	gone := errors.New("gone")
	o.clients[1].samples = []sample{{err: gone}}
	require.ErrorIs(t, o.err(), gone)
	require.ErrorIs(t, o.err(), errLoad)
}
