package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/gpt/model"
)

// bookkeeping is a service in virtual time, with a model of its books: who has how much memory since when.
type bookkeeping struct {
	*rig
	watched *watchedDecoder
	limits  map[string]int64
	calls   []*call
	base    int64 // live bytes without requests
	failed  bool  // the device, outside of requests
	idle    time.Duration
	left    time.Time // when the last request ended
	history []string
}

// call is a request, and what the model knows of it.
type call struct {
	completionRequest
	tenant   string
	ctx      context.Context
	leave    context.CancelFunc
	began    time.Time
	deadline time.Time
	left     bool
	failure  error // of a prefill or a step
	wanted   bool  // it asked for memory
	bytes    int64
	had      time.Time // since when it has memory; zero: it never had
	made     int       // tokens
	ended    time.Time
	done     bool
	answer   answer
}

type callKey struct{}

// watchedDecoder tells calls when they get memory, and waits or fails once where a test says so.
type watchedDecoder struct {
	*heldDecoder

	callers                          map[*model.Sequence]*call
	prefillErr, stepErr, sleepErr    error // of the next one
	allocErr, wakeErr                error
	prefillGate, sleepGate, wakeGate chan struct{} // one begins when it can receive; nil: at once
}

// NewSequence notes the memory in the call of the context.
func (w *watchedDecoder) NewSequence(ctx context.Context, tokens int, draw model.Draw, tenant *vram.Tenant) (*model.Sequence, error) {
	c, _ := ctx.Value(callKey{}).(*call)
	w.mu.Lock()
	c.wanted = true
	w.mu.Unlock()
	if err := w.fails(&w.allocErr); err != nil {
		return nil, err
	}
	s, err := w.heldDecoder.NewSequence(ctx, tokens, draw, tenant)
	if err == nil {
		w.mu.Lock()
		c.had, c.bytes = time.Now(), s.Bytes()
		w.callers[s] = c
		w.mu.Unlock()
	}
	return s, err
}

// Prefill waits or fails, if the test says so.
func (w *watchedDecoder) Prefill(s *model.Sequence, prompt []int64) (int64, error) {
	if w.prefillGate != nil {
		<-w.prefillGate
	}
	if err := w.fails(&w.prefillErr, s); err != nil {
		return 0, err
	}
	token, err := w.heldDecoder.Prefill(s, prompt)
	w.made(s)
	return token, err
}

// made counts a token of each sequence.
func (w *watchedDecoder) made(of ...*model.Sequence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range of {
		w.callers[s].made++
	}
}

// Step fails once, if the test says so.
func (w *watchedDecoder) Step(all []*model.Sequence) ([]int64, error) {
	tokens, err := w.heldDecoder.Step(all)
	if failed := w.fails(&w.stepErr, all...); failed != nil {
		return nil, failed
	}
	w.made(all...)
	return tokens, err
}

// Wake waits or fails, if the test says so.
func (w *watchedDecoder) Wake(ctx context.Context) error {
	if err := w.fails(&w.wakeErr); err != nil {
		return err
	}
	if w.wakeGate != nil {
		select {
		case <-w.wakeGate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return w.heldDecoder.Wake(ctx)
}

// Sleep waits or fails, if the test says so.
func (w *watchedDecoder) Sleep(ctx context.Context) error {
	if w.sleepGate != nil {
		<-w.sleepGate
	}
	return errors.Join(w.fails(&w.sleepErr), w.heldDecoder.Sleep(ctx))
}

// fails takes an error for the callers of sequences.
func (w *watchedDecoder) fails(err *error, of ...*model.Sequence) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := *err
	*err = nil
	for _, s := range of {
		if taken != nil {
			w.callers[s].failure = taken
		}
	}
	return taken
}

// newBookkeeping opens a service in a bubble: two tenants, with room for some requests of each.
func newBookkeeping(t *testing.T) *bookkeeping {
	t.Helper()
	tenants, err := parseTenants("gold=2,silver=1")
	require.NoError(t, err)
	b := &bookkeeping{rig: openRig(t, settings{Tenants: tenants, Hard: true}), limits: map[string]int64{}, idle: 4 * time.Second}
	parts := 0
	for _, w := range tenants {
		parts += w.parts
	}
	for _, n := range b.device.Stats().Tenants {
		for _, w := range tenants {
			if w.name == n.Name {
				share := int64(float64(w.parts) / float64(parts) * float64(b.cacheBytes))
				assert.Equal(t, [2]int64{share, share}, [2]int64{n.Quota.ShareBytes, n.Quota.LimitBytes}, "-hard: a share is a limit")
			}
		}
	}
	for n, w := range tenants { // small ones, so that requests wait
		b.limits[w.name] = int64(7-2*n) * b.decoder.PageBytes()
		_, err := b.device.Tenant(w.name, vram.Quota{ShareBytes: b.limits[w.name], LimitBytes: b.limits[w.name]})
		require.NoError(t, err)
	}
	b.watched = &watchedDecoder{heldDecoder: b.held, callers: map[*model.Sequence]*call{}}
	gate, open := b.closed()
	b.held.gate = gate
	broken := b.engine.broken
	b.engine.close()
	b.engine, b.sleeper = newEngine(b.watched, broken), newSleeper(b.watched, b.idle, broken)
	t.Cleanup(func() { // also of a test that fails
		open()
		for _, c := range b.calls {
			c.leave()
		}
		b.settle()
	})
	b.base = b.device.Stats().LiveBytes
	b.left = time.Now().Add(time.Hour) // the time without a request begins with the end of the first one
	return b
}

// closed returns a gate that opens when the test says so, and at its end.
func (b *bookkeeping) closed() (gate chan struct{}, open func()) {
	gate = make(chan struct{})
	open = sync.OnceFunc(func() { close(gate) })
	b.t.Cleanup(open)
	return gate, open
}

func (b *bookkeeping) note(format string, args ...any) {
	b.history = append(b.history, fmt.Sprintf(format, args...))
}

// start sends a request.
func (b *bookkeeping) start(tenant string, prompt, tokens int, timeout time.Duration, stream bool) *call {
	c := &call{tenant: tenant, began: time.Now()}
	c.Prompt.text, c.MaxTokens, c.Stream, c.TimeoutSeconds = strings.Repeat("a", prompt), tokens, stream, timeout.Seconds()
	body, err := json.Marshal(c.completionRequest)
	require.NoError(b.t, err)
	c.ctx, c.leave = context.WithCancel(context.WithValue(b.t.Context(), callKey{}, c))
	c.deadline = c.began.Add(timeout)
	b.calls = append(b.calls, c)
	b.note("start %d of %s: %d+%d tokens within %v", len(b.calls)-1, tenant, prompt, tokens, timeout)
	go func() {
		w := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(c.ctx, "POST", "/v1/completions", strings.NewReader(string(body)))
		request.Header.Set(tenantHeader, tenant)
		b.complete(w, request)
		a, ended := answer{status: w.Code, body: w.Body.String()}, time.Now()
		switch {
		case w.Header().Get("Content-Type") == "text/event-stream":
			assert.NoError(b.t, a.events())
		case w.Code == http.StatusOK:
			assert.NoError(b.t, json.Unmarshal(w.Body.Bytes(), &a.completionAnswer))
		default:
			assert.NoError(b.t, json.Unmarshal(w.Body.Bytes(), &a.problem))
		}
		b.held.mu.Lock()
		defer b.held.mu.Unlock()
		c.answer, c.ended, c.done = a, ended, true
		c.leave()
	}()
	return c
}

// leave has the client of a request leave.
func (b *bookkeeping) leave(c *call) {
	b.note("leave %d", slices.Index(b.calls, c))
	c.left = true
	c.leave()
}

// errGone is an error of the device.
var errGone = errors.New("the device is gone")

// judge compares the answer to a request with what has happened to it.
func (b *bookkeeping) judge(n int, c *call) {
	a, made := c.answer, len(c.answer.Tokens)
	status, word := http.StatusOK, ""
	switch {
	case errors.Is(c.failure, errGone):
		status, word = http.StatusInternalServerError, "internal"
	case c.failure != nil && c.Stream:
		word = endedError
	case c.failure != nil:
		status, word = http.StatusServiceUnavailable, "out_of_memory"
	case made == c.MaxTokens:
		word = endedLength
	case made > 0:
		word = endedDeadline
	case c.left:
		status, word = statusClientGone, "client_gone"
	case c.wanted && c.had.IsZero():
		status, word = http.StatusTooManyRequests, "over_quota"
	default:
		status, word = http.StatusGatewayTimeout, "timeout"
	}
	assert.Equal(b.t, [2]any{status, word}, [2]any{a.status, a.Reason + a.problem.Code}, "%d: %s", n, a.body)
	if word == endedDeadline {
		assert.True(b.t, c.left || !c.ended.Before(c.deadline), "%d: it ends before its deadline", n)
	}
	if a.Reason == "" {
		return
	}
	assert.Equal(b.t, c.made, made, n)
	assert.Equal(b.t, usage{len(c.Prompt.text), made, c.bytes, a.Usage.WaitedMicros, a.Usage.FirstMicros}, a.Usage, n)
	assert.InDelta(b.t, c.had.Sub(c.began).Microseconds(), a.Usage.WaitedMicros, 100, n)
	assert.GreaterOrEqual(b.t, a.Usage.FirstMicros, a.Usage.WaitedMicros, n)
}

// live returns the calls that have no answer.
func (b *bookkeeping) live() []*call {
	return slices.DeleteFunc(slices.Clone(b.calls), func(c *call) bool { return c.done })
}

// step lets the step that waits begin, if one does, and waits for the end of it.
func (b *bookkeeping) step() {
	b.note("step")
	select {
	case b.held.gate <- struct{}{}:
	default:
	}
	b.check()
	for _, c := range b.live() {
		assert.NoError(b.t, c.ctx.Err(), "a client that has left is not in another step")
	}
}

// advance lets time pass.
func (b *bookkeeping) advance(d time.Duration) {
	b.note("advance %v", d)
	b.pass(d)
	b.check()
}

// pass lets time pass. Requests that a timer ends write to their calls after that, under the lock: what the test has read is earlier.
func (b *bookkeeping) pass(d time.Duration) {
	b.held.mu.Lock()
	b.held.mu.Unlock() //nolint:staticcheck // an order
	<-time.After(d)    // virtual
}

// settle waits until nothing moves: a step takes microseconds.
func (b *bookkeeping) settle() {
	b.pass(10 * time.Millisecond)
	synctest.Wait()
}

// check compares the service's books with the model, once nothing moves.
func (b *bookkeeping) check() {
	b.t.Helper()
	b.settle()
	type figures struct{ charged, running, waiting, tokens, answered int64 }
	want := map[string]*figures{}
	seconds := map[string]float64{}
	var all, refused, answered, present int64
	for _, name := range []string{"gold", "silver"} {
		want[name] = &figures{}
	}
	oldest := map[string]*call{}
	for n, c := range b.calls {
		f := want[c.tenant]
		if !c.had.IsZero() {
			if c.done {
				seconds[c.tenant] += float64(c.bytes) * c.ended.Sub(c.had).Seconds()
			} else {
				f.charged += c.bytes
				f.running++
			}
		}
		switch {
		case c.done:
			f.tokens += int64(len(c.answer.Tokens))
			if c.answer.Reason != "" {
				f.answered++
				answered++
			} else {
				refused++
			}
			if c.wanted { // else it was refused before
				b.left = latest(b.left, c.ended)
			}
			b.judge(n, c)
		default:
			if c.wanted {
				present++
			}
			if c.wanted && c.had.IsZero() {
				f.waiting++
				if oldest[c.tenant] == nil {
					oldest[c.tenant] = c
				}
				assert.NoError(b.t, c.ctx.Err(), "request %d waits for memory, and its client has left", n)
				assert.True(b.t, time.Now().Before(c.deadline), "request %d waits for memory after its deadline", n)
			}
		}
	}
	failed := b.failed || slices.ContainsFunc(b.calls, func(c *call) bool { return errors.Is(c.failure, errGone) })
	assert.Equal(b.t, failed, b.broken.Load(), "it reports a device that has failed, and no request that has")
	stats, report := b.device.Stats(), b.report()
	var running, waiting int64
	for name, f := range want {
		all, running, waiting = all+f.charged, running+f.running, waiting+f.waiting
		for _, n := range stats.Tenants {
			if n.Name == name {
				assert.Equal(b.t, [3]int64{f.charged, f.charged, b.limits[name]}, [3]int64{n.ChargedBytes, n.HeldBytes, n.Quota.ShareBytes}, name)
			}
		}
		for _, n := range report.Tenants {
			if n.Tenant == name {
				assert.Equal(b.t, [2]int64{f.charged, b.limits[name]}, [2]int64{n.HeldBytes, n.ShareBytes}, name)
			}
		}
		assert.EqualValues(b.t, f.answered, b.tenants[name].answered.Load(), name)
		if c := oldest[name]; c != nil {
			assert.Greater(b.t, b.decoder.SequenceBytes(len(c.Prompt.text)+c.MaxTokens), b.limits[name]-f.charged, "%s: the oldest request waits, and it fits", name)
		}
		ended := float64(len(b.calls)) * (1 << 10) / 1e3 // each is rounded
		assert.InDelta(b.t, seconds[name], b.tenants[name].byteSeconds(), ended+1e-3*seconds[name], "%s: bytes times seconds", name)
	}
	assert.Len(b.t, report.Tenants, len(want))
	assert.Equal(b.t, [2]int64{running, waiting}, [2]int64{report.Requests.Running, report.Requests.Waiting})
	assert.EqualValues(b.t, waiting, stats.Waits.Waiting)
	assert.Equal(b.t, [2]int64{answered, refused}, [2]int64{int64(report.Requests.Answered), int64(report.Requests.Refused)})
	assert.LessOrEqual(b.t, report.Requests.Active, int64(b.decoder.Batch()))
	assert.Equal(b.t, b.cacheBytes, report.Memory.CacheBytes)
	metrics := b.metrics()
	for name, value := range map[string]int64{
		"service_running_requests": running, "service_waiting_requests": waiting, "service_queued_requests": report.Requests.Queued,
		"service_step_sequences": report.Requests.Active,
	} {
		assert.InDelta(b.t, value, metrics[name], 0, name)
	}
	asleep := report.Device.Asleep
	if asleep {
		assert.GreaterOrEqual(b.t, report.Memory.SleepingBytes, b.model.WeightBytes())
	} else {
		assert.Equal(b.t, b.base+all, stats.LiveBytes)
		assert.Zero(b.t, report.Memory.SleepingBytes)
	}
	if len(b.live()) == int(present) { // nobody waits for the weights
		since := time.Since(b.left)
		b.sleeper.turn <- struct{}{}
		assert.EqualValues(b.t, present, b.sleeper.present)
		<-b.sleeper.turn
		assert.False(b.t, asleep && (present > 0 || since < b.idle), "they sleep %v after the last request of %d that are there", since, present)
		assert.True(b.t, asleep || present > 0 || since <= b.idle, "they do not sleep %v after the last request", since)
	}
	if b.t.Failed() {
		require.Fail(b.t, "history:\n"+strings.Join(b.history, "\n"))
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(time.Now()) || b.After(a) {
		return b
	}
	return a
}

// drain makes steps until all requests have their answers.
func (b *bookkeeping) drain() {
	for len(b.live()) > 0 {
		b.step()
	}
	require.Zero(b.t, b.heldBytes("gold")+b.heldBytes("silver"))
	b.checkMetrics()
}

// metrics returns the values of counters and gauges, and the counts of histograms, by name and labels.
func (b *bookkeeping) metrics() map[string]float64 {
	families, err := b.meters.registry.Gather()
	require.NoError(b.t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := []string{f.GetName()}
			for _, l := range m.GetLabel() {
				name = append(name, l.GetValue())
			}
			all[strings.Join(name, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// checkMetrics compares the metrics with the model, once all requests have their answers.
func (b *bookkeeping) checkMetrics() {
	want := map[string]float64{"service_weights_asleep": 0, "service_sleeps_total": float64(b.sleeper.sleeps.Load())}
	if b.sleeper.asleep.Load() {
		want["service_weights_asleep"] = 1
	}
	for _, c := range b.calls {
		tokens := c.made // also of a failed answer that has none
		want["service_tokens_total "+c.tenant] += float64(tokens)
		want["service_answers_total "+c.tenant] += 0
		if c.wanted {
			want["service_memory_wait_seconds "+c.tenant]++
		}
		if tokens > 0 {
			want["service_first_token_seconds "+c.tenant]++
			want["service_token_seconds "+c.tenant] += float64(tokens - 1)
		}
		if c.answer.Reason != "" {
			want["service_answers_total "+c.tenant]++
			want["service_ends_total "+c.answer.Reason]++
		} else {
			want["service_refusals_total "+c.answer.problem.Code]++
		}
	}
	got := b.metrics()
	for name, value := range want {
		assert.InDelta(b.t, value, got[name], 0, name)
	}
	for tenant := range b.limits {
		seconds := b.tenants[tenant].byteSeconds()
		assert.InDelta(b.t, seconds, got["service_byte_seconds_total "+tenant], 0)
	}
}

// However requests end, alone and among others, in any order, the memory of each tenant, the counts and the sleep are as a model
// says after each event.
func TestBooks(t *testing.T) {
	seeds, events := uint64(4), 150
	if testing.Short() {
		seeds, events = 1, 60
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			b := newBookkeeping(t)
			random := rand.New(rand.NewPCG(seed, 1))
			b.note("seed %d", seed)
			for range events {
				live := b.live()
				switch random.IntN(12) {
				case 0, 1, 2, 3:
					timeout := time.Hour
					if random.IntN(2) == 0 {
						timeout = time.Duration(1+random.IntN(5)) * time.Second
					}
					b.start([]string{"gold", "silver"}[random.IntN(2)], 1+random.IntN(9), 1+random.IntN(9), timeout, random.IntN(2) == 0)
					b.check()
				case 4, 5, 6:
					b.step()
				case 7:
					if len(live) > 0 {
						c := live[random.IntN(len(live))]
						b.leave(c)
						b.check()
					}
				case 8, 9:
					b.advance(time.Duration(500+random.IntN(2500)) * time.Millisecond)
				case 10:
					if random.IntN(2) == 0 {
						b.note("the next prefill fails")
						b.watched.prefillErr = errGone
					} else {
						b.note("the next step fails")
						b.watched.stepErr = vram.ErrOutOfMemory
					}
				case 11:
					b.drain()
					b.advance(b.idle + time.Second)
				}
			}
			b.drain()
			assert.NotZero(t, b.sleeper.sleeps.Load())
		})
	}
}

// Requests that wait for the weights are answered at their deadline, also the one that wakes them; those that are left have their memory
// afterwards. A wake that fails refuses one request, and the next one wakes them. Nothing of it is charged.
func TestBooksOfAWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBookkeeping(t)
		b.start("gold", 1, 1, time.Hour, false)
		b.check()
		b.advance(b.idle + time.Second)
		require.True(t, b.sleeper.asleep.Load())
		gate, open := b.closed()
		b.watched.wakeGate = gate
		wakes := b.start("gold", 2, 5, time.Second, false) // has the turn
		b.check()
		late := b.start("gold", 2, 5, 2*time.Second, true)
		left := b.start("silver", 2, 5, time.Hour, true)
		stays := b.start("silver", 2, 5, time.Hour, true)
		b.check()
		b.leave(left)
		b.check()
		assert.Equal(t, "client_gone", left.answer.problem.Code)
		b.advance(1500 * time.Millisecond)
		assert.Equal(t, "timeout", wakes.answer.problem.Code)
		b.advance(time.Second)
		assert.Equal(t, "timeout", late.answer.problem.Code)
		assert.False(t, stays.done)
		assert.Zero(t, b.report().Requests.Waiting)
		open()
		b.check()
		assert.False(t, b.sleeper.asleep.Load())
		assert.False(t, stays.had.IsZero())
		b.drain()
		assert.Equal(t, endedLength, stays.answer.Reason)
		assert.Equal(t, int64(2500*time.Millisecond/time.Microsecond), stays.answer.Usage.WaitedMicros/1e5*1e5)

		b.advance(b.idle + time.Second)
		require.True(t, b.sleeper.asleep.Load())
		b.watched.wakeErr = &vram.OutOfMemoryError{RequestedBytes: 3, FreeBytes: 1, LimitBytes: 7}
		short := b.start("gold", 2, 5, time.Hour, false)
		short.failure = vram.ErrOutOfMemory
		b.check()
		assert.Equal(t, [3]int64{3, 1, 7}, [3]int64{short.answer.problem.RequestedBytes, short.answer.problem.FreeBytes, short.answer.problem.LimitBytes})
		assert.True(t, b.sleeper.asleep.Load())
		b.watched.wakeErr = errGone
		b.start("silver", 2, 5, time.Hour, false).failure = errGone
		b.check()
		b.start("gold", 2, 5, time.Hour, false)
		b.drain()
		assert.EqualValues(t, 2, b.sleeper.sleeps.Load())
		b.watched.allocErr = errGone
		b.start("silver", 2, 5, time.Hour, false).failure = errGone
		b.check()
	})
}

// A request that comes while the weights fall asleep waits for that, and wakes them; weights that could not sleep are woken, too, and the
// service reports it.
func TestBooksOfASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBookkeeping(t)
		gate, open := b.closed()
		b.watched.sleepGate = gate
		b.start("gold", 1, 1, time.Hour, false)
		b.check()
		b.pass(b.idle + time.Second)
		late := b.start("gold", 2, 5, time.Second, true)
		comes := b.start("gold", 2, 5, time.Hour, true)
		b.pass(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, "timeout", late.answer.problem.Code)
		assert.False(t, comes.done || comes.wanted)
		open()
		b.check()
		assert.False(t, comes.had.IsZero())
		b.drain()
		assert.EqualValues(t, 1, b.sleeper.sleeps.Load())

		for range 2 { // they sleep after the last of two requests, and after a request that comes in the time without one
			first := b.start("gold", 2, 2, time.Hour, true)
			last := b.start("silver", 2, 9, time.Hour, true)
			b.check()
			for !first.done {
				b.step()
			}
			b.advance(b.idle + time.Second)
			assert.False(t, last.done)
			b.drain()
			b.advance(b.idle - time.Second)
			comes := b.start("gold", 2, 5, time.Hour, true)
			b.check()
			b.advance(2 * time.Second)
			assert.False(t, comes.done || b.sleeper.asleep.Load())
			b.drain()
			b.advance(b.idle - time.Second)
			b.advance(2 * time.Second)
		}
		assert.EqualValues(t, 3, b.sleeper.sleeps.Load())

		b.start("gold", 2, 5, time.Hour, true)
		b.drain()
		b.watched.sleepErr, b.failed = errGone, true
		b.advance(b.idle + time.Second)
		b.start("silver", 2, 5, time.Hour, true)
		b.drain()
	})
}

// A request whose deadline ends while another one is prefilled frees its memory at once, and so does one whose client leaves. One that
// waits for a place in a step frees it before the next step.
func TestBooksOfAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBookkeeping(t)
		gate, open := b.closed()
		b.watched.prefillGate = gate
		first := b.start("gold", 2, 5, time.Second, true)
		b.check()
		late := b.start("gold", 2, 5, time.Second, true)
		left := b.start("silver", 2, 5, time.Hour, false)
		b.check()
		assert.EqualValues(t, 3, b.running.Load())
		b.leave(left)
		b.check()
		assert.True(t, left.done)
		b.advance(2 * time.Second)
		assert.True(t, late.done)
		assert.False(t, first.done, "its prefill began before")
		open()
		b.check()
		assert.Equal(t, endedDeadline, first.answer.Reason)
		assert.Len(t, first.answer.Tokens, 1)

		b.start("gold", 2, 5, time.Hour, true)
		b.start("gold", 2, 5, time.Hour, true)
		b.check()
		b.step() // of one of them
		late, left = b.start("gold", 2, 5, time.Second, false), b.start("silver", 2, 5, time.Hour, true)
		b.check()
		assert.Equal(t, [2]int64{4, 2}, [2]int64{b.running.Load(), b.report().Requests.Active}, "steps of two")
		b.leave(left)
		b.advance(2 * time.Second)
		assert.False(t, late.done || left.done)
		b.step()
		assert.True(t, late.done && left.done)
		assert.Equal(t, endedDeadline, late.answer.Reason)
		assert.Len(t, late.answer.Tokens, 1)
		b.drain()
		assert.Equal(t, [2]int64{}, [2]int64{b.report().Requests.Active, b.report().Requests.Queued})

		var inOrder []*call
		for _, tenant := range []string{"gold", "gold", "gold", "silver", "silver"} {
			inOrder = append(inOrder, b.start(tenant, 2, 5, time.Hour, false))
			b.check()
		}
		b.step()
		assert.Equal(t, [2]int64{2, 3}, [2]int64{b.report().Requests.Active, b.report().Requests.Queued})
		b.drain()
		for n, c := range inOrder[1:] {
			assert.False(t, c.ended.Before(inOrder[n].ended), "%d: the oldest joins first", n)
		}

		b.start("gold", 2, 5, time.Hour, false)
		b.start("silver", 2, 5, time.Hour, true)
		b.check()
		b.step()
		b.watched.stepErr = vram.ErrOutOfMemory
		b.step()
		assert.Empty(t, b.live(), "a step that fails ends both")
	})
}

// An engine that is closed ends when its last request has: those that it has are answered.
func TestAClosedEngineEndsItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBookkeeping(t)
		for _, tenant := range []string{"gold", "silver", "gold"} {
			b.start(tenant, 2, 3, time.Hour, true)
		}
		b.check()
		closed := make(chan struct{})
		go func() {
			b.engine.close()
			close(closed)
		}()
		b.check()
		select {
		case <-closed:
			assert.Fail(t, "it has requests")
		default:
		}
		b.drain()
		<-closed
		for _, c := range b.calls {
			assert.Equal(t, endedLength, c.answer.Reason)
		}
		b.engine = newEngine(b.watched, b.engine.broken) // which Close closes
	})
}
