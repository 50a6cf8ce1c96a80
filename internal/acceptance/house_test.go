package acceptance_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/streams"
)

const (
	kib = int64(1) << 10
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// goroutinesAtStart is how many there were before anything was opened.
var goroutinesAtStart int

func TestMain(m *testing.M) {
	goroutinesAtStart = runtime.NumGoroutine()
	recoveredtest.Main(m)
}

// Importing the package and making a driver start nothing.
func TestImportingStartsNothing(t *testing.T) {
	assert.Equal(t, 1, goroutinesAtStart, "this process had more than its main goroutine")
	before := runtime.NumGoroutine()
	_ = sim.New(sim.Config{})
	_ = vram.Config{}
	assert.Equal(t, before, runtime.NumGoroutine())
}

// house is an opened device on a simulated GPU, with the means to control and observe it.
type house struct {
	*vram.Device
	t      *testing.T
	gpu    *sim.Device
	faults *fault.Driver
	joins  bool // see capture
	// unsettled bounds the frees that run while the test reads statistics: one for each stream and goroutine that frees at the
	// time, 0 if none does.
	unsettled int
}

// openHouse opens a device on a GPU with a stepped clock. At the end of the test it is closed, if
// it was not before, and all memory must be back.
func openHouse(t *testing.T, cfg vram.Config, machine sim.Config) *house {
	t.Helper()
	driver := sim.New(machine)
	keeper, err := driver.Open(cfg.Ordinal) // so that the GPU forgets nothing with the device's close
	require.NoError(t, err)
	h := &house{t: t, gpu: driver.Device(cfg.Ordinal), faults: fault.Wrap(driver)}
	cfg.Driver = h.faults
	h.Device, err = vram.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() {
		h.faults.Clear()
		h.faults.SetBefore(nil)
		_ = h.Close() // a test that looks at its error has closed before
		assert.NoError(t, h.gpu.Audit())
		free, total, err := keeper.MemGetInfo()
		assert.NoError(t, err)
		assert.Equal(t, total, free, "all memory is back")
		assert.NoError(t, keeper.Close())
	})
	return h
}

func (h *house) stream() *vram.Stream {
	h.t.Helper()
	s, err := h.NewStream()
	require.NoError(h.t, err)
	return s
}

// usedBytes is the GPU's number of used bytes.
func (h *house) usedBytes() int64 {
	h.t.Helper()
	free, total, err := h.gpu.MemGetInfo()
	require.NoError(h.t, err)
	return total - free
}

// driverCalls are those that an allocation could make.
func (h *house) driverCalls() (n uint64) {
	for _, f := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease", "cuEventRecord", "cuStreamSynchronize"} {
		n += h.faults.Calls(f)
	}
	return n
}

// holdUp stops the first call of the function until release is called; entered is closed when it is
// there.
func (h *house) holdUp(function string) (entered <-chan struct{}, release func()) {
	at, leave := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h.faults.SetBefore(func(f string) {
		if f == function {
			once.Do(func() {
				close(at)
				<-leave
			})
		}
	})
	return at, func() { close(leave) }
}

// waitLimit is how long a test waits for another goroutine: on a busy machine seconds, if at all.
const waitLimit = time.Minute

// wallTime is the wall clock. In the bubbles of synctest time.Now does not advance while any
// goroutine runs.
func wallTime(t *testing.T) time.Duration {
	t.Helper()
	var now syscall.Timeval
	require.NoError(t, syscall.Gettimeofday(&now))
	return time.Duration(now.Nano())
}

// until waits for a condition that another goroutine brings about.
func (h *house) until(what string, done func() bool) {
	h.t.Helper()
	for end := wallTime(h.t) + waitLimit; !done(); runtime.Gosched() {
		if wallTime(h.t) > end {
			require.Fail(h.t, "it never came: "+what)
		}
	}
}

// balanced reads the statistics of an idle device: bytes by state add up, and so do hits.
func (h *house) balanced() vram.Stats {
	h.t.Helper()
	var s vram.Stats
	h.until("bytes by state add up to the bytes reserved, which are those that the GPU has in use", func() bool {
		usedBytes := h.usedBytes()
		s = h.Stats()
		return s.LiveBytes+s.PendingBytes+s.CachedBytes+s.FreeBytes+s.SetAsideBytes == s.ReservedBytes && s.ReservedBytes == usedBytes
	})
	assert.Equal(h.t, s.AllocCount, s.MagazineHits+s.StreamHits+s.PoolHits+s.DriverMisses)
	h.agree([...]uint64{s.AllocCount, s.FreeCount, uint64(s.LiveBytes)}, sumOf(s.Sizes), "counts by size")
	for _, n := range s.Streams {
		h.agree([...]uint64{n.AllocCount, n.FreeCount, uint64(n.LiveBytes)}, sumOf(n.Sizes), "counts by size of stream %d", n.Stream)
	}
	return s
}

// agree checks that allocations, frees and live bytes are the sums of the sizes, except for the frees
// that ran when the test read statistics: each may count as one more allocation until the next reading.
func (h *house) agree(all, sizes [3]uint64, what string, args ...any) {
	h.t.Helper()
	assert.InDelta(h.t, all[0], sizes[0], float64(h.unsettled), append([]any{what}, args...)...)
	assert.Equal(h.t, all[1:], sizes[1:], append([]any{what}, args...)...)
}

// sumOf returns the allocations, the frees and the live bytes of all sizes.
func sumOf(sizes []streams.SizeStats) (sum [3]uint64) {
	for _, z := range sizes {
		sum[0] += z.AllocCount
		sum[1] += z.FreeCount
		sum[2] += uint64(z.LiveBytes)
	}
	return sum
}

// addsUp calls balanced, and compares peaks with limits. It requires that nobody has lowered the limit.
func (h *house) addsUp() vram.Stats {
	h.t.Helper()
	s := h.balanced()
	assert.LessOrEqual(h.t, s.ReservedBytes, s.PeakReservedBytes)
	assert.LessOrEqual(h.t, s.LiveBytes, s.PeakLiveBytes)
	assert.LessOrEqual(h.t, s.PeakReservedBytes, s.LimitBytes)
	return s
}

// fail makes all calls of the function fail with that result.
func (h *house) fail(function string, result cudadrv.Result) {
	h.t.Helper()
	require.NoError(h.t, h.faults.Add(fault.Rule{Func: function, Result: result}))
}

// must is the buffer of an allocation that works.
func must(t *testing.T, s *vram.Stream, bytes int64) vram.Buffer {
	t.Helper()
	b, err := s.Alloc(bytes)
	require.NoError(t, err)
	require.Equal(t, bytes, b.Bytes())
	return b
}

func freeAll(t *testing.T, buffers ...vram.Buffer) {
	t.Helper()
	for _, b := range buffers {
		require.NoError(t, b.Free())
	}
}

// overlaps is a dumb list of the live ranges, in order of address. A range is entered after its
// allocation returned and taken out before its free is called.
type overlaps struct {
	mu   sync.Mutex
	live []liveRange
}

type liveRange struct{ begin, end vram.Ptr }

// enter returns the defect of a new buffer.
func (o *overlaps) enter(b vram.Buffer) error {
	r := liveRange{b.Ptr(), b.Ptr() + vram.Ptr(max(b.Bytes(), 1))}
	if r.begin == 0 || r.begin%512 != 0 {
		return fmt.Errorf("a buffer at %#x is not aligned", r.begin)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.find(r.begin)
	for _, near := range []int{at - 1, at} {
		if near >= 0 && near < len(o.live) && o.live[near].begin < r.end && r.begin < o.live[near].end {
			return fmt.Errorf("a buffer at %v overlaps one at %v", r, o.live[near])
		}
	}
	o.live = slices.Insert(o.live, at, r)
	return nil
}

// free takes a buffer out and frees it.
func (o *overlaps) free(b vram.Buffer) error {
	o.mu.Lock()
	at := o.find(b.Ptr())
	o.live = slices.Delete(o.live, at, at+1)
	o.mu.Unlock()
	return b.Free()
}

func (o *overlaps) find(p vram.Ptr) int {
	at, _ := slices.BinarySearchFunc(o.live, p, func(r liveRange, p vram.Ptr) int {
		switch {
		case r.begin < p:
			return -1
		case r.begin > p:
			return 1
		}
		return 0
	})
	return at
}

// trim releases all that it can, and returns how much.
func (h *house) trim() int64 {
	h.t.Helper()
	n, err := h.Trim(context.Background(), 0)
	require.NoError(h.t, err)
	return n
}
