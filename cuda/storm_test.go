package cuda_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

var (
	stormSeeds = flag.Int("storms", 25, "seeds of TestStormOfContexts")
	stormSeed  = flag.Uint64("stormseed", 1, "the first seed of TestStormOfContexts")
)

const (
	stormWorkers = 4
	stormSlots   = 6    // buffers of each worker
	stormSteps   = 80   // of each worker
	stormBytes   = 1024 // of each buffer that work touches
)

// storm is several goroutines on one device, each with contexts of its own, that touch each other's buffers and capture. A
// slot's lock is the program's order of works on one buffer; everything else is left to the module.
type storm struct {
	seed    uint64
	dev     *vram.Device
	touch   *cuda.Function
	arena   *sleep.Arena // of the last slots of each worker
	slots   [stormWorkers * stormSlots]stormSlot
	draws   atomic.Uint64
	refused atomic.Uint64
	ran     atomic.Uint64
	graphs  atomic.Uint64

	mu     sync.Mutex
	failed error
}

// stormSlot is a buffer with the bytes that it should have. Bytes are nil where they are not known.
type stormSlot struct {
	mu     sync.Mutex
	buffer cuda.Buffer
	bytes  []byte
}

// stormWorker is one of the goroutines. The second context is a branch of its captures.
type stormWorker struct {
	*storm
	number int
	random *rand.Rand
	on     [2]*cuda.Context
}

func (x *storm) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = err
	}
}

func (x *storm) over() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failed != nil
}

// did reports whether a call has done its work. One that a capture forbids has not.
func (x *storm) did(doing string, err error) bool {
	var forbidden *vram.CaptureError
	switch {
	case err == nil:
		x.ran.Add(1)
		return true
	case errors.As(err, &forbidden) && errors.Is(err, cuda.ErrCapturing) && !errors.Is(err, cudadrv.CapturedEvent):
		x.refused.Add(1)
	case errors.Is(err, vram.ErrOutOfMemory), errors.Is(err, cuda.ErrAsleep):
	default:
		x.fail(fmt.Errorf("%s: %w", doing, err))
	}
	return false
}

// lock locks slots in their order, and returns those that have a buffer.
func (w *stormWorker) lock(count int) (locked []*stormSlot, unlock func()) {
	var numbers []int
	for range count {
		numbers = append(numbers, w.random.IntN(len(w.slots)))
	}
	slices.Sort(numbers)
	numbers = slices.Compact(numbers)
	for _, n := range numbers {
		w.slots[n].mu.Lock()
	}
	for _, n := range numbers {
		if w.slots[n].buffer.Live() {
			locked = append(locked, &w.slots[n])
		}
	}
	return locked, func() {
		for _, n := range numbers {
			w.slots[n].mu.Unlock()
		}
	}
}

// renew puts another buffer into one of the worker's own slots.
func (w *stormWorker) renew() {
	n := w.random.IntN(stormSlots)
	s := &w.slots[w.number*stormSlots+n]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buffer.Live() {
		if err := s.buffer.Free(); err != nil {
			w.fail(fmt.Errorf("free: %w", err))
			return
		}
	}
	bytes := stormBytes + w.random.Int64N(int64(1)<<(10+w.random.IntN(12)))
	c := w.on[w.random.IntN(2)]
	var err error
	if n == 0 && w.arena != nil {
		s.buffer, err = w.arena.Alloc(bytes)
	} else {
		s.buffer, err = c.Alloc(bytes)
	}
	s.bytes = nil
	if !w.did("alloc", err) {
		s.buffer = cuda.Buffer{}
		return
	}
	w.fill(c, s, 0, stormBytes)
}

func (w *stormWorker) fill(c *cuda.Context, s *stormSlot, at, n int64) {
	value := byte(w.random.Uint32())
	if !w.did("fill", c.Fill8(cuda.Part(s.buffer, at, n), value)) {
		return
	}
	if s.bytes == nil && n == stormBytes {
		s.bytes = make([]byte, stormBytes)
	}
	if s.bytes != nil {
		for i := range n {
			s.bytes[at+i] = value
		}
	}
}

// work submits a fill, a copy or a kernel on anybody's buffers.
func (w *stormWorker) work() {
	all, unlock := w.lock(2)
	defer unlock()
	if len(all) == 0 {
		return
	}
	c := w.on[w.random.IntN(2)]
	to, from := all[0], all[len(all)-1]
	if w.random.IntN(2) == 0 {
		to, from = from, to
	}
	at := w.random.Int64N(stormBytes)
	n := 1 + w.random.Int64N(stormBytes-at)
	switch w.random.IntN(3) {
	case 0:
		w.fill(c, to, at, n)
	case 1:
		if to == from || !w.did("copy", c.Copy(cuda.Part(to.buffer, at, n), cuda.Part(from.buffer, at, n))) {
			return
		}
		switch {
		case from.bytes == nil:
			to.bytes = nil
		case to.bytes != nil:
			copy(to.bytes[at:at+n], from.bytes[at:at+n])
		}
	case 2:
		w.did("launch", c.Launch(w.touch, cuda.Cover(1, 1), cuda.InOut(to.buffer)))
	}
}

// look compares the bytes of a buffer.
func (w *stormWorker) look() {
	all, unlock := w.lock(1)
	defer unlock()
	if len(all) == 0 || all[0].bytes == nil {
		return
	}
	got := make([]byte, stormBytes)
	if w.did("copy out", w.on[w.random.IntN(2)].CopyOutAt(got, all[0].buffer, 0)) {
		w.same(all[0], got)
	}
}

func (x *storm) same(s *stormSlot, got []byte) {
	for i, b := range got {
		if b != s.bytes[i] {
			x.fail(fmt.Errorf("byte %d of %v is %d, want %d", i, s.buffer, b, s.bytes[i]))
			return
		}
	}
}

// capture makes a graph of fills and copies, some by a branch and some through memory of the graph, and launches it. Nobody
// disturbs it: a capture that was announced does not fail.
func (w *stormWorker) capture() {
	all, unlock := w.lock(3)
	defer unlock()
	all = slices.DeleteFunc(all, func(s *stormSlot) bool { return s.bytes == nil })
	if len(all) == 0 {
		return
	}
	c, branch := w.on[0], w.on[1]
	joins := w.random.IntN(2) == 0
	var effects []func()
	g, err := c.Capture(func() error {
		if joins {
			if err := branch.Wait(c); err != nil {
				return err
			}
		}
		for range 1 + w.random.IntN(4) {
			to, from := all[w.random.IntN(len(all))], all[w.random.IntN(len(all))]
			value := byte(w.random.Uint32())
			if to == from {
				if err := c.Fill8(cuda.Part(to.buffer, 0, stormBytes/2), value); err != nil {
					return err
				}
				effects = append(effects, func() {
					for i := range to.bytes[:stormBytes/2] {
						to.bytes[i] = value
					}
				})
				continue
			}
			between, err := c.Alloc(stormBytes)
			if err != nil {
				return err
			}
			err = c.Copy(cuda.Part(between, 0, stormBytes), cuda.Part(from.buffer, 0, stormBytes))
			if err == nil {
				err = c.Copy(cuda.Part(to.buffer, 0, stormBytes), cuda.Part(between, 0, stormBytes))
			}
			if err = errors.Join(err, between.Free()); err != nil {
				return err
			}
			effects = append(effects, func() { copy(to.bytes, from.bytes) })
		}
		if joins {
			return c.Wait(branch)
		}
		return nil
	})
	if !w.did("capture", err) {
		return
	}
	w.graphs.Add(1)
	for range 1 + w.random.IntN(2) {
		if w.did("launch of a graph", g.Launch(w.on[w.random.IntN(2)])) {
			for _, effect := range effects {
				effect()
			}
		}
	}
	for !w.did("close of a graph", g.Close()) && !w.over() {
		runtime.Gosched() // a stream on which it was launched is being captured
	}
}

// order makes streams wait for each other, and asks about events.
func (w *stormWorker) order() {
	c := w.on[w.random.IntN(2)]
	switch w.random.IntN(5) {
	case 0:
		w.did("wait", c.Stream().WaitStream(w.on[0].Stream()))
	case 1:
		e, err := c.Record()
		if !w.did("record", err) {
			return
		}
		_, err = e.Done()
		w.did("query", err)
		w.did("wait for an event", w.on[w.random.IntN(2)].WaitEvent(e))
		w.did("wait on the host", e.Synchronize(context.Background()))
		w.did("close of an event", e.Close())
	case 2:
		w.did("synchronize", c.Synchronize(context.Background()))
	case 3:
		w.did("trim", c.Stream().Trim(context.Background()))
	case 4:
		_, err := w.dev.Trim(context.Background(), 0)
		w.did("trim of the device", err)
	}
}

// doze has the arena sleep and wake.
func (w *stormWorker) doze() {
	if w.arena == nil {
		return
	}
	w.did("sleep", w.arena.Sleep(context.Background(), sleep.Save))
	w.did("wake", w.arena.Wake(context.Background()))
}

func (w *stormWorker) run() {
	for range stormSteps {
		if w.over() {
			return
		}
		switch n := w.random.IntN(100); {
		case n < 22:
			w.renew()
		case n < 62:
			w.work()
		case n < 72:
			w.look()
		case n < 86:
			w.capture()
		case n < 98:
			w.order()
		default:
			w.doze()
		}
	}
}

// TestStormOfContexts plays goroutines with contexts of their own that touch each other's buffers, capture, trim and sleep: no
// work is lost, no capture is invalidated, and every byte equals the model's. The flags -storms and -stormseed choose the
// seeds.
func TestStormOfContexts(t *testing.T) {
	refused, graphs := uint64(0), uint64(0)
	seeds := uint64(*stormSeeds) //nolint:gosec // a small number
	if testing.Short() {
		seeds = max(1, seeds/5)
	}
	for i := range seeds {
		seed := *stormSeed + i
		x := &storm{seed: seed}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			x.play(t)
			refused, graphs = refused+x.refused.Load(), graphs+x.graphs.Load()
		})
	}
	t.Logf("%d graphs, %d calls refused", graphs, refused)
	require.Positive(t, graphs)
}

func (x *storm) play(t *testing.T) {
	t.Helper()
	x.open(t)
	workers := make([]*stormWorker, stormWorkers)
	for i := range workers {
		w := &stormWorker{storm: x, number: i, random: rand.New(rand.NewPCG(x.seed, uint64(i)))} //nolint:gosec // as above
		for k := range w.on {
			stream, err := x.dev.NewStream()
			require.NoError(t, err)
			c, err := cuda.NewContext(stream)
			require.NoError(t, err)
			w.on[k] = c
		}
		workers[i] = w
	}
	first := workers[0].on[0]
	m, err := first.LoadModule([]byte(ptx))
	require.NoError(t, err)
	x.touch, err = m.Function("touch")
	require.NoError(t, err)
	if x.seed%3 == 0 {
		x.arena, err = sleep.New(first, sleep.Options{})
		require.NoError(t, err)
	}
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(w.run)
	}
	all.Wait()
	for i := range x.slots {
		s := &x.slots[i]
		if s.bytes != nil && s.buffer.Live() {
			got := make([]byte, stormBytes)
			if x.did("copy out", first.CopyOutAt(got, s.buffer, 0)) {
				x.same(s, got)
			}
		}
		if s.buffer.Live() {
			x.did("free", s.buffer.Free())
		}
	}
	require.NoError(t, x.failed)
	if x.arena != nil {
		require.NoError(t, x.arena.Close())
	}
	for _, w := range workers {
		for _, c := range w.on {
			require.NoError(t, c.Close())
		}
	}
}

// open opens the device: of every other seed one that checks the order of all accesses, else one at whose driver calls others
// run.
func (x *storm) open(t *testing.T) {
	t.Helper()
	machine := sim.Config{Bytes: true, TimedKernels: true}
	config := vram.Config{LimitBytes: 32 * mib, Debug: x.seed%4 < 2}
	driver := gpuOrNil(t)
	if driver == nil && x.seed%2 == 0 {
		x.dev = vramtest.Open(t, vramtest.Machine(machine), vramtest.Config(config)).Device
		return
	}
	if driver == nil {
		driver = sim.New(machine)
	}
	faults := fault.Wrap(driver)
	faults.SetBefore(func(string) {
		if rand.New(rand.NewPCG(x.seed, x.draws.Add(1))).IntN(3) == 0 { //nolint:gosec // reproducible is the point
			runtime.Gosched()
		}
	})
	config.Driver = faults
	var err error
	x.dev, err = vram.Open(config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, x.dev.Close()) })
}
