package sleep_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// shadow is a buffer and the bytes that it must have; nil: they are undefined.
type shadow struct {
	cuda.Buffer
	arena *sleep.Arena // nil: of a stream
	bytes []byte
	at    cudadrv.Ptr
}

// world is a program that allocates, works, sleeps and wakes at random, and a reference that knows all bytes.
type world struct {
	*rig
	random   *rand.Rand
	arenas   []*sleep.Arena
	contexts []*cuda.Context
	live     []*shadow
	faults   bool // driver calls of sleeps and wakes fail now and then
	seed     uint64
}

const (
	worldBytes = 64 * mib // of the device
	worldSteps = 120
)

// TestRandomPrograms compares all bytes with a reference.
func TestRandomPrograms(t *testing.T) {
	for seed := range uint64(10) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			machine := vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true, TotalBytes: worldBytes})
			o := sleep.Options{BlockBytes: 512 * kib}
			w := &world{random: rand.New(rand.NewPCG(seed, 7)), faults: seed%2 == 1, seed: seed}
			if w.faults {
				w.rig = newFaultyRig(t, o, machine)
			} else {
				w.rig = newRig(t, o, machine)
			}
			second, err := sleep.New(w.c, o)
			require.NoError(t, err)
			w.arenas = []*sleep.Arena{w.arena, second}
			w.contexts = []*cuda.Context{w.c, w.context(), w.context()}
			for range worldSteps {
				w.step()
			}
			w.end()
		})
	}
}

func (w *world) step() {
	switch n := w.random.IntN(100); {
	case n < 30:
		w.allocate()
	case n < 45:
		w.free()
	case n < 60:
		w.copyIn()
	case n < 78:
		w.copy()
	case n < 84:
		w.check(w.any())
	case n < 90:
		w.sleep(w.arenas[w.random.IntN(2)])
	case n < 97:
		w.wake(w.arenas[w.random.IntN(2)])
	default: // another process takes memory, or returns it
		w.dev.SetCapacity(worldBytes - w.random.Int64N(24)*mib)
	}
}

func (w *world) any() *shadow {
	if len(w.live) == 0 {
		return nil
	}
	return w.live[w.random.IntN(len(w.live))]
}

func (w *world) context() *cuda.Context { return w.rig.context() }

func (w *world) anyContext() *cuda.Context { return w.contexts[w.random.IntN(len(w.contexts))] }

func (w *world) asleep(all ...*shadow) bool {
	return slices.ContainsFunc(all, func(s *shadow) bool { return s.arena != nil && s.arena.State() == sleep.Asleep })
}

func (w *world) allocate() {
	byteCount := int64(1) << (9 + w.random.IntN(13))
	byteCount += w.random.Int64N(byteCount)
	s := &shadow{}
	var err error
	if k := w.random.IntN(3); k < 2 {
		s.arena = w.arenas[k]
		s.Buffer, err = s.arena.Alloc(byteCount)
	} else {
		s.Buffer, err = w.anyContext().Alloc(byteCount)
	}
	if w.asleep(s) {
		require.ErrorIs(w, err, sleep.ErrAsleep)
		return
	}
	if errors.Is(err, vram.ErrOutOfMemory) {
		return
	}
	require.NoError(w, err)
	s.at = s.Ptr()
	w.live = append(w.live, s)
}

func (w *world) free() {
	if s := w.any(); s != nil {
		require.NoError(w, s.Free())
		w.live = slices.DeleteFunc(w.live, func(o *shadow) bool { return o == s })
	}
}

// agrees checks the error of work on buffers, and reports whether it was submitted.
func (w *world) agrees(err error, on ...*shadow) bool {
	if w.asleep(on...) {
		require.ErrorIs(w, err, sleep.ErrAsleep)
		return false
	}
	require.NoError(w, err)
	return true
}

func (w *world) copyIn() {
	s := w.any()
	if s == nil {
		return
	}
	c := randomBytes(s.Bytes(), w.random.Uint64())
	if w.agrees(cuda.CopyIn(w.anyContext(), s.Buffer, c), s) {
		s.bytes = c
	}
}

func (w *world) copy() {
	to, from := w.any(), w.any()
	if to == nil || to == from {
		return
	}
	n := min(to.Bytes(), from.Bytes())
	if w.agrees(w.anyContext().Copy(cuda.Part(to.Buffer, 0, n), cuda.Part(from.Buffer, 0, n)), to, from) {
		switch {
		case from.bytes == nil || to.bytes == nil:
			to.bytes = nil
		default:
			copy(to.bytes, from.bytes[:n])
		}
	}
}

func (w *world) check(s *shadow) {
	if s == nil {
		return
	}
	require.Equal(w, s.at, s.Ptr())
	got := make([]byte, s.Bytes())
	if w.agrees(cuda.CopyOut(w.anyContext(), got, s.Buffer), s) && s.bytes != nil {
		require.True(w, bytes.Equal(got, s.bytes), "the bytes of %v differ", s.Buffer)
	}
}

// failing runs f while driver calls may fail.
func (w *world) failing(f func() error) error {
	if w.faults {
		w.fails(fault.Rule{Probability: 0.06, Seed: w.random.Uint64(), Result: cudadrv.Unknown})
		defer w.rig.faults.Clear()
	}
	return f()
}

func (w *world) sleep(a *sleep.Arena) {
	contents, was := sleep.Save, a.State()
	if w.random.IntN(4) == 0 {
		contents = sleep.Drop
	}
	err := w.failing(func() error { return a.Sleep(w.Context(), contents) })
	if !w.faults {
		require.NoError(w, err)
	}
	if err == nil {
		require.Equal(w, sleep.Asleep, a.State())
	}
	if contents == sleep.Drop && (was == sleep.Asleep || a.State() == sleep.Asleep) {
		for _, s := range w.live {
			if s.arena == a {
				s.bytes = nil
			}
		}
	}
}

func (w *world) wake(a *sleep.Arena) {
	err := w.failing(func() error { return a.Wake(w.Context()) })
	require.Equal(w, err == nil, a.State() == sleep.Awake)
	if err != nil && !w.faults {
		require.ErrorIs(w, err, vram.ErrOutOfMemory)
	}
}

// end wakes everything and compares all bytes.
func (w *world) end() {
	w.dev.SetCapacity(2 * worldBytes)
	for _, a := range w.arenas {
		require.NoError(w, a.Wake(w.Context()))
	}
	for _, s := range w.live {
		w.check(s)
		require.NoError(w, s.Free())
	}
	assert.Zero(w, w.dev.Stats().SleepingBytes)
	require.NoError(w, w.arenas[1].Close())
}
