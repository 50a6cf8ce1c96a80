package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// A load of three tenants is answered, and none of its requests is lost by the stop.
func TestLoad(t *testing.T) {
	t.Parallel()
	l := loading{ClientCount: 6, Duration: 5 * time.Minute, Seed: 1}
	short := small()
	short.Context = 16
	s := settings{Model: short}
	require.NoError(t, l.defaults(&s))
	require.Len(t, s.Tenants, 3)
	r := openRig(t, s)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	stop, end := context.WithCancel(t.Context())
	go func() { // until a request of each client is there, however busy the machine is
		defer end()
		for t.Context().Err() == nil && (r.answered.Load() < 6 || r.running.Load()+r.waiting.Load() < 6) {
			runtime.Gosched()
		}
	}()
	o, err := r.load(stop, t.Context(), listener, l, shutdown{Deadline: time.Minute})
	require.NoError(t, err)
	require.NoError(t, o.err())
	each, all := o.standings()
	require.Len(t, each, 3)
	for _, x := range each {
		assert.Equal(t, 2, x.clientCount)
		assert.GreaterOrEqual(t, x.answered, 2, x.name) // one of each client at least
		assert.Len(t, x.first, x.answered)
		assert.Empty(t, x.failures)
	}
	assert.LessOrEqual(t, o.inFlight, int64(6))
	assert.Positive(t, o.drained)
	assert.Equal(t, int(r.answered.Load()), all.answered)
	made := 0
	for _, c := range o.clients {
		for _, x := range c.samples {
			made += x.tokens
			assert.Len(t, x.gaps, x.tokens-1)
		}
	}
	var counted uint64
	for _, t := range r.tenants {
		counted += t.tokens.Load()
	}
	assert.EqualValues(t, counted, made, "each token has reached its client")
	var text bytes.Buffer
	o.print(&text)
	assert.Contains(t, text.String(), "never exceeded")
	assert.Contains(t, text.String(), "failures by kind: none")
}

// A load reports each fault, and the tenants' shares of the tokens against their quotas.
func TestLoadIsJudged(t *testing.T) {
	t.Parallel()
	o := outcome{
		duration: time.Second,
		tenants:  []weight{{"a", 3}, {"b", 1}},
		tokens:   map[string]uint64{"a": 60, "b": 40},
		clients:  []*client{{tenant: "a"}, {tenant: "b"}},
	}
	for n := range 100 {
		o.clients[0].samples = append(o.clients[0].samples, sample{first: time.Duration(100-n) * time.Second, tokens: 2, gaps: []time.Duration{time.Duration(n)}})
	}
	each, all := o.standings()
	assert.InDelta(t, 0.6/0.75, each[0].share/each[0].quota, 1e-9)
	assert.InDelta(t, 0.4/0.25, each[1].share/each[1].quota, 1e-9)
	assert.Equal(t, 50*time.Second, quantile(all.first, 0.5))
	assert.Equal(t, 99*time.Second, quantile(all.first, 0.99))
	assert.Equal(t, time.Duration(49), quantile(all.gaps, 0.5))
	assert.Zero(t, quantile(each[1].first, 1))
	require.NoError(t, o.err())
	o.stats.LimitBytes, o.stats.PeakReservedBytes = 1, 2
	require.ErrorContains(t, o.err(), "over the limit of 1")
	var text bytes.Buffer
	o.print(&text)
	assert.Contains(t, text.String(), "EXCEEDED")
	assert.Contains(t, text.String(), "-20.0 %")
	gone := errors.New("gone")
	o.clients[1].samples = []sample{{err: &loadError{"transport", gone}}, {err: &loadError{"over_quota", vram.ErrQuota}}}
	require.ErrorIs(t, o.err(), gone)
	require.ErrorIs(t, o.err(), errLoad)
	text.Reset()
	o.print(&text)
	assert.Contains(t, text.String(), "failures by kind: over_quota 1, transport 1")
}
