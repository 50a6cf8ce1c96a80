package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
)

// loading configures the load on the service.
type loading struct {
	ClientCount int             // each sends a request when the last one is answered
	Duration    time.Duration   // then the service is stopped, with requests in flight
	Seed        uint64          // of the requests' sizes
	Equal       bool            // all requests are of the mean size
	Transport   *http.Transport // nil: TCP
}

// The sizes of a client's requests, uniformly from the first to the last.
const (
	leastPromptTokens, mostLoadPromptTokens = 128, 1024
	leastNewTokens, mostLoadNewTokens       = 256, 1024
)

// meanRequest is the mean request of the load.
func meanRequest() inferRequest {
	return inferRequest{
		PromptTokens: (leastPromptTokens + mostLoadPromptTokens) / 2, NewTokens: (leastNewTokens + mostLoadNewTokens) / 2, Batch: 1,
	}
}

// request is a request of the load.
func (l loading) request(random *rand.Rand) inferRequest {
	if l.Equal {
		return meanRequest()
	}
	return inferRequest{
		PromptTokens: leastPromptTokens + random.IntN(mostLoadPromptTokens-leastPromptTokens+1),
		NewTokens:    leastNewTokens + random.IntN(mostLoadNewTokens-leastNewTokens+1),
		Batch:        1,
	}
}

// meanBytes returns the average need of a request of the load.
func meanBytes() (sum int64) {
	mean := meanRequest()
	for _, n := range mean.buffers() {
		sum += n
	}
	return sum
}

// shortage is the default limit as a fraction of the need of all clients at once.
const shortage = 4

// defaults sets the missing settings of a load.
func (l loading) defaults(s *settings) error {
	if s.Config.LimitBytes == 0 && s.Config.MemoryFraction == 0 {
		s.Config.LimitBytes = int64(l.ClientCount) * meanBytes() / shortage
	}
	var err error
	if s.Tenants == nil {
		s.Tenants, err = parseTenants("gold=4,silver=2,bronze=1")
	}
	return err
}

// sample is the outcome of a request.
type sample struct {
	latency, waited time.Duration
	err             error // nil: it was answered
}

// client sends requests of one tenant.
type client struct {
	tenant  string
	random  *rand.Rand
	samples []sample
}

// generator has the clients of a load and their shared state.
type generator struct {
	loading loading
	http    *http.Client
	url     string
	open    *gate         // clients send while it is open
	begun   atomic.Uint64 // requests
	failed  atomic.Uint64 // before the service had them, perhaps
	clients []*client
}

func newGenerator(l loading, tenants []weight, url string) *generator {
	g := &generator{
		loading: l,
		http:    &http.Client{Transport: cmp.Or(l.Transport, &http.Transport{MaxIdleConnsPerHost: l.ClientCount})},
		url:     url, open: newGate(),
	}
	for n := range l.ClientCount {
		g.clients = append(g.clients, &client{
			tenant: tenants[n%len(tenants)].name,
			random: rand.New(rand.NewPCG(l.Seed, uint64(n))), //nolint:gosec // reproducible sizes
		})
	}
	return g
}

// run has all clients send until the gate is shut, and returns when each has its last answer.
func (g *generator) run(ctx context.Context) {
	ended := make(chan struct{})
	for _, c := range g.clients {
		go func() {
			defer func() { ended <- struct{}{} }()
			for g.open.enter() {
				g.begun.Add(1)
				s := g.send(ctx, c)
				c.samples = append(c.samples, s)
				g.open.leave()
				if s.err != nil {
					pause(ctx, retrySoon*time.Second) // the Retry-After
				}
			}
		}()
	}
	for range g.clients {
		<-ended
	}
	g.http.CloseIdleConnections()
}

// send sends a request and waits for its answer.
func (g *generator) send(ctx context.Context, c *client) sample {
	start := time.Now()
	a, err := g.ask(ctx, c)
	if err != nil {
		g.failed.Add(1)
	}
	return sample{time.Since(start), time.Duration(a.WaitedMicros) * time.Microsecond, err}
}

func (g *generator) ask(ctx context.Context, c *client) (a inferAnswer, err error) {
	body, err := json.Marshal(g.loading.request(c.random))
	if err != nil {
		return a, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/infer", bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	request.Header.Set(tenantHeader, c.tenant)
	response, err := g.http.Do(request)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a, err
	}
	if response.StatusCode != http.StatusOK {
		return a, fmt.Errorf("%s: %s", response.Status, bytes.TrimSpace(text))
	}
	return a, json.Unmarshal(text, &a)
}

// load serves on the listener, loads the service, and stops it while requests are in flight, as a signal would: each gets
// its answer before the service ends. The end of stop ends the load early, the end of force ends the requests, too.
func (sv *Service) load(stop, force context.Context, listener net.Listener, l loading, s shutdown) (outcome, error) {
	serving, endServing := context.WithCancel(context.WithoutCancel(stop))
	defer endServing()
	served := make(chan error, 1)
	go func() { served <- sv.Serve(serving, force, listener, s) }()

	g := newGenerator(l, sv.settings.Tenants, "http://"+listener.Addr().String())
	done := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		g.run(context.WithoutCancel(stop))
	}()
	pause(stop, l.Duration)
	o := outcome{duration: time.Since(start), tenants: sv.settings.Tenants, byteSeconds: map[string]float64{}, requests: map[string]float64{}}
	for name, t := range sv.tenants {
		o.byteSeconds[name], o.requests[name] = t.byteSeconds(), float64(t.answered.Load())
	}
	answered := sv.answered.Load()
	quiet := g.open.shut() // no new requests; sent ones must reach the service before it closes idle connections
	for sv.received.Load()+g.failed.Load() < g.begun.Load() && force.Err() == nil {
		pause(force, time.Millisecond)
	}
	o.inFlight = sv.running.Load() + sv.waiting.Load()
	o.answered = answered
	endServing()
	err := <-served
	<-quiet
	<-done
	o.drained = sv.answered.Load() - answered
	o.clients, o.stats = g.clients, sv.device.Stats()
	return o, err
}

// outcome is the result of a load.
type outcome struct {
	duration    time.Duration
	tenants     []weight
	byteSeconds map[string]float64 // by tenant, of requests that ended before the load
	requests    map[string]float64 // by tenant, answered before the end of the load
	answered    uint64             // of all tenants
	inFlight    int64              // when the service was stopped
	drained     uint64             // answered after the load was over
	clients     []*client
	stats       vram.Stats
}
