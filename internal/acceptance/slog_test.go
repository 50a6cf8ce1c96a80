package acceptance_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// recording is a handler of slog that keeps the lines.
type recording struct {
	guard sync.Mutex
	lines map[string]map[string]slog.Value // attributes by message
	level map[string]slog.Level
}

func (r *recording) Enabled(context.Context, slog.Level) bool { return true }
func (r *recording) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recording) WithGroup(string) slog.Handler            { return r }

func (r *recording) Handle(_ context.Context, line slog.Record) error {
	r.guard.Lock()
	defer r.guard.Unlock()
	all := map[string]slog.Value{}
	first := true
	line.Attrs(func(a slog.Attr) bool {
		if first && a.Key != "device" {
			all["!no device first"] = a.Value
		}
		first = false
		all[a.Key] = a.Value
		return true
	})
	r.lines[line.Message], r.level[line.Message] = all, line.Level
	return nil
}

// Every cold happening is one line with the device's number first, its figures by name, and its level.
func TestWhatIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recording{lines: map[string]map[string]slog.Value{}, level: map[string]slog.Level{}}
		h := openHouse(t, vram.Config{
			Ordinal: 1, LimitBytes: 64 * mib, Logger: slog.New(r), OnOutOfMemory: func(e *vram.OutOfMemoryError) bool {
				if e.RequestedBytes == 41*mib {
					panic(recoveredtest.Planted("theirs"))
				}
				return false
			},
		}, sim.Config{Devices: 2})
		s := h.stream()
		x := must(t, s, 63*mib)
		_, err := s.Alloc(40 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		_, err = s.Alloc(41 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		answer := waitFor(s, vram.Request{Bytes: 50 * mib})
		waits(t, answer)
		time.Sleep(3 * time.Second) //nolint:forbidigo // virtual: a long wait, and pressure
		freeAll(t, x)
		y := got(t, answer)
		require.NoError(t, h.Reconfigure(vram.Settings{PoolCacheBytes: new(32 * mib)}))
		h.trim()
		require.Error(t, h.Close())
		require.ErrorIs(t, y.Free(), vram.ErrClosed)
		r.guard.Lock()
		defer r.guard.Unlock()
		for message, want := range map[string]struct {
			level slog.Level
			keys  []string
		}{
			"vram: growth":                 {slog.LevelDebug, []string{"bytes", "reservedBytes"}},
			"vram: trim":                   {slog.LevelDebug, []string{"bytes", "reservedBytes"}},
			"vram: pressure":               {slog.LevelInfo, []string{"level", "before", "usedBytes", "limitBytes"}},
			"vram: reconfigured":           {slog.LevelInfo, []string{"settings"}},
			"vram: out of memory":          {slog.LevelWarn, []string{"stream", "bytes", "missingBytes", "freeBytes", "reservedBytes", "limitBytes", "error"}},
			"vram: long wait for memory":   {slog.LevelWarn, []string{"stream", "bytes", "waited", "priority", "tag", "tenant", "forQuota"}},
			"vram: recovered from a panic": {slog.LevelError, []string{"place", "value", "stack"}},
			"vram: leak":                   {slog.LevelError, []string{"buffers", "bytes", "error"}},
		} {
			line := r.lines[message]
			require.NotNil(t, line, message)
			assert.Equal(t, want.level, r.level[message], message)
			assert.Equal(t, int64(1), line["device"].Int64(), message)
			assert.Len(t, line, 1+len(want.keys), message)
			for _, key := range want.keys {
				assert.Contains(t, line, key, message)
			}
		}
		for message, line := range r.lines {
			assert.NotContains(t, line, "!no device first", message)
		}
	})
}
