package acceptance_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
	"github.com/go-vram/vram/monitor/gpus"
	"github.com/go-vram/vram/streams"
)

// Handles are in JSON, and so in slog's, the text of String.
func TestHandlesAsJSON(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	b := must(t, s, 4096)
	guest := h.tenant("guest", vram.Quota{LimitBytes: mib})
	reserved, err := h.Reserve(t.Context(), mib)
	require.NoError(t, err)
	later := s.AllocAsync(t.Context(), vram.Request{Bytes: 512})
	config := vram.Config{LimitBytes: mib, OnOutOfMemory: func(*vram.OutOfMemoryError) bool { return false }}
	for _, handle := range []interface{ String() string }{h.Device, s, b, guest, reserved, later, config, vram.Buffer{}, vram.Use{}} {
		text, err := json.Marshal(handle)
		require.NoError(t, err)
		want, err := json.Marshal(handle.String())
		require.NoError(t, err)
		assert.Equal(t, string(want), string(text))
	}
	for _, handle := range []any{cudadrv.Event(31), cudadrv.Handle(31), cudadrv.Context(31), cudadrv.Graph(31), cudadrv.Stream(31)} {
		text, err := json.Marshal(handle)
		require.NoError(t, err)
		assert.Equal(t, `"0x1f"`, string(text))
	}
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("it", "buffer", b, "stream", s)
	assert.Contains(t, out.String(), `"buffer":"`+b.String())
	assert.NotContains(t, out.String(), "{}")
	reserved.Release()
	other, err := later.Await(t.Context())
	require.NoError(t, err)
	freeAll(t, b, other)
}

// Lists that a service serves have the conventions of Stats: snake_case, bytes as numbers, seconds, and places as
// text.
func TestListsAsJSON(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib, Debug: true, SampleBytes: 1}, sim.Config{})
	s := h.stream()
	b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 60 * mib, Tag: "weights"})
	require.NoError(t, err)
	answer := s.AllocAsync(t.Context(), vram.Request{Bytes: 30 * mib, Wait: true})
	h.until("it waits", func() bool { return h.Stats().Waits.Waiting == 1 })
	live, err := h.LiveBuffers(t.Context())
	require.NoError(t, err)
	waiters, err := h.Waiters(t.Context())
	require.NoError(t, err)
	memory, err := h.MemoryMap(t.Context(), 0)
	require.NoError(t, err)
	sampled, err := h.SampledBuffers(t.Context())
	require.NoError(t, err)
	freeAll(t, b)
	c, err := answer.Await(t.Context())
	require.NoError(t, err)
	freeAll(t, c)
	refusal := &vram.OutOfMemoryError{RequestedBytes: 5, Cause: cudadrv.OutOfMemory}
	for name, x := range map[string]struct {
		value any
		has   []string
	}{
		"live buffers":    {live, []string{`"buffers":[{"stream":1,"ptr":"0x`, `"tag":"weights","allocated":"`, `TestListsAsJSON`, `"age_seconds":`}},
		"groups":          {live.ByTag(), []string{`[{"name":"weights","count":1,"bytes":62914560,"max_bytes":62914560,"age_seconds":`}},
		"waiters":         {waiters, []string{`"requests":[{"stream":1,"bytes":31457280,"count":1,`, `"for":"memory"`, `"waited_seconds":`, `"holders":[{`, `"edges":[`}},
		"memory map":      {memory, []string{`"segments":[{"address":"0x`, `"state":"live"`, `"tag":"weights"`, `"total":{"live_bytes":62914560`, `"mixed":null`}},
		"profile":         {h.Profile(), []string{`"sample_bytes":1`, `"records":[{"stack":"`, `"in_use":{"count":`, `"frames":["acceptance_test.`}},
		"sampled buffers": {sampled, []string{`[{"stream":1,"ptr":"0x`, `"allocated":"20`, `"stack":"`}},
		"info":            {h.Info(), []string{`"driver":"sim"`, `"uuid":"GPU-`, `"capabilities":"`, `"total_bytes":`, `"compute":"`}},
		"measurement":     {vram.Measurement{Elapsed: time.Second}, []string{`"elapsed_seconds":1,"stats":{`}},
		"long wait":       {vram.LongWaitEvent{Waited: time.Second}, []string{`"waited_seconds":1`}},
		"refusal":         {refusal, []string{`"requested_bytes":5`, `"cause":"`}},
	} {
		text, err := json.Marshal(x.value)
		require.NoError(t, err, name)
		require.True(t, json.Valid(text), name)
		for _, part := range x.has {
			assert.Contains(t, string(text), part, name)
		}
		var back any
		require.NoError(t, json.Unmarshal(text, &back))
		keys := map[string]bool{}
		keysOf(back, keys)
		for key := range keys {
			assert.Equal(t, strings.ToLower(key), key, name)
			assert.False(t, strings.HasSuffix(key, "_ns"), name)
		}
	}
}

// A list without elements is [] in what a service serves, and in errors.
func TestListsWithoutElementsAsJSON(t *testing.T) {
	t.Parallel()
	jsonformtest.Lists(t, append([]any{
		&vram.Stats{}, &vram.LiveBuffers{}, &vram.Waiters{}, &vram.MemoryMap{}, &vram.MemorySegment{}, &vram.Profile{}, &streams.Stats{}, &gpus.Device{},
	}, errorsAndEvents...)...)
}
