package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

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
		a, err := r.ask(t.Context(), "staying", text("xyz", 4))
		assert.NoError(t, err)
		others <- a
	}()
	r.until("the other request", func() bool { return r.running.Load() == 2 })
	leave()
	r.until("the service to notice", func() bool { return r.gone.Load() == 1 })
	release()
	r.settle("leaving")
	assert.LessOrEqual(t, r.tenants["leaving"].tokens.Load(), uint64(2), "the step that was held was its last one")
	a := <-others
	assert.Equal(t, endedLength, a.Reason)
	assert.Len(t, a.Tokens, 4)
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
	s := r.context.Stream() // the pages' one, whose cache must be empty, too
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
	_, err = r.device.Tenant("greedy", vram.Quota{LimitBytes: r.decoder.SequenceBytes(7)})
	require.NoError(t, err)
	release := r.held.hold()
	defer release()
	answers := make(chan answer, 3)
	ask := func(tenant string) {
		a, err := r.ask(t.Context(), tenant, text("ab", 5))
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
	assert.Equal(t, r.decoder.SequenceBytes(7), r.heldBytes("greedy"))
	release()
	for range 3 {
		a := <-answers
		assert.Equal(t, endedLength, a.Reason, "%+v", a)
		assert.Len(t, a.Tokens, 5)
	}
	var stats vram.TenantStats
	for _, n := range r.device.Stats().Tenants {
		if n.Name == "greedy" {
			stats = n
		}
	}
	assert.Positive(t, stats.Longest)
	assert.Equal(t, r.decoder.SequenceBytes(7), stats.PeakHeldBytes)
}

// A deadline ends a wait: with 429 where the tenant's own requests had the memory, and with 503 where others had it.
func TestDeadlinesOfWaits(t *testing.T) {
	t.Parallel()
	tenants, err := parseTenants("greedy=1,modest=1")
	require.NoError(t, err)
	r := newRig(t, settings{Tenants: tenants})
	_, err = r.device.Tenant("greedy", vram.Quota{LimitBytes: r.decoder.SequenceBytes(7)})
	require.NoError(t, err)
	release := r.held.hold()
	defer release()
	first := make(chan answer, 1)
	go func() {
		a, err := r.ask(t.Context(), "greedy", text("ab", 5))
		assert.NoError(t, err)
		first <- a
	}()
	r.until("the first request's memory", func() bool { return r.running.Load() == 1 })
	soon := text("ab", 5)
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
		switch a.Reason {
		case endedDeadline:
			assert.NotEmpty(t, a.Tokens)
			assert.Less(t, len(a.Tokens), 60)
			assert.Equal(t, len(a.Tokens), a.Usage.CompletionTokens)
			return true
		case endedLength: // the machine is fast now
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
