package vramtest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/vramtest"
)

// cross lets a stream's buffers be read by another, whose work is announced as share says, and has the memory used again.
func cross(t *testing.T, dev *vramtest.Device, share func(b vram.Buffer, on *vram.Stream, read func(vram.Buffer)) vram.Buffer) {
	t.Helper()
	home, other := dev.Stream(), dev.Stream()
	for range 60 {
		for _, bytes := range []int64{4096, 1 << 20, 20 << 20} {
			b := alloc(t, home, bytes)
			dev.Launch(home, time.Millisecond, vramtest.Writes(b))
			dev.Wait(other, dev.Record(home))
			b = share(b, other, func(b vram.Buffer) { dev.Launch(other, time.Millisecond, vramtest.Reads(b)) })
			require.NoError(t, b.Free())
		}
		dev.Advance(2 * time.Millisecond)
	}
	dev.Advance(time.Second)
	_, err := dev.Trim(t.Context(), 0)
	require.NoError(t, err)
}

// Announced uses are no mistakes: nothing is reused before they have finished.
func TestAnnouncedUsesAreNoMistakes(t *testing.T) {
	for name, share := range map[string]func(b vram.Buffer, on *vram.Stream, read func(vram.Buffer)) vram.Buffer{
		"record": func(b vram.Buffer, on *vram.Stream, read func(vram.Buffer)) vram.Buffer {
			require.NoError(t, b.RecordStream(on))
			read(b)
			return b
		},
		"use": func(b vram.Buffer, on *vram.Stream, read func(vram.Buffer)) vram.Buffer {
			u, err := b.Use(on)
			require.NoError(t, err)
			read(b)
			require.NoError(t, u.Done())
			return b
		},
		"transfer": func(b vram.Buffer, on *vram.Stream, read func(vram.Buffer)) vram.Buffer {
			b, err := b.Transfer(on)
			require.NoError(t, err)
			read(b)
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			dev := vramtest.Open(t)
			cross(t, dev, share)
			assert.Empty(t, dev.Hazards())
		})
	}
}

// Uses that nobody announced are.
func TestUsesThatWereNotAnnouncedAreMistakes(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Expected())
	cross(t, dev, func(b vram.Buffer, _ *vram.Stream, read func(vram.Buffer)) vram.Buffer {
		read(b)
		return b
	})
	require.NotEmpty(t, dev.Hazards())
	assert.Contains(t, []hazard.Kind{hazard.Race, hazard.EarlyReuse, hazard.UseAfterFree}, dev.Hazards()[0].Kind)
}
