package acceptance_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// book records events.
type book struct {
	mu     sync.Mutex
	growth []vram.GrowthEvent
	trims  []vram.TrimEvent
	oom    []*vram.OutOfMemoryError
	ends   []vram.QuarantineEvent
}

func (b *book) note(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *book) events() vram.Events {
	return vram.Events{
		Growth:      func(e vram.GrowthEvent) { b.note(func() { b.growth = append(b.growth, e) }) },
		Trim:        func(e vram.TrimEvent) { b.note(func() { b.trims = append(b.trims, e) }) },
		OutOfMemory: func(e *vram.OutOfMemoryError) { b.note(func() { b.oom = append(b.oom, e) }) },
		Quarantine:  func(e vram.QuarantineEvent) { b.note(func() { b.ends = append(b.ends, e) }) },
	}
}

// text is a log that may be written from any goroutine.
type text struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (w *text) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.Write(p)
}

func (w *text) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.buf.String()
}

func (w *text) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Growth and trims are reported in order, and add up to the reserved bytes at every moment; a
// refusal is reported with its figures. After Close nothing is reported any more.
func TestEventsTellWhatHappened(t *testing.T) {
	for _, kind := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		var b book
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib, Events: b.events(), Segments: kind}, sim.Config{})
		s := h.stream()
		freeAll(t, must(t, s, 10*mib), must(t, s, 30*mib))
		kept := must(t, s, 20*mib)
		_, err := s.Alloc(60 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		freeAll(t, kept)
		h.trim()
		require.NoError(t, h.Close())

		assert.Len(t, b.oom, 1)
		assert.Equal(t, 60*mib, b.oom[0].RequestedBytes)
		var grown, trimmed int64
		for _, e := range b.growth {
			assert.Positive(t, e.Bytes)
			grown += e.Bytes
		}
		for _, e := range b.trims {
			assert.Positive(t, e.Bytes)
			trimmed += e.Bytes
		}
		assert.Equal(t, grown, trimmed, "all was given back")
		assert.Equal(t, b.growth[0].Bytes, b.growth[0].ReservedBytes)
		assert.Zero(t, b.trims[len(b.trims)-1].ReservedBytes)
		assert.Empty(t, b.ends)
	}
}

// A function may use the device, wait, panic, and end its goroutine; other goroutines keep allocating,
// and the others are called. Close waits for them.
func TestEventFunctionsHarmNobody(t *testing.T) {
	var out text
	var h *house
	var calls, after int
	gate := make(chan struct{})
	ready := make(chan struct{})
	h = openHouse(t, vram.Config{
		Logger: out.logger(), LimitBytes: 256 * mib,
		Events: vram.Events{
			Growth: func(vram.GrowthEvent) {
				<-ready
				calls++
				if calls == 1 {
					<-gate
					_ = h.Stats()
					panic(recoveredtest.Planted("somebody else's mistake"))
				}
			},
			Trim: func(vram.TrimEvent) { after++ },
		},
	}, sim.Config{})
	close(ready)
	s := h.stream()
	var live []vram.Buffer
	for range 4 { // the function of the first growth is still at it
		live = append(live, must(t, s, 40*mib))
	}
	freeAll(t, live...)
	h.trim()
	close(gate)
	require.NoError(t, h.Close())
	assert.Greater(t, calls, 1, "the panic ended no other call")
	assert.Positive(t, after)
	assert.Contains(t, out.String(), "somebody else's mistake")
}

// A function that lags by a thousand calls misses events, and the log has their number.
func TestEventsAreBounded(t *testing.T) {
	var out text
	gate := make(chan struct{})
	calls := 0
	h := openHouse(t, vram.Config{
		LimitBytes: 4 * mib, Logger: out.logger(),
		Events: vram.Events{OutOfMemory: func(*vram.OutOfMemoryError) { <-gate; calls++ }},
	}, sim.Config{})
	s := h.stream()
	kept := must(t, s, 2*mib)
	for range 1500 {
		_, err := s.Alloc(3 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
	}
	freeAll(t, kept)
	close(gate)
	require.NoError(t, h.Close())
	assert.GreaterOrEqual(t, calls, 900)
	assert.Less(t, calls, 1500)
	assert.Contains(t, out.String(), "events were not told")
}

// The log names changes and failures; with Debug every driver job. Without a logger nothing is
// written.
func TestLoggerHears(t *testing.T) {
	var out text
	h := openHouse(t, vram.Config{Logger: out.logger(), Debug: true, LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	h.fail("cuMemMap", cudadrv.LaunchFailed)
	_, err := s.Alloc(8 * mib)
	require.ErrorIs(t, err, cudadrv.LaunchFailed)
	h.faults.Clear()
	freeAll(t, must(t, s, 8*mib))
	require.NoError(t, h.Reconfigure(vram.Settings{PoolCacheBytes: new(32 * mib)}))
	h.trim()
	require.NoError(t, h.Close())
	for _, line := range []string{
		"level=DEBUG msg=\"vram: driver job\"", "level=WARN msg=\"vram: driver job failed\"", "LAUNCH_FAILED",
		"level=DEBUG msg=\"vram: growth\" device=0 bytes=", "level=DEBUG msg=\"vram: trim\" device=0 bytes=", "level=INFO msg=\"vram: reconfigured\"",
	} {
		assert.Contains(t, out.String(), line)
	}
	assert.Equal(t, 1, strings.Count(out.String(), "driver job failed"))
}

// A pointer to no logger is no logger, also in an interface.
func TestNoLogger(t *testing.T) {
	var none *slog.Logger
	for _, log := range []vram.Logger{nil, none} {
		h := openHouse(t, vram.Config{Logger: log, LimitBytes: 64 * mib, Debug: true}, sim.Config{})
		freeAll(t, must(t, h.stream(), 8*mib))
		require.NoError(t, h.Close())
		assert.Zero(t, h.Stats().Panics)
	}
}

// A logger that panics harms nobody.
func TestALoggerThatPanics(t *testing.T) {
	h := openHouse(t, vram.Config{Logger: slog.New(angry{slog.DiscardHandler}), LimitBytes: 64 * mib}, sim.Config{})
	freeAll(t, must(t, h.stream(), 8*mib))
	require.NoError(t, h.Close())
}

// angry is a handler with a mistake.
type angry struct{ slog.Handler }

func (angry) Enabled(_ context.Context, _ slog.Level) bool { return true }
func (angry) Handle(_ context.Context, _ slog.Record) error {
	panic(recoveredtest.Planted("out of ink"))
}
func (a angry) WithAttrs([]slog.Attr) slog.Handler { return a }
