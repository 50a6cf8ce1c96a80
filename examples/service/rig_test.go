package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// small is the model of most tests: one layer of 32, in the short form of 16, with a context that has room for long answers.
func small() model.Config {
	c := model.Tiny
	c.Context, c.Layers = 64, 1
	if testing.Short() {
		c.Width = 16
	}
	return c
}

// rig is a service on the device that computes without a GPU, whose steps a test may hold.
type rig struct {
	*Service
	t      *testing.T
	server *httptest.Server
	held   *heldDecoder
	gone   atomic.Int64 // clients that have left, or have their answer
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
	routes := r.Handler()
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		context.AfterFunc(request.Context(), func() { r.gone.Add(1) })
		routes.ServeHTTP(w, request)
	}))
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

// answer is the answer to a client.
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

// plain returns the plain model with the same parameters.
func (r *rig) plain() *model.Model {
	r.t.Helper()
	m, err := model.New(r.context, r.ops, r.model, r.settings.Seed)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { assert.NoError(r.t, m.Close()) })
	return m
}
