package acceptance_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/futures"
)

// how a request is given up.
type how int

const (
	byNobody how = iota
	byContext
	byFuture
	byBoth
	howCount
)

// requestKind is the kind of a request.
type requestKind int

const (
	aBuffer requestKind = iota
	anAlignedBuffer
	aZeroedBuffer
	aBatch
	whatCount
)

// ask is one request of a generated history.
type ask struct {
	What       requestKind
	Bytes      int64
	GivenUp    how
	YieldCount int // before it is given up
	HoldCount  int // requests that are answered before the buffer is freed
}

func drawAsks(t *rapid.T, label string) []ask {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) ask {
		return ask{
			What:       requestKind(rapid.IntRange(0, int(whatCount)-1).Draw(t, "what")),
			Bytes:      rapid.SampledFrom([]int64{0, kib, 65 * kib, mib, 3 * mib, 9 * mib, 20 * mib}).Draw(t, "bytes"),
			GivenUp:    how(rapid.IntRange(0, int(howCount)-1).Draw(t, "given up")),
			YieldCount: rapid.IntRange(0, 12).Draw(t, "yields"),
			HoldCount:  rapid.IntRange(0, 3).Draw(t, "holds"),
		}
	}), 1, 30).Draw(t, label)
}

// asker sends requests of one goroutine and counts their outcomes.
type asker struct {
	t      *testing.T
	stream *vram.Stream
	served *atomic.Uint64
	o      *overlaps
}

func (a *asker) run(asks []ask) {
	var held [][]vram.Buffer
	free := func() {
		for _, b := range held[0] {
			assert.NoError(a.t, a.o.free(b))
		}
		held = held[1:]
	}
	for _, want := range asks {
		if buffers := a.one(want); buffers != nil {
			held = append(held, buffers)
		}
		for len(held) > want.HoldCount {
			free()
		}
	}
	for len(held) > 0 {
		free()
	}
}

// one sends a request, which another goroutine may cancel concurrently. Either way it has one answer.
func (a *asker) one(want ask) []vram.Buffer {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if want.What == aBatch {
		f := a.stream.AllocBatchAsync(ctx, []int64{want.Bytes, kib, want.Bytes / 2, kib})
		b, err := answerOf(a.t, f, want, cancel)
		if err != nil {
			return nil
		}
		return a.enter(b.Buffers()...)
	}
	r := vram.Request{Bytes: want.Bytes, Zero: want.What == aZeroedBuffer}
	if want.What == anAlignedBuffer {
		r.Align = 64 * kib
	}
	b, err := answerOf(a.t, a.stream.AllocAsync(ctx, r), want, cancel)
	if err != nil {
		return nil
	}
	a.served.Add(1)
	return a.enter(b)
}

func (a *asker) enter(buffers ...vram.Buffer) []vram.Buffer {
	for _, b := range buffers {
		assert.NoError(a.t, a.o.enter(b))
	}
	return buffers
}

// answerOf waits for an answer while another goroutine gives the request up.
func answerOf[T any](t *testing.T, f futures.Future[T], want ask, cancel context.CancelFunc) (T, error) {
	t.Helper()
	var others sync.WaitGroup
	canceled := false // by the future, as Cancel says
	others.Go(func() {
		for range want.YieldCount {
			runtime.Gosched()
		}
		if want.GivenUp == byContext || want.GivenUp == byBoth {
			cancel()
		}
		if want.GivenUp == byFuture || want.GivenUp == byBoth {
			canceled = f.Cancel()
		}
	})
	v, err := f.Await(context.Background())
	others.Wait()
	switch {
	case canceled:
		assert.ErrorIs(t, err, vram.ErrCanceled)
	case err == nil, errors.Is(err, vram.ErrOutOfMemory), errors.Is(err, vram.ErrTooLarge): // a batch beyond the limit
	case want.GivenUp != byNobody:
		assert.ErrorIs(t, err, context.Canceled)
	default:
		assert.NoError(t, err)
	}
	return v, err
}

// Requests that are cancelled at any moment lose nothing: memory that arrives too late serves
// others, the books balance, and all memory goes back to the driver.
func TestRandomCancellationsLoseNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		streamCount := rapid.IntRange(1, 3).Draw(rt, "streams")
		goroutineCount := rapid.IntRange(1, 4).Draw(rt, "goroutines")
		limitBytes := rapid.SampledFrom([]int64{24 * mib, 64 * mib, 0}).Draw(rt, "limit")
		histories := make([][]ask, goroutineCount)
		for g := range histories {
			histories[g] = drawAsks(rt, "asks")
		}
		h := openHouse(t, vram.Config{LimitBytes: limitBytes}, sim.Config{TotalBytes: gib})
		var served atomic.Uint64
		var o overlaps
		var streams []*vram.Stream
		for range streamCount {
			streams = append(streams, h.stream())
		}
		var all sync.WaitGroup
		for g, asks := range histories {
			a := &asker{t: t, stream: streams[g%streamCount], served: &served, o: &o}
			all.Go(func() { a.run(asks) })
		}
		all.Wait()
		// A batch that was cancelled has some of its buffers until the pool has answered.
		h.until("nothing to live", func() bool { return h.Stats().LiveBytes == 0 })
		n := h.addsUp()
		require.Zero(rt, n.LiveBytes)
		require.GreaterOrEqual(rt, n.AllocCount, served.Load())
		require.Equal(rt, n.AllocCount, n.FreeCount)
		for _, s := range streams { // memory that came too late serves others: it may still be coming
			h.until("memory for others", func() bool {
				b, err := s.Alloc(20 * mib)
				if errors.Is(err, vram.ErrOutOfMemory) {
					return false
				}
				require.NoError(rt, err)
				require.NoError(rt, b.Free())
				return true
			})
		}
		h.until("all memory to be the driver's again", func() bool {
			require.NoError(rt, h.gpu.CtxSynchronize()) // zeroing is work of the device
			h.trim()
			return h.Stats().ReservedBytes == 0
		})
		require.NoError(rt, h.Close())
	})
}

// Buffers that arrive for a whole that has failed, or for a race that has been won, go back by way
// of release.
func TestGatheredBuffersGoBack(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	var giving atomic.Int64
	give := func(b vram.Buffer) {
		giving.Add(1)
		assert.NoError(t, b.Free())
		giving.Add(-1)
	}
	ctx := context.Background()
	// The result does not wait for the parts that were served: their release may still run, or their answer. A free may return after the buffer's
	// bytes are free.
	released := func(parts ...futures.Future[vram.Buffer]) {
		for _, p := range parts {
			<-p.Done()
		}
		h.until("the parts to be back", func() bool { return h.Stats().LiveBytes == 0 && giving.Load() == 0 })
	}
	for range 100 {
		var parts []futures.Future[vram.Buffer]
		for _, bytes := range []int64{kib, 20 * mib, 20 * mib, 40 * mib} { // not all of it fits
			parts = append(parts, s.AllocAsync(ctx, vram.Request{Bytes: bytes}))
		}
		_, err := futures.All(give, parts...).Await(ctx)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		released(parts...)

		a, b := s.AllocAsync(ctx, vram.Request{Bytes: 9 * mib}), s.AllocAsync(ctx, vram.Request{Bytes: 11 * mib})
		one, err := futures.First(give, a, b).Await(ctx)
		require.NoError(t, err)
		freeAll(t, one)
		released(a, b)
	}
	n := h.addsUp()
	assert.Equal(t, n.AllocCount, n.FreeCount)
}
