package streams

import (
	"context"
	"reflect"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
)

// rig is a pool on a simulated device whose calls can fail or be held up, and streams on it.
type rig struct {
	t       testing.TB
	gpu     *sim.Device
	faults  *fault.Driver
	device  cudadrv.Device
	fences  *fence.Events
	pool    *pool.Pool
	limit   atomic.Int64
	streams []*Stream
	peers   Peers
}

// newRig makes a device whose pool may hold that many bytes, in pages of 2 MiB.
func newRig(tb testing.TB, limitBytes int64) *rig {
	tb.Helper()
	machine := sim.New(sim.Config{})
	r := &rig{t: tb, gpu: machine.Device(0), faults: fault.Wrap(machine)}
	var err error
	r.device, err = r.faults.Open(0)
	require.NoError(tb, err)
	r.fences = fence.NewEvents(r.device)
	r.pool, err = pool.New(pool.Config{Device: r.device, Fences: r.fences, Settings: poolcore.Settings{
		LimitBytes: limitBytes, Policy: poolcore.Policy{HandlePages: 1, Slack: 1024},
	}})
	require.NoError(tb, err)
	r.limit.Store(limitBytes)
	tb.Cleanup(r.close)
	return r
}

// stream opens a stream of its own.
func (r *rig) stream(b core.Budget) *Stream {
	r.t.Helper()
	h, err := r.device.StreamCreate()
	require.NoError(r.t, err)
	s, _, err := Open(Config{
		ID: uint32(len(r.streams) + 1), Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h,
		Limit: &r.limit, Budget: b, Peers: &r.peers,
	})
	require.NoError(r.t, err)
	r.streams = append(r.streams, s)
	return s
}

// close ends streams and pool in the order of a device: it must succeed after any test.
func (r *rig) close() {
	r.faults.Clear()
	r.faults.SetBefore(nil)
	for _, s := range r.streams {
		r.rests(s)
		_ = s.Close() // an error if the stream was stopped or quarantined
		assert.Zero(r.t, s.parts.Units(), "no batch has a block")
		assert.Zero(r.t, s.cuda.calls.Load(), "every call that was announced has ended")
		assert.Zero(r.t, s.cuda.announcement.word.Load(), "every call has left, and every capture has ended")
	}
	assert.NoError(r.t, r.device.CtxSynchronize())
	for _, s := range r.streams {
		control(s).End()
	}
	assert.NoError(r.t, r.pool.Close())
	assert.NoError(r.t, r.fences.Close())
	assert.NoError(r.t, r.gpu.Audit())
	for began := time.Now(); r.gpu.Objects()["event"] > 0 && time.Since(began) < time.Minute; { // a wait of a goroutine ends a moment later
		assert.NoError(r.t, r.fences.Close())
		runtime.Gosched()
	}
	assert.Zero(r.t, r.gpu.Objects()["event"], "every mark was released once")
	free, total, err := r.device.MemGetInfo()
	assert.NoError(r.t, err)
	assert.Equal(r.t, total, free, "all memory is back")
	assert.NoError(r.t, r.device.Close())
}

// books reads the pool's, which balance.
func (r *rig) books() pool.Snapshot {
	r.t.Helper()
	n, err := r.pool.Snapshot(context.Background())
	require.NoError(r.t, err)
	require.NoError(r.t, n.CheckError)
	return n
}

// stats reads a stream's statistics.
func (r *rig) stats(s *Stream) Stats {
	r.t.Helper()
	r.rests(s)
	var n Stats
	r.until(func() bool { // while a goroutine is inside Free its allocation counts, and neither a buffer nor a free
		var err error
		n, err = s.Stats(context.Background())
		require.NoError(r.t, err)
		return n.AllocCount == n.FreeCount+n.LiveCount
	})
	assert.Equal(r.t, n.HeldBytes, n.LiveBytes+n.PendingBytes+n.CachedBytes)
	assert.Equal(r.t, n.AllocCount, n.MagazineHits+n.RangeHits+n.PoolHits)
	assert.LessOrEqual(r.t, n.RangeHits+n.PoolHits, n.AllocCount, "no level is below zero")
	assert.LessOrEqual(r.t, n.DriverMisses, n.PoolHits, "the driver mapped pages for requests that came to the pool alone")
	return n
}

// rests checks that a stream has nothing of turns and works that are over, unless it has ended: a request of which a later panic would
// be the answer, or references that keep memory.
func (r *rig) rests(s *Stream) {
	r.t.Helper()
	_ = s.inTurn(context.Background(), func() {
		t := &s.turn
		assert.Nil(r.t, t.dispatch.current)
		assert.Zero(r.t, t.state.inTransit)
		if e := t.state.spare.Load(); e != nil {
			performed := *e
			performed.stream, performed.spare = nil, nil
			assertEmpty(r.t, reflect.ValueOf(performed))
		}
		if w := s.cuda.crossings.spare.Load(); w != nil {
			assertEmpty(r.t, reflect.ValueOf(*w))
		}
	})
}

// assertEmpty checks that no field of a struct has a value, except for slices that are empty and have nothing in their capacity.
func assertEmpty(tb testing.TB, of reflect.Value) {
	tb.Helper()
	for i := range of.NumField() {
		f, name := of.Field(i), of.Type().String()+"."+of.Type().Field(i).Name
		switch f.Kind() {
		case reflect.Struct:
			assertEmpty(tb, f)
		case reflect.Slice:
			assert.Zero(tb, f.Len(), name)
			for k := range f.Cap() {
				assert.True(tb, f.Slice(0, f.Cap()).Index(k).IsZero(), name)
			}
		default:
			assert.True(tb, f.IsZero(), name)
		}
	}
}

// balanced checks that those streams hold all lent memory, once no message is in transit: another
// goroutine may still perform a turn's effects.
func (r *rig) balanced(holders ...*Stream) {
	r.t.Helper()
	r.until(func() bool {
		var held int64
		lent := r.books().LentBytes
		for _, s := range holders {
			held += r.stats(s).HeldBytes
		}
		return held == lent && lent == r.books().LentBytes
	})
}

// waitLimit is how long a test waits for another goroutine: on a busy machine seconds, if at all.
const waitLimit = time.Minute

// wallTime is the wall clock. In the bubbles of synctest time.Now does not advance while any
// goroutine runs.
func wallTime(tb testing.TB) time.Duration {
	tb.Helper()
	var now syscall.Timeval
	require.NoError(tb, syscall.Gettimeofday(&now))
	return time.Duration(now.Nano())
}

// until waits for a condition that another goroutine brings about.
func (r *rig) until(done func() bool) {
	r.t.Helper()
	for end := wallTime(r.t) + waitLimit; !done(); runtime.Gosched() {
		if wallTime(r.t) > end {
			require.Fail(r.t, "it never came")
		}
	}
}

// control is the Control of a stream.
func control(s *Stream) *Control { return &Control{Stream: s} }

// tick is Tick, if need be after others' turns.
func (r *rig) tick(s *Stream) {
	for entered := false; !entered; runtime.Gosched() {
		entered = s.tryTurn(func() { control(s).tick() })
	}
}

// quiet waits until no other goroutine is in the stream's turn: one that has answered a caller may still be.
func (r *rig) quiet(s *Stream) {
	for !s.tryTurn(func() {}) {
		runtime.Gosched()
	}
}

// holdUp stops the first call of the function until release is called; entered is closed when it is
// there.
func (r *rig) holdUp(function string) (entered <-chan struct{}, release func()) {
	at, leave := make(chan struct{}), make(chan struct{})
	var stopped atomic.Bool // not a sync.Once, which would stop later calls, too
	r.faults.SetBefore(func(f string) {
		if f == function && stopped.CompareAndSwap(false, true) {
			close(at)
			<-leave
		}
	})
	return at, func() { close(leave) }
}

// ends makes the next call of the function end its goroutine.
func (r *rig) ends(function string) {
	r.faults.SetBefore(func(f string) {
		if f == function {
			r.faults.SetBefore(nil)
			runtime.Goexit()
		}
	})
}

// fail makes all calls of the functions fail from now on.
func (r *rig) fail(functions ...string) {
	r.t.Helper()
	for _, f := range functions {
		require.NoError(r.t, r.faults.Add(fault.Rule{Func: f, Result: cudadrv.Unknown}))
	}
}

// occupy lets another goroutine enter the stream's turn, if need be after others, until leave is
// called.
func (r *rig) occupy(s *Stream) (leave func()) {
	entered, leaving, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		for !s.ref.TryEnter() {
			runtime.Gosched()
		}
		close(entered)
		<-leaving
		s.ref.Perform(s.ref.Leave())
	}()
	<-entered
	return func() {
		close(leaving)
		<-left
	}
}

// setHook sets the function that is called at the points of the stream's turns, or nil, when no goroutine is in a turn. A caller in a
// turn sets the field itself.
func (s *Stream) setHook(hook func(point)) {
	for !s.ref.TryEnter() {
		runtime.Gosched()
	}
	s.turn.state.hook = hook
	s.ref.End() // without the effects of a turn, which reach points
}

// batching is a claim for a batch, as a caller sends it.
func (s *Stream) batching(dst []Buffer, bytes []int64) *several {
	r := &several{dst: dst, bytes: bytes}
	r.begin(&s.wiring, r)
	return r
}

// must is the buffer of an allocation that works.
func must(t *testing.T, s *Stream, bytes int64) Buffer {
	t.Helper()
	b, err := s.Alloc(bytes)
	require.NoError(t, err)
	require.Equal(t, bytes, b.Bytes())
	return b
}
