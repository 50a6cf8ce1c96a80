package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/monitor/heapprofile"
)

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
		tokens, err := r.texts.encode(c.Prompt.text)
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
	request := text("ab", 7)
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
	request.Seed, request.Stop = 7, &first.Tokens[4]
	end := slices.Index(first.Tokens, *request.Stop) + 1
	stopped, err := r.ask(t.Context(), "", request)
	require.NoError(t, err)
	assert.Equal(t, first.Tokens[:end], stopped.Tokens)
	assert.Equal(t, endedStop, stopped.Reason)
	request.MaxTokens = end
	last, err := r.ask(t.Context(), "", request)
	require.NoError(t, err)
	assert.Equal(t, endedStop, last.Reason, "it would end there, too")
	quoted, err := json.Marshal(r.texts.decode(stopped.Tokens...))
	require.NoError(t, err)
	assert.Contains(t, stopped.body, `"text":`+string(quoted))
}

// The weights of a checkpoint are served, of the sizes that it has.
func TestCheckpoint(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	other := small()
	other.Heads, other.Width = 1, 8
	m, err := model.New(r.context, r.ops, other, 3)
	require.NoError(t, err)
	defer func() { assert.NoError(t, m.Close()) }()
	trainer, err := model.NewTrainer(m, model.Training{Batch: 1, Length: 1})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	require.NoError(t, errors.Join(trainer.Save(path), trainer.Close()))
	want, err := m.Sample([]int64{97, 98}, 4, model.Sampling{})
	require.NoError(t, err)
	stored := newRig(t, settings{Checkpoint: path})
	assert.Equal(t, 8, stored.model.Width)
	a, err := stored.ask(t.Context(), "", text("ab", 4))
	require.NoError(t, err)
	assert.Equal(t, want[2:], a.Tokens)
	halves := small()
	halves.Type = tensor.BFloat16
	assert.Equal(t, tensor.BFloat16, newRig(t, settings{Checkpoint: path, Model: halves}).model.Type, "the type is the command line's")
	assert.EqualValues(t, vram.DefaultSampleBytes, heapprofile.Of(r.device).Period, "unless another one is set")
}

// Metrics and the heap profile name the caches by tenant.
func TestCachesAreNamed(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("gold=1,silver=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants, Config: vram.Config{SampleBytes: 1}})
	n := r.device.Stats()
	assert.Equal(t, n.LimitBytes-n.LiveBytes, r.cacheBytes)
	for _, tenant := range n.Tenants {
		assert.Equal(t, vram.Quota{ShareBytes: r.cacheBytes / 2}, tenant.Quota, "%s may borrow", tenant.Name)
	}
	release := r.held.hold()
	defer release()
	answers := make(chan answer, 2)
	for n, tenant := range []string{"gold", "silver"} {
		go func() {
			a, err := r.ask(t.Context(), tenant, text("abc", 4+10*n))
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
	for tenant, tokens := range map[string]int{"gold": 7, "silver": 17} {
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
		`service_tokens_total{tenant="gold"} 4`, `service_tokens_total{tenant="silver"} 14`, `service_answers_total{tenant="gold"} 1`,
		`service_ends_total{reason="length"} 2`, `service_first_token_seconds_count{tenant="gold"} 1`, `service_token_seconds_count{tenant="silver"} 13`,
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
