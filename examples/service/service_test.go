package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// rig is a service under the hazard checker, on a device whose kernels end when the test advances time.
type rig struct {
	*Service
	t   *testing.T
	gpu *sim.Device
}

// newRig opens a service that is closed at the end of the test, when no buffer may be live.
func newRig(t *testing.T, s settings) *rig {
	t.Helper()
	driver := sim.New(sim.Config{})
	s.Config.Driver = driver
	config, checked := vramtest.Watch(s.Config)
	s.Config = config
	s.Config.Driver = checked // the service opens one driver for all
	t.Cleanup(func() { assert.NoError(t, checked.Checker(0).Err()) })
	s.WorkerCount, s.BacklogCount = max(1, s.WorkerCount), max(1, s.BacklogCount)
	if s.Timeout == 0 {
		s.Timeout = time.Hour
	}
	sv, err := Open(s)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sv.Close()) })
	return &rig{sv, t, driver.Device(0)}
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

// kernels lets time pass until no kernel runs.
func (r *rig) kernels() { r.gpu.Advance(time.Hour) }

// request is a client's answer.
type answer struct {
	status     int
	retryAfter string
	body       string
	problem    problem
	infer      inferAnswer
}

func send(ctx context.Context, t *testing.T, client *http.Client, method, url, body string) (answer, error) {
	t.Helper()
	return sendAs(ctx, t, client, "", method, url, body)
}

// sendAs is send for a tenant.
func sendAs(ctx context.Context, t *testing.T, client *http.Client, tenant, method, url, body string) (answer, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	if tenant != "" {
		request.Header.Set(tenantHeader, tenant)
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { assert.NoError(t, response.Body.Close()) }()
	text, err := io.ReadAll(response.Body)
	a := answer{status: response.StatusCode, retryAfter: response.Header.Get("Retry-After"), body: string(text)}
	if err == nil && strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		if a.status == http.StatusOK {
			err = json.Unmarshal(text, &a.infer)
		} else {
			err = json.Unmarshal(text, &a.problem)
		}
	}
	return a, err
}

const (
	small = `{"prompt_tokens": 512, "new_tokens": 64}`
	// Keys and values of 18432 tokens, activations of 16384, 16 lines of logits.
	large      = `{"prompt_tokens": 1024, "new_tokens": 128, "batch": 16}`
	largeBytes = 16 * ((1024+128)*131072 + 1024*32768 + 128000)
)

// Requests that are answered without waiting for a kernel.
func TestRefusals(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 3 << 30}})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	for name, c := range map[string]struct {
		method, path, body string
		status             int
		code               string
	}{
		"no body":          {"POST", "/v1/infer", "", 400, "bad_body"},
		"no JSON":          {"POST", "/v1/infer", "hello", 400, "bad_body"},
		"unknown field":    {"POST", "/v1/infer", `{"prompt_tokens": 1, "new_tokens": 1, "color": 3}`, 400, "bad_body"},
		"text for number":  {"POST", "/v1/infer", `{"prompt_tokens": "1"}`, 400, "bad_body"},
		"two objects":      {"POST", "/v1/infer", small + small, 400, "bad_body"},
		"garbage behind":   {"POST", "/v1/infer", small + "}", 400, "bad_body"},
		"too long a body":  {"POST", "/v1/infer", strings.Repeat(" ", mostBodyBytes) + small, 413, "body_too_large"},
		"no tokens":        {"POST", "/v1/infer", `{"prompt_tokens": 512}`, 400, "bad_size"},
		"negative":         {"POST", "/v1/infer", `{"prompt_tokens": -1, "new_tokens": 1}`, 400, "bad_size"},
		"too many tokens":  {"POST", "/v1/infer", `{"prompt_tokens": 32769, "new_tokens": 1}`, 400, "bad_size"},
		"too many in all":  {"POST", "/v1/infer", `{"prompt_tokens": 32768, "new_tokens": 1, "batch": 64}`, 400, "bad_size"},
		"more than memory": {"POST", "/v1/infer", `{"prompt_tokens": 32768, "new_tokens": 4096}`, 507, "larger_than_device"},
		"wrong method":     {"GET", "/v1/infer", "", 405, ""},
		"unknown path":     {"GET", "/v2", "", 404, ""},
	} {
		a, err := send(t.Context(), t, server.Client(), c.method, server.URL+c.path, c.body)
		require.NoError(t, err, name)
		assert.Equal(t, c.status, a.status, "%s: %s", name, a.body)
		assert.Equal(t, c.code, a.problem.Code, name)
		assert.Empty(t, a.retryAfter, "%s: trying again does not help", name)
	}
	a, err := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", `{"prompt_tokens": 32768, "new_tokens": 4096}`)
	require.NoError(t, err)
	assert.Equal(t, int64(3<<30), a.problem.LimitBytes)
	assert.Greater(t, a.problem.RequestedBytes, a.problem.LimitBytes)
	assert.Zero(t, r.device.Stats().LiveBytes)
}

// A request holds its memory while its kernel runs and not longer.
func TestInfer(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	done := make(chan answer, 1)
	go func() {
		a, err := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", large)
		assert.NoError(t, err)
		done <- a
	}()
	r.until("the buffers", func() bool {
		now := r.report()
		return now.Memory.LiveBytes >= largeBytes && now.Requests.Running == 1
	})
	stats, err := send(t.Context(), t, server.Client(), "GET", server.URL+"/stats", "")
	require.NoError(t, err)
	var seen report
	require.NoError(t, json.Unmarshal([]byte(stats.body), &seen))
	assert.Equal(t, int64(1), seen.Requests.Running)
	assert.Equal(t, "sim", seen.Device.Driver)
	assert.GreaterOrEqual(t, seen.Memory.ReservedBytes, int64(largeBytes))
	require.Len(t, seen.Streams, 1)
	assert.Equal(t, uint64(3), seen.Streams[0].AllocCount)
	select {
	case <-done:
		assert.Fail(t, "the request ended before its kernel")
	default:
	}
	r.until("the kernel", func() bool { r.kernels(); return len(done) > 0 })
	a := <-done
	assert.Equal(t, http.StatusOK, a.status, a.body)
	assert.Equal(t, int64(largeBytes), a.infer.Bytes)
	assert.Equal(t, 16*128, a.infer.Tokens)
	assert.Zero(t, r.report().Memory.LiveBytes)
	assert.Equal(t, requestReport{Answered: 1}, r.report().Requests)
}

// hold starts requests whose kernels do not end, and returns their answers to come.
func (r *rig) hold(server *httptest.Server, body string, count int) <-chan answer {
	r.t.Helper()
	return r.holdAs(server, "", body, count)
}

// holdAs is hold for a tenant.
func (r *rig) holdAs(server *httptest.Server, tenant, body string, count int) <-chan answer {
	r.t.Helper()
	answers := make(chan answer, count)
	for range count {
		go func() {
			a, err := sendAs(r.t.Context(), r.t, server.Client(), tenant, "POST", server.URL+"/v1/infer", body)
			assert.NoError(r.t, err)
			answers <- a
		}()
	}
	return answers
}

// A request that does not fit waits without holding memory, and is served when running ones end.
func TestWaitsForMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 4 << 30}, WorkerCount: 2, BacklogCount: 1})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	first := r.hold(server, large, 1)
	r.until("the first request's memory", func() bool { return r.running.Load() == 1 })
	second := r.hold(server, large, 1)
	r.until("the second request to wait", func() bool { return r.waiting.Load() == 1 })
	assert.Equal(t, int64(1), r.running.Load())
	assert.Less(t, r.report().Memory.LiveBytes, 2*int64(largeBytes))
	r.until("the first request's end", func() bool { r.kernels(); return len(first) > 0 })
	assert.Equal(t, http.StatusOK, (<-first).status)
	r.until("the second request's end", func() bool { r.kernels(); return len(second) > 0 })
	a := <-second
	assert.Equal(t, http.StatusOK, a.status, a.body)
	assert.Positive(t, a.infer.WaitedMicros)
	assert.LessOrEqual(t, r.report().Memory.PeakReservedBytes, int64(4<<30))
}

// A request that waits for memory beyond the timeout gets an error, and leaks nothing.
func TestTimeoutForMemory(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 4 << 30}, BacklogCount: 1, Timeout: 20 * time.Millisecond})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	other, err := r.device.NewStream()
	require.NoError(t, err)
	held, err := other.Alloc(3 << 30)
	require.NoError(t, err)
	a, err := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", large)
	require.NoError(t, err)
	assert.Equal(t, http.StatusGatewayTimeout, a.status, a.body)
	assert.Zero(t, r.waiting.Load())
	require.NoError(t, held.Free())
	assert.Zero(t, r.report().Memory.LiveBytes)
}

// A tenant at its hard limit waits for its own requests; others do not wait for it.
func TestTenantsDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 512 << 20}, BacklogCount: 10, Tenants: []weight{{"greedy", 1}, {"modest", 1}}, Hard: true})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	greedy := r.holdAs(server, "greedy", small, 5)
	r.until("two running and three waiting", func() bool { return r.running.Load() == 2 && r.waiting.Load() == 3 })
	modest := r.holdAs(server, "modest", small, 2)
	r.until("four running", func() bool { return r.running.Load() == 4 })
	assert.Equal(t, int64(3), r.waiting.Load())
	r.until("all to end", func() bool { r.kernels(); return len(greedy) == 5 && len(modest) == 2 })
	for range 5 {
		assert.Equal(t, http.StatusOK, (<-greedy).status)
	}
	a, b := <-r.holdAs(server, "nobody", small, 1), <-r.hold(server, small, 1)
	assert.Equal(t, http.StatusForbidden, a.status)
	assert.Equal(t, "unknown_tenant", a.problem.Code)
	assert.Equal(t, http.StatusForbidden, b.status, "it names none")
	c := <-r.holdAs(server, "greedy", `{"prompt_tokens": 2048, "new_tokens": 64}`, 1)
	assert.Equal(t, http.StatusInsufficientStorage, c.status)
	assert.Equal(t, "larger_than_quota", c.problem.Code)
	assert.Equal(t, int64(256<<20), c.problem.LimitBytes)

	metrics, err := send(t.Context(), t, server.Client(), "GET", server.URL+"/metrics", "")
	require.NoError(t, err)
	for _, line := range []string{
		`service_answers_total{tenant="greedy"} 5`, `service_answers_total{tenant="modest"} 2`,
		`service_request_seconds_count{tenant="greedy"} 5`, `service_memory_wait_seconds_count{tenant="modest"} 2`,
		`service_refusals_total{code="unknown_tenant"} 2`, `service_refusals_total{code="larger_than_quota"} 1`,
		`service_running_requests 0`, `vram_memory_bytes{device="0",state="live"} 0`, `vram_limit_bytes{device="0"} 5.36870912e+08`,
	} {
		assert.Contains(t, metrics.body, line+"\n")
	}
}

// A process whose allocator is broken reports it, to be replaced.
func TestUnhealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	a, err := send(t.Context(), t, server.Client(), "GET", server.URL+"/healthz", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, a.status)
	r.quarantined(vram.QuarantineEvent{Err: vram.ErrQuarantined})
	a, err = send(t.Context(), t, server.Client(), "GET", server.URL+"/healthz", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusInternalServerError, a.status)
}

// Requests wait for memory up to the backlog; further ones are refused at once.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 128 << 20}, BacklogCount: 2})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	held := r.hold(server, small, 1)
	r.until("one running", func() bool { return r.running.Load() == 1 })
	queued := r.hold(server, small, 2)
	r.until("two waiting", func() bool { return r.waiting.Load() == 2 })
	a, err := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", small)
	require.NoError(t, err)
	assert.Equal(t, http.StatusTooManyRequests, a.status, a.body)
	assert.Equal(t, "1", a.retryAfter)
	r.until("all to end", func() bool { r.kernels(); return len(held) == 1 && len(queued) == 2 })
	assert.Equal(t, http.StatusOK, (<-held).status)
	for range 2 {
		assert.Equal(t, http.StatusOK, (<-queued).status)
	}
	assert.Equal(t, requestReport{Answered: 3, Refused: 1}, r.report().Requests)
}

// A client that leaves ends its request, waiting or running: its memory becomes free.
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 4 << 30}, BacklogCount: 2})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := send(ctx, t, server.Client(), "POST", server.URL+"/v1/infer", large)
			gone <- err
		}()
	}
	r.until("one running and one waiting", func() bool { return r.running.Load() == 1 && r.waiting.Load() == 1 })
	leave()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.ErrorIs(t, <-gone, context.Canceled)
	r.until("both to leave", func() bool { return r.running.Load() == 0 && r.waiting.Load() == 0 && r.refused.Load() == 2 })
	assert.Zero(t, r.report().Memory.LiveBytes)
	next := r.hold(server, small, 1)
	r.until("the next request's end", func() bool { r.kernels(); return len(next) > 0 })
	assert.Equal(t, http.StatusOK, (<-next).status)
}

// The service ends a request that takes too long.
func TestTimeout(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{Timeout: 20 * time.Millisecond})
	server := httptest.NewServer(r.Handler())
	defer server.Close()
	a, err := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", small)
	require.NoError(t, err)
	assert.Equal(t, http.StatusGatewayTimeout, a.status, a.body)
	assert.Equal(t, "1", a.retryAfter)
	assert.Zero(t, r.report().Memory.LiveBytes)
}
