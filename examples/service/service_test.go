package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/monitor/heapprofile"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// small is the model of most tests: one layer of 32, with a context that has room for long answers.
func small() model.Config {
	c := model.Tiny
	c.Context, c.Layers = 64, 1
	return c
}

// rig is a service on the device that computes without a GPU, whose steps a test may hold.
type rig struct {
	*Service
	t      *testing.T
	server *httptest.Server
	held   *heldDecoder
}

// heldDecoder lets a step begin when the test allows it.
type heldDecoder struct {
	decoder
	mu   sync.Mutex
	gate chan struct{} // a step begins when it can receive; nil: at once
	err  error         // of every step
}

func (h *heldDecoder) Step(all []*model.Sequence) ([]int64, error) {
	h.mu.Lock()
	gate, err := h.gate, h.err
	h.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if gate != nil {
		<-gate
	}
	return h.decoder.Step(all)
}

// hold has steps wait until the result is called.
func (h *heldDecoder) hold() (release func()) {
	gate := make(chan struct{})
	h.mu.Lock()
	h.gate = gate
	h.mu.Unlock()
	return sync.OnceFunc(func() { close(gate) })
}

// newRig opens a service that is closed at the end of the test, when nothing may be left.
func newRig(t *testing.T, s settings) *rig {
	t.Helper()
	r := openRig(t, s)
	r.server = httptest.NewServer(r.Handler())
	t.Cleanup(r.server.Close)
	return r
}

func openRig(t *testing.T, s settings) *rig {
	t.Helper()
	s.Config.Driver = cpu.New(cpu.Config{})
	if s.Model == (model.Config{}) {
		s.Model = small()
	}
	s.Seed = 1
	if s.Decoding == (model.Decoding{}) {
		s.Decoding = model.Decoding{Batch: 2, Chunk: 4, PageRows: 4}
	}
	if s.Timeout == 0 {
		s.Timeout = time.Hour
	}
	sv, err := Open(s)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, n := range sv.device.Stats().Tenants {
			assert.Zero(t, n.ChargedBytes, n.Name)
		}
		assert.NoError(t, sv.Close(), "nothing lives")
	})
	r := &rig{Service: sv, t: t, held: &heldDecoder{decoder: sv.decoder}}
	sv.engine.close()
	sv.engine = newEngine(r.held, sv.engine.broken)
	return r
}

// until waits for a condition that another goroutine establishes.
func (r *rig) until(what string, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); !done(); runtime.Gosched() {
		if time.Now().After(end) {
			require.Fail(r.t, "it never came: "+what)
		}
	}
}

// answer is what a client gets.
type answer struct {
	status     int
	retryAfter string
	body       string
	problem    problem
	completionAnswer
}

// ask sends a request of a tenant and reads the answer, streamed or not.
func (r *rig) ask(ctx context.Context, tenant string, request completionRequest) (answer, error) {
	return r.askAt(ctx, r.server.Client(), r.server.URL, tenant, request)
}

func (r *rig) askAt(ctx context.Context, client *http.Client, url, tenant string, request completionRequest) (answer, error) {
	body, err := json.Marshal(request)
	if err != nil {
		return answer{}, err
	}
	return r.send(ctx, client, "POST", url+"/v1/completions", tenant, string(body))
}

func (r *rig) send(ctx context.Context, client *http.Client, method, url, tenant, body string) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if tenant != "" {
		request.Header.Set(tenantHeader, tenant)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { assert.NoError(r.t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	a := answer{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), body: string(text)}
	switch {
	case err != nil:
		return a, err
	case response.Header.Get("Content-Type") == "text/event-stream":
		return a, a.events()
	case a.status != http.StatusOK && response.Header.Get("Content-Type") == "application/json":
		return a, json.Unmarshal(text, &a.problem)
	case method == "POST":
		return a, json.Unmarshal(text, &a.completionAnswer)
	}
	return a, nil
}

// events reads the events of a streamed answer.
func (a *answer) events() error {
	var tokens []int64
	done := false
	for lines := bufio.NewScanner(strings.NewReader(a.body)); lines.Scan(); {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		if !found {
			continue
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var event struct {
			Token *int64 `json:"token"`
		}
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return err
		}
		if event.Token != nil {
			tokens = append(tokens, *event.Token)
		} else if err := json.Unmarshal([]byte(data), &a.completionAnswer); err != nil {
			return err
		}
	}
	if a.Tokens = tokens; !done {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// heldBytes returns a tenant's memory.
func (r *rig) heldBytes(tenant string) int64 {
	for _, n := range r.device.Stats().Tenants {
		if n.Name == tenant {
			return n.HeldBytes
		}
	}
	return -1
}

// text is a request of a text.
func text(prompt string, tokens int) completionRequest {
	return completionRequest{Prompt: promptOf(prompt), MaxTokens: tokens}
}

func promptOf(text string) prompt { return prompt{text: text} }

// plain returns what the plain model makes of a prompt.
func (r *rig) plain() *model.Model {
	r.t.Helper()
	m, err := model.New(r.context, r.ops, r.model, r.settings.Seed)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { assert.NoError(r.t, m.Close()) })
	return m
}

// Eight clients of three tenants at once, who come between each other's steps, get the tokens of the plain model, streamed and at
// once, before the weights have slept and after it.
func TestTokensAreThePlainModels(t *testing.T) {
	tenants, err := parseTenants("gold=2,silver=1,bronze=1")
	require.NoError(t, err)
	two := small()
	two.Layers = 2
	r := newRig(t, settings{Tenants: tenants, Model: two, Decoding: model.Decoding{Batch: 4, Chunk: 8, PageRows: 4}})
	m := r.plain()
	type client struct {
		completionRequest
		tenant string
		want   []int64
	}
	var clients []client
	for n := range 8 {
		c := client{text("the quick brown fox"[n:n+1+2*n%9], 2+n%3), tenants[n%3].name, nil}
		c.Stream = n%2 == 0
		tokens, err := encode(r.model, c.Prompt.text)
		require.NoError(t, err)
		all, err := m.Sample(tokens, c.MaxTokens, model.Sampling{})
		require.NoError(t, err)
		c.want = all[len(tokens):]
		clients = append(clients, c)
	}
	for range 2 {
		var all sync.WaitGroup
		for _, c := range clients {
			all.Go(func() {
				a, err := r.ask(t.Context(), c.tenant, c.completionRequest)
				assert.NoError(t, err)
				assert.Equal(t, c.want, a.Tokens, "%+v", a)
				assert.Equal(t, endedLength, a.Reason)
				assert.Equal(t, c.MaxTokens, a.Usage.CompletionTokens)
			})
		}
		all.Wait()
		for _, w := range tenants {
			assert.Zero(t, r.heldBytes(w.name), w.name)
		}
		r.sleeper.sleep(r.sleeper.began)
		require.True(t, r.sleeper.asleep.Load())
		assert.GreaterOrEqual(t, r.report().Memory.SleepingBytes, r.model.WeightBytes())
	}
	a, err := r.ask(t.Context(), "gold", clients[0].completionRequest)
	require.NoError(t, err)
	assert.Equal(t, clients[0].want, a.Tokens)
	assert.False(t, r.sleeper.asleep.Load())
	assert.Equal(t, uint64(2), r.sleeper.sleeps.Load())
}

// settle waits until a tenant's memory is free.
func (r *rig) settle(tenant string) {
	r.t.Helper()
	r.until("the tenant's memory to be free", func() bool { return r.heldBytes(tenant) == 0 && r.running.Load() == 0 })
}

// A client that leaves in the middle ends its answer: its pages are free at once, and others' answers continue.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("leaving=1,staying=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants})
	release := r.held.hold()
	defer release()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	body, err := json.Marshal(completionRequest{Prompt: promptOf("ab"), MaxTokens: 50, Stream: true})
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(ctx, "POST", r.server.URL+"/v1/completions", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set(tenantHeader, "leaving")
	response, err := r.server.Client().Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	line, err := bufio.NewReader(response.Body).ReadString('\n') // the first token comes without a step
	require.NoError(t, err)
	assert.Contains(t, line, `data: {"token":`)
	assert.Equal(t, r.decoder.SequenceBytes(52), r.heldBytes("leaving"))
	others := make(chan answer, 1)
	go func() {
		a, err := r.ask(t.Context(), "staying", text("xyz", 9))
		assert.NoError(t, err)
		others <- a
	}()
	r.until("the other request", func() bool { return r.running.Load() == 2 })
	leave()
	release()
	r.settle("leaving")
	a := <-others
	assert.Equal(t, endedLength, a.Reason)
	assert.Len(t, a.Tokens, 9)
	assert.Equal(t, uint64(1), r.tenants["staying"].answered.Load())
	r.settle("staying")
}

// A client that leaves while its request waits for memory ends the wait.
func TestClientLeavesBeforeItHasMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	free := r.fill()
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := r.ask(ctx, "", text("a", 2))
		gone <- err
	}()
	r.until("the wait", func() bool { return r.device.Stats().Waits.Waiting == 1 })
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	r.until("the end of the wait", func() bool { return r.waiting.Load() == 0 && r.refused.Load() == 1 })
	free()
	a, err := r.ask(t.Context(), "", text("a", 2))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, a.status)
}

// fill allocates all memory that the device's limit leaves. The result frees it.
func (r *rig) fill() (free func()) {
	r.t.Helper()
	require.NoError(r.t, r.device.Reconfigure(vram.Settings{LimitBytes: new(int64(16 << 20))}))
	s := r.context.Stream() // the pages' one, with what it has in its cache
	var all []vram.Buffer
	for bytes := int64(8 << 20); bytes >= 512; {
		b, err := s.Alloc(bytes)
		if err != nil {
			require.ErrorIs(r.t, err, vram.ErrOutOfMemory)
			bytes /= 2
			continue
		}
		all = append(all, b)
	}
	return func() { require.NoError(r.t, s.FreeBatch(all)) }
}

// A request that does not fit waits until another one has ended: here within its tenant's quota. Other tenants do not wait.
func TestWaitsForMemory(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("greedy=1,modest=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants})
	_, err = r.device.Tenant("greedy", vram.Quota{LimitBytes: r.decoder.SequenceBytes(12)})
	require.NoError(t, err)
	release := r.held.hold()
	defer release()
	answers := make(chan answer, 3)
	ask := func(tenant string) {
		a, err := r.ask(t.Context(), tenant, text("ab", 10))
		assert.NoError(t, err)
		answers <- a
	}
	go ask("greedy")
	r.until("the first request's memory", func() bool { return r.running.Load() == 1 })
	go ask("greedy")
	r.until("the second request to wait", func() bool { return r.waiting.Load() == 1 })
	go ask("modest")
	r.until("the third request's memory", func() bool { return r.running.Load() == 2 })
	assert.Equal(t, int64(1), r.waiting.Load())
	assert.Equal(t, r.decoder.SequenceBytes(12), r.heldBytes("greedy"))
	release()
	for range 3 {
		a := <-answers
		assert.Equal(t, endedLength, a.Reason, "%+v", a)
		assert.Len(t, a.Tokens, 10)
	}
	var stats vram.TenantStats
	for _, n := range r.device.Stats().Tenants {
		if n.Name == "greedy" {
			stats = n
		}
	}
	assert.Positive(t, stats.Longest)
	assert.Equal(t, r.decoder.SequenceBytes(12), stats.PeakHeldBytes)
}

// A deadline ends a wait: with 429 where the tenant's own requests had the memory, and with 503 where others had it.
func TestDeadlinesOfWaits(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("greedy=1,modest=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants})
	_, err = r.device.Tenant("greedy", vram.Quota{LimitBytes: r.decoder.SequenceBytes(12)})
	require.NoError(t, err)
	release := r.held.hold()
	defer release()
	first := make(chan answer, 1)
	go func() {
		a, err := r.ask(t.Context(), "greedy", text("ab", 10))
		assert.NoError(t, err)
		first <- a
	}()
	r.until("the first request's memory", func() bool { return r.running.Load() == 1 })
	soon := text("ab", 10)
	soon.TimeoutSeconds = 0.02
	a, err := r.ask(t.Context(), "greedy", soon)
	require.NoError(t, err)
	assert.Equal(t, http.StatusTooManyRequests, a.status, a.body)
	assert.Equal(t, "over_quota", a.problem.Code)
	assert.Equal(t, "1", a.retryAfter)
	free := r.fill()
	a, err = r.ask(t.Context(), "modest", soon)
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, a.status, a.body)
	assert.Equal(t, "no_memory_in_time", a.problem.Code)
	assert.Equal(t, "1", a.retryAfter)
	free()
	release()
	assert.Equal(t, endedLength, (<-first).Reason)
	assert.Zero(t, r.waiting.Load())
}

// A deadline in the middle of an answer ends it with the tokens so far, and one before its first token is 504.
func TestDeadlineOfAnAnswer(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	timeout, late := time.Microsecond, 0
	r.until("an answer that its deadline ends", func() bool {
		request := text("ab", 60)
		request.TimeoutSeconds, request.Stream = timeout.Seconds(), true
		a, err := r.ask(t.Context(), "", request)
		require.NoError(t, err)
		switch {
		case a.Reason == endedDeadline:
			assert.NotEmpty(t, a.Tokens)
			assert.Less(t, len(a.Tokens), 60)
			assert.Equal(t, len(a.Tokens), a.Usage.CompletionTokens)
			return true
		case a.Reason == endedLength: // the machine is fast now
			timeout /= 8
		default:
			assert.Equal(t, http.StatusGatewayTimeout, a.status, a.body)
			assert.Equal(t, "timeout", a.problem.Code)
			late++
		}
		timeout *= 2
		return false
	})
	assert.Positive(t, late)
	assert.Zero(t, r.running.Load())
}

// Requests that no waiting would help are refused.
func TestRefusals(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("gold=1,tight=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants})
	_, err = r.device.Tenant("tight", vram.Quota{LimitBytes: r.decoder.SequenceBytes(8)})
	require.NoError(t, err)
	url := r.server.URL + "/v1/completions"
	for name, c := range map[string]struct {
		tenant, body string
		status       int
		code         string
	}{
		"no object":            {"gold", `[1]`, http.StatusBadRequest, "bad_body"},
		"two objects":          {"gold", `{"prompt":"a"} {}`, http.StatusBadRequest, "bad_body"},
		"an unknown field":     {"gold", `{"prompt":"a","n":2}`, http.StatusBadRequest, "bad_body"},
		"a prompt of numbers":  {"gold", `{"prompt":7}`, http.StatusBadRequest, "bad_body"},
		"no prompt":            {"gold", `{}`, http.StatusBadRequest, "bad_request"},
		"a token out of range": {"gold", `{"prompt":[256]}`, http.StatusBadRequest, "bad_request"},
		"a negative token":     {"gold", `{"prompt":[-1]}`, http.StatusBadRequest, "bad_request"},
		"too long a prompt":    {"gold", `{"prompt":"` + strings.Repeat("a", 65) + `"}`, http.StatusBadRequest, "bad_request"},
		"too many tokens":      {"gold", `{"prompt":"a","max_tokens":65}`, http.StatusBadRequest, "bad_request"},
		"a negative number":    {"gold", `{"prompt":"a","max_tokens":-1}`, http.StatusBadRequest, "bad_request"},
		"a cold temperature":   {"gold", `{"prompt":"a","temperature":-1}`, http.StatusBadRequest, "bad_request"},
		"a negative top":       {"gold", `{"prompt":"a","top_k":-1}`, http.StatusBadRequest, "bad_request"},
		"a long timeout":       {"gold", `{"prompt":"a","timeout_seconds":3601}`, http.StatusBadRequest, "bad_request"},
		"a large body":         {"gold", `{"prompt":"` + strings.Repeat("a", mostBodyBytes) + `"}`, http.StatusRequestEntityTooLarge, "body_too_large"},
		"no tenant":            {"", `{"prompt":"a"}`, http.StatusForbidden, "unknown_tenant"},
		"a foreign tenant":     {"lead", `{"prompt":"a"}`, http.StatusForbidden, "unknown_tenant"},
		"over its quota":       {"tight", `{"prompt":"abcdefghi"}`, http.StatusInsufficientStorage, "larger_than_quota"},
	} {
		a, err := r.send(t.Context(), r.server.Client(), "POST", url, c.tenant, c.body)
		require.NoError(t, err, name)
		assert.Equal(t, c.status, a.status, "%s: %s", name, a.body)
		assert.Equal(t, c.code, a.problem.Code, name)
		assert.Empty(t, a.retryAfter, name)
	}
	r.cacheBytes = r.decoder.SequenceBytes(8)
	a, err := r.ask(t.Context(), "gold", text("abcdefghi", 16))
	require.NoError(t, err)
	assert.Equal(t, http.StatusInsufficientStorage, a.status)
	assert.Equal(t, "larger_than_device", a.problem.Code)
	assert.Equal(t, r.decoder.SequenceBytes(25), a.problem.RequestedBytes)
	a, err = r.send(t.Context(), r.server.Client(), "GET", url, "", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusMethodNotAllowed, a.status)
	assert.Zero(t, r.running.Load()+r.waiting.Load())
}

// A token ends an answer before its length; a seed draws the same tokens again.
func TestStopAndSeed(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	request := text("ab", 12)
	request.Temperature, request.TopK, request.Seed = 1, 20, 7
	first, err := r.ask(t.Context(), "", request)
	require.NoError(t, err)
	again, err := r.ask(t.Context(), "", request)
	require.NoError(t, err)
	assert.Equal(t, first.Tokens, again.Tokens)
	request.Seed = 8
	other, err := r.ask(t.Context(), "", request)
	require.NoError(t, err)
	assert.NotEqual(t, first.Tokens, other.Tokens)
	request.Seed, request.Stop = 7, &first.Tokens[5]
	end := slices.Index(first.Tokens, *request.Stop) + 1
	stopped, err := r.ask(t.Context(), "", request)
	require.NoError(t, err)
	assert.Equal(t, first.Tokens[:end], stopped.Tokens)
	assert.Equal(t, endedStop, stopped.Reason)
	assert.Equal(t, decode(r.model, stopped.Tokens...), decode(r.model, first.Tokens[:end]...))
}

// Metrics and the heap profile name the caches by tenant.
func TestCachesAreNamed(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("gold=1,silver=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants, Config: vram.Config{SampleBytes: 1}})
	release := r.held.hold()
	defer release()
	answers := make(chan answer, 2)
	for n, tenant := range []string{"gold", "silver"} {
		go func() {
			a, err := r.ask(t.Context(), tenant, text("abc", 10+20*n))
			assert.NoError(t, err)
			answers <- a
		}()
	}
	r.until("both to have memory", func() bool { return r.running.Load() == 2 })
	metrics, err := r.send(t.Context(), r.server.Client(), "GET", r.server.URL+"/metrics", "", "")
	require.NoError(t, err)
	held := map[string]int64{}
	for _, s := range heapprofile.Of(r.device).Sample {
		if len(s.Label["tag"]) > 0 && s.Label["tag"][0] == "keys and values" {
			held[s.Label["tenant"][0]] += s.Value[3]
		}
	}
	for tenant, tokens := range map[string]int{"gold": 13, "silver": 33} {
		assert.Equal(t, r.decoder.SequenceBytes(tokens), held[tenant])
		assert.Contains(t, metrics.body, fmt.Sprintf("vram_tenant_memory_bytes{device=\"0\",tenant=%q} %d\n", tenant, r.decoder.SequenceBytes(tokens)))
	}
	profile, err := r.send(t.Context(), r.server.Client(), "GET", r.server.URL+"/debug/vram/heap?debug=1", "", "")
	require.NoError(t, err)
	assert.Contains(t, profile.body, "model.(*Decoder).NewSequence")
	release()
	for range 2 {
		assert.Equal(t, endedLength, (<-answers).Reason)
	}
	metrics, err = r.send(t.Context(), r.server.Client(), "GET", r.server.URL+"/metrics", "", "")
	require.NoError(t, err)
	for _, line := range []string{
		`service_tokens_total{tenant="gold"} 10`, `service_tokens_total{tenant="silver"} 30`, `service_answers_total{tenant="gold"} 1`,
		`service_ends_total{reason="length"} 2`, `service_first_token_seconds_count{tenant="gold"} 1`, `service_token_seconds_count{tenant="silver"} 29`,
	} {
		assert.Contains(t, metrics.body, line+"\n")
	}
}

// The weights sleep once no request was there for the given time, and wake for the next one.
func TestIdleWeightsSleep(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Idle: time.Millisecond})
	before, err := r.ask(t.Context(), "", text("ab", 3))
	require.NoError(t, err)
	r.until("sleep", func() bool { return r.sleeper.asleep.Load() })
	after, err := r.ask(t.Context(), "", text("ab", 3))
	require.NoError(t, err)
	assert.Equal(t, before.Tokens, after.Tokens)
	assert.Positive(t, r.sleeper.sleeps.Load())
}

// A process whose device has failed reports it, to be replaced, and the request has an answer.
func TestUnhealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	health := func() int {
		a, err := r.send(t.Context(), r.server.Client(), "GET", r.server.URL+"/healthz", "", "")
		require.NoError(t, err)
		return a.status
	}
	assert.Equal(t, http.StatusOK, health())
	r.held.mu.Lock()
	r.held.err = errors.New("the device is gone")
	r.held.mu.Unlock()
	a, err := r.ask(t.Context(), "", text("ab", 3))
	require.NoError(t, err)
	assert.Equal(t, http.StatusInternalServerError, a.status, a.body)
	assert.Equal(t, "internal", a.problem.Code)
	request := text("ab", 3)
	request.Stream = true
	a, err = r.ask(t.Context(), "", request)
	require.NoError(t, err)
	assert.Equal(t, endedError, a.Reason, a.body)
	assert.Len(t, a.Tokens, 1)
	assert.Equal(t, "internal", a.Error.Code)
	assert.Equal(t, http.StatusInternalServerError, health())
	assert.Zero(t, r.running.Load())
}
