package main

import (
	"bufio"
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
	"github.com/go-vram/vram/examples/gpt/model"
)

// loading configures the load on the service.
type loading struct {
	ClientCount int             // each sends a request when the last one is answered
	Duration    time.Duration   // then the service is stopped, with requests in flight
	Seed        uint64          // of the requests' sizes
	Equal       bool            // all requests are of the mean size
	Transport   *http.Transport // nil: TCP
}

// sizes are the bounds of a client's requests, as tokens of the prompt and of the answer: uniformly from the first to the last.
type sizes struct{ leastPrompt, mostPrompt, leastNew, mostNew int }

// sizesOf returns parts of a model's context: for 1,024 positions prompts of 64 to 256 tokens and answers of 128 to 512.
func sizesOf(c model.Config) sizes {
	return sizes{max(1, c.Context/16), max(1, c.Context/4), max(1, c.Context/8), max(1, c.Context/2)}
}

// mean returns the tokens of a mean request.
func (s sizes) mean() (prompt, answer int) {
	return (s.leastPrompt + s.mostPrompt) / 2, (s.leastNew + s.mostNew) / 2
}

// draw returns the tokens of a request of the load.
func (s sizes) draw(random *rand.Rand) (prompt, answer int) {
	return s.leastPrompt + random.IntN(s.mostPrompt-s.leastPrompt+1), s.leastNew + random.IntN(s.mostNew-s.leastNew+1)
}

// cacheBytes returns the keys and values of a mean request.
func (s sizes) cacheBytes(c model.Config) int64 {
	prompt, answer := s.mean()
	return int64(prompt+answer) * int64(2*c.Layers*c.Width*c.Type.Size())
}

// The default limit of a load has room for the weights and the activations, and for the caches of a part of the clients.
const (
	weightsWithActivations = 1.3
	shortage               = 2
)

// defaults sets the missing settings of a load.
func (l loading) defaults(s *settings) error {
	if s.Config.LimitBytes == 0 && s.Config.MemoryFraction == 0 {
		caches := int64(l.ClientCount) * sizesOf(s.Model).cacheBytes(s.Model) / shortage
		const least = 64 << 20 // a device hands out pages of megabytes, of which each stream and arena has some
		s.Config.LimitBytes = max(least, int64(weightsWithActivations*float64(s.Model.WeightBytes()))+caches)
	}
	var err error
	if s.Tenants == nil {
		s.Tenants, err = parseTenants("gold=4,silver=2,bronze=1")
	}
	return err
}

// sample is the outcome of a request.
type sample struct {
	first  time.Duration   // from the request to its first token
	gaps   []time.Duration // from token to token
	tokens int
	err    *loadError // nil: it was answered
}

// loadError is a request that was not answered as it asked.
type loadError struct {
	kind string // the code of the service's problem, the reason of an incomplete answer, or transport
	err  error
}

func (e *loadError) Error() string { return e.kind + ": " + e.err.Error() }
func (e *loadError) Unwrap() error { return e.err }

// client sends requests of one tenant.
type client struct {
	tenant  string
	random  *rand.Rand
	samples []sample
}

// generator has the clients of a load and their shared state.
type generator struct {
	loading loading
	model   model.Config
	http    *http.Client
	url     string
	open    *gate         // clients send while it is open
	begun   atomic.Uint64 // requests
	failed  atomic.Uint64 // before the service had them, perhaps
	clients []*client
}

func newGenerator(l loading, c model.Config, tenants []weight, url string) *generator {
	g := &generator{
		loading: l, model: c,
		http: &http.Client{Transport: cmp.Or(l.Transport, &http.Transport{MaxIdleConnsPerHost: l.ClientCount})},
		url:  url, open: newGate(),
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

// request returns a request of the load.
func (g *generator) request(c *client) completionRequest {
	of := sizesOf(g.model)
	length, answer := of.draw(c.random)
	if g.loading.Equal {
		length, answer = of.mean()
	}
	r := completionRequest{MaxTokens: answer, Temperature: 0.8, TopK: 50, Seed: c.random.Uint64(), Stream: true}
	for range length {
		r.Prompt.tokens = append(r.Prompt.tokens, c.random.Int64N(int64(g.model.Vocabulary)))
	}
	return r
}

// send sends a request and reads its answer.
func (g *generator) send(ctx context.Context, c *client) (s sample) {
	err := g.ask(ctx, c, &s)
	if err == nil {
		return s
	}
	g.failed.Add(1)
	if kind, ok := errors.AsType[*loadError](err); ok {
		s.err = kind
	} else {
		s.err = &loadError{"transport", err}
	}
	return s
}

func (g *generator) ask(ctx context.Context, c *client, s *sample) (err error) {
	body, err := json.Marshal(g.request(c))
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set(tenantHeader, c.tenant)
	start := time.Now()
	response, err := g.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		var p problem
		if err := json.Unmarshal(text, &p); err != nil {
			return err
		}
		return &loadError{p.Code, fmt.Errorf("%s: %s", response.Status, p.Message)}
	}
	return s.read(response.Body, start)
}

// read reads the events of an answer.
func (s *sample) read(from io.Reader, start time.Time) error {
	previous := start
	lines := bufio.NewScanner(from)
	var last completionAnswer
	for lines.Scan() {
		data, found := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		switch {
		case !found: // the empty line after an event
		case bytes.HasPrefix(data, []byte(`{"token":`)):
			now := time.Now()
			if s.tokens++; s.tokens == 1 {
				s.first = now.Sub(start)
			} else {
				s.gaps = append(s.gaps, now.Sub(previous))
			}
			previous = now
		case bytes.HasPrefix(data, []byte("{")):
			if err := json.Unmarshal(data, &last); err != nil {
				return err
			}
		}
	}
	switch {
	case lines.Err() != nil:
		return lines.Err()
	case last.Reason == "":
		return io.ErrUnexpectedEOF
	case last.Reason != endedLength:
		return &loadError{last.Reason, fmt.Errorf("the answer has ended after %d tokens", s.tokens)}
	}
	return nil
}

// load serves on the listener, loads the service, and stops it while requests are in flight, as a signal would: each gets
// its answer before the service ends. The end of stop ends the load early, the end of force ends the requests, too.
func (sv *Service) load(stop, force context.Context, listener net.Listener, l loading, s shutdown) (outcome, error) {
	serving, endServing := context.WithCancel(context.WithoutCancel(stop))
	defer endServing()
	served := make(chan error, 1)
	go func() { served <- sv.Serve(serving, force, listener, s) }()

	g := newGenerator(l, sv.model, sv.settings.Tenants, "http://"+listener.Addr().String())
	done := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		g.run(context.WithoutCancel(stop))
	}()
	pause(stop, l.Duration)
	o := outcome{duration: time.Since(start), tenants: sv.settings.Tenants, tokens: map[string]uint64{}}
	for name, t := range sv.tenants {
		o.tokens[name] = t.tokens.Load()
	}
	answered := sv.answered.Load()
	quiet := g.open.shut() // no new requests; sent ones must reach the service before it closes idle connections
	for sv.received.Load()+g.failed.Load() < g.begun.Load() && force.Err() == nil {
		pause(force, time.Millisecond)
	}
	o.inFlight = sv.running.Load() + sv.waiting.Load()
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
	duration time.Duration
	tenants  []weight
	tokens   map[string]uint64 // by tenant, made before the end of the load
	inFlight int64             // when the service was stopped
	drained  uint64            // answered after the load was over
	clients  []*client
	stats    vram.Stats
}
