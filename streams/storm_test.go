package streams

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// storm is goroutines that ask streams for everything there is, with too little memory, while
// others take the memory away, make the driver fail and close a stream.
type storm struct {
	*rig
	seed    uint64
	victim  *Stream // is closed in the middle
	over    atomic.Bool
	served  [3]atomic.Uint64 // buffers, by stream
	zeroing atomic.Uint64    // requests that may have failed when they had a buffer
	errs    []error          // that requests may have

	mu   sync.Mutex
	live []place
}

type place struct{ from, end cudadrv.Ptr }

// enter reports whether no other buffer has any of the memory.
func (w *storm) enter(buffers ...Buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range buffers {
		p := place{b.Ptr(), b.Ptr() + cudadrv.Ptr(max(b.Bytes(), 1))}
		at, same := slices.BinarySearchFunc(w.live, p, func(a, b place) int { return int(a.from) - int(b.from) })
		if same || at > 0 && w.live[at-1].end > p.from || at < len(w.live) && w.live[at].from < p.end {
			w.t.Errorf("seed %d: a buffer at %v has memory of another's", w.seed, p)
		}
		w.live = slices.Insert(w.live, at, p)
	}
}

func (w *storm) leave(buffers []Buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range buffers {
		at, _ := slices.BinarySearchFunc(w.live, b.Ptr(), func(a place, p cudadrv.Ptr) int { return int(a.from) - int(p) })
		w.live = slices.Delete(w.live, at, at+1)
	}
}

func (w *storm) free(buffers []Buffer, random *rand.Rand) {
	w.leave(buffers)
	if random.IntN(2) == 0 {
		assert.NoError(w.t, freeBatch(buffers), "seed %d", w.seed)
		return
	}
	for _, b := range buffers {
		assert.NoError(w.t, b.Free(), "seed %d", w.seed)
	}
}

// ask asks for something, and may give it up.
func (w *storm) ask(s *Stream, random *rand.Rand) ([]Buffer, error) {
	size := func() int64 { return []int64{0, 300, 5000, 70_000, mib, 3*mib + 1, 9 * mib}[random.IntN(7)] }
	sizes := make([]int64, random.IntN(20))
	for i := range sizes {
		sizes[i] = size()
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	drop := func(f interface{ Cancel() bool }) {
		switch random.IntN(6) {
		case 0:
			cancel()
		case 1:
			f.Cancel()
		case 2:
			go func() {
				runtime.Gosched()
				f.Cancel()
			}()
		}
	}
	switch random.IntN(5) {
	case 0:
		dst := make([]Buffer, len(sizes))
		if err := s.AllocBatch(dst, sizes); err != nil {
			assert.Equal(w.t, make([]Buffer, len(sizes)), dst, "seed %d", w.seed)
			return nil, err
		}
		return dst, nil
	case 1, 2:
		f := s.AllocBatchAsync(ctx, sizes)
		drop(f)
		b, err := f.Await(context.Background())
		return b.Buffers(), err
	case 3:
		want := Request{Bytes: size(), Align: int64(1) << random.IntN(24), Zero: random.IntN(3) == 0, Tag: "storm"}
		f := s.AllocAsync(ctx, want)
		drop(f)
		b, err := f.Await(context.Background())
		if want.Zero && err != nil {
			w.zeroing.Add(1)
		}
		return []Buffer{b}, err
	default:
		b, err := s.Alloc(size())
		return []Buffer{b}, err
	}
}

// caller asks and frees.
func (w *storm) caller(g uint64, count int) {
	random := rand.New(rand.NewPCG(w.seed, g))
	var held [][]Buffer
	for range count {
		at := random.IntN(len(w.streams))
		buffers, err := w.ask(w.streams[at], random)
		if err == nil {
			w.served[at].Add(uint64(len(buffers)))
			w.enter(buffers...)
			held = append(held, buffers)
		} else if !slices.ContainsFunc(w.errs, func(may error) bool { return errors.Is(err, may) }) {
			assert.NoError(w.t, err, "seed %d", w.seed)
		}
		for len(held) > random.IntN(4) {
			at := random.IntN(len(held))
			w.free(held[at], random)
			held = slices.Delete(held, at, at+1)
		}
	}
	for _, buffers := range held {
		w.free(buffers, random)
	}
}

// weather takes memory away until the storm is over.
func (w *storm) weather() {
	random := rand.New(rand.NewPCG(w.seed, 1000))
	for !w.over.Load() {
		s := w.streams[random.IntN(len(w.streams))]
		switch random.IntN(7) {
		case 0:
			_, _ = w.pool.Trim(context.Background(), int64(random.IntN(64))*mib) // the driver may refuse
		case 1:
			budget := core.Budget{CacheBytes: int64(random.IntN(3)) * 8 * mib, CacheRanges: random.IntN(3)}
			_ = control(s).Reconfigure(context.Background(), core.Settings{Budget: budget}) // closed
		case 2:
			control(s).Tick()
			w.pool.Tick()
		case 3:
			_, _ = w.pool.Warm(context.Background(), []uint32{uint32(random.IntN(4)), uint32(random.IntN(8))}) // no room
		case 4:
			if n, err := w.pool.Snapshot(context.Background()); err == nil {
				assert.NoError(w.t, n.CheckError, "seed %d", w.seed)
			}
		default:
			runtime.Gosched()
		}
	}
}

// sabotage makes driver calls fail until the storm is over.
func (w *storm) sabotage(functions []string) {
	random := rand.New(rand.NewPCG(w.seed, 2000))
	for !w.over.Load() && len(functions) > 0 {
		function := functions[random.IntN(len(functions))]
		result := []cudadrv.Result{cudadrv.Unknown, cudadrv.OutOfMemory}[random.IntN(2)]
		_ = w.faults.Add(fault.Rule{Func: function, Probability: 0.4, Seed: random.Uint64(), Result: result})
		for range random.IntN(200) {
			runtime.Gosched()
		}
		w.faults.Clear()
	}
	w.faults.Clear()
}

// rage runs a storm and checks the end state.
func (w *storm) rage(asks int, functions ...string) {
	var callers, others sync.WaitGroup
	for g := range uint64(5) {
		callers.Go(func() { w.caller(g, asks) })
	}
	others.Go(w.weather)
	others.Go(func() { w.sabotage(functions) })
	if w.victim != nil {
		others.Go(func() {
			for range asks * 20 {
				runtime.Gosched()
			}
			_ = w.victim.Close() // the driver may refuse
		})
	}
	callers.Wait()
	w.over.Store(true)
	others.Wait()
	for i, s := range w.streams {
		if s == w.victim {
			continue
		}
		w.until(func() bool { n := w.stats(s); return n.LiveCount == 0 && n.Waiting == 0 })
		n := w.stats(s)
		assert.GreaterOrEqual(w.t, n.AllocCount, w.served[i].Load(), "seed %d", w.seed)
		assert.LessOrEqual(w.t, n.AllocCount, w.served[i].Load()+w.zeroing.Load(), "seed %d: as if the others had never asked", w.seed)
		assert.Zero(w.t, n.LiveBytes, "seed %d", w.seed)
		assert.Zero(w.t, s.cuda.calls.Load(), "seed %d", w.seed)
	}
}

// In a storm no memory is shared, every request has an answer, and afterwards no memory is missing.
func TestStorm(t *testing.T) {
	t.Parallel()
	every := []string{
		"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuEventCreate", "cuEventRecord",
		"cuEventQuery", "cuEventSynchronize", "cuStreamSynchronize", "cuMemsetD8Async",
	}
	for seed := range uint64(3) {
		for _, c := range []struct {
			name      string
			closes    bool
			functions []string
		}{{"calm", false, nil}, {"closing", true, nil}, {"faults", false, every}, {"both", true, every}} {
			t.Run(fmt.Sprint(c.name, seed), func(t *testing.T) {
				r := newRig(t, 64*mib)
				w := &storm{rig: r, seed: seed, errs: []error{context.Canceled, pool.ErrOutOfMemory, ErrTooLarge}}
				for _, b := range []core.Budget{{}, {CacheBytes: 4 * mib}, {CacheRanges: 2}} {
					r.stream(b)
				}
				if c.closes {
					w.victim = r.streams[1]
					w.errs = append(w.errs, ErrClosed)
				}
				if c.functions != nil {
					w.errs = append(w.errs, cudadrv.Unknown, cudadrv.OutOfMemory)
				}
				w.rage(60, c.functions...)
			})
		}
	}
}
