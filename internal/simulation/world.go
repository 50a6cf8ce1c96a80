package simulation

import (
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/sizeclass"
	poolcore "github.com/go-vram/vram/pool/core"
)

// Options say what to play.
type Options struct {
	Seed       uint64
	Steps      int
	CheckEvery int // steps between two looks at all the books. 0: 16
}

// Report says what a run came to, so that a test can see that it met something.
type Report struct {
	Digest uint64 // of all events: equal seeds, equal digests

	Allocs, Frees, Refused, Cancelled        int
	MagazineHits, RangeHits, PoolHits        uint64
	LargeMagazineHits                        int
	Shared                                   int    // buffers on memory that another stream had before
	Moved                                    int    // handles that a job mapped elsewhere
	DriverCalls                              int    // maps, unmaps and the like
	Injected                                 uint64 // failures of the driver
	Whole                                    int    // times that the whole limit was asked for
	Trims, Warms, Kept, ClosedEarly, Settled int
}

// Add sums reports up. The digest stays.
func (r *Report) Add(o Report) {
	r.Allocs += o.Allocs
	r.Frees += o.Frees
	r.Refused += o.Refused
	r.Cancelled += o.Cancelled
	r.MagazineHits += o.MagazineHits
	r.RangeHits += o.RangeHits
	r.PoolHits += o.PoolHits
	r.LargeMagazineHits += o.LargeMagazineHits
	r.Shared += o.Shared
	r.Moved += o.Moved
	r.DriverCalls += o.DriverCalls
	r.Injected += o.Injected
	r.Whole += o.Whole
	r.Trims += o.Trims
	r.Warms += o.Warms
	r.Kept += o.Kept
	r.ClosedEarly += o.ClosedEarly
	r.Settled += o.Settled
}

// world is everything of one run.
type world struct {
	random *rand.Rand
	shape  shape

	machine *sim.Driver
	watch   *sim.Device // steers and looks, never fails
	faults  *fault.Driver
	device  cudadrv.Device
	fences  fence.Source
	base    cudadrv.Ptr
	checker cudadrv.Stream // touches memory to see that it is mapped

	pool       pool
	driver     driver
	streams    []*stream // all that ever were
	performers []*performer
	closers    []*closer

	ranges   ranges
	uses     uses
	requests []*request              // without an answer
	last     map[cudadrv.Ptr]*stream // who had a page last, for the report
	underway int64                   // pages on their way between a stream and the pool
	filling  bool                    // callers take more than they give
	closing  bool                    // the device

	report Report
	digest hash.Hash64
	events []string // the last ones, as a ring
	step   int
	fault  error // the first broken promise
}

// shape is what a seed says about a run as a whole.
type shape struct {
	pageBytes   int64
	arenaPages  uint32
	limitBytes  int64
	totalBytes  int64
	callShare   int     // of 100 steps: those that callers make
	faultChance float64 // of each driver call, while there are faults
	sizes       []int64 // that come again
	largest     int64
	kernel      time.Duration // the longest that runs after a free; 0: none does
}

// eventLimit bounds the events that a failure prints: enough to see how it came about.
const eventLimit = 60

// Run plays one run. Its error names the seed, the step, the broken promise and the last events.
func Run(o Options) (Report, error) {
	w := &world{random: rand.New(rand.NewPCG(o.Seed, 0x7672616d)), digest: fnv.New64a(), last: map[cudadrv.Ptr]*stream{}} //nolint:gosec // reproducible is the point
	if o.CheckEvery == 0 {
		o.CheckEvery = 16
	}
	err := w.play(o)
	w.report.Digest = w.digest.Sum64()
	w.report.Injected = w.faults.Injected()
	if err != nil {
		at := max(0, len(w.events)-eventLimit)
		return w.report, fmt.Errorf("simulation: seed %d, step %d: %w\nlast events:\n  %s",
			o.Seed, w.step, err, strings.Join(w.events[at:], "\n  "))
	}
	return w.report, nil
}

func (w *world) play(o Options) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, stack())
		}
	}()
	if err := w.open(); err != nil {
		return err
	}
	for w.step = range o.Steps {
		w.next()
		if w.step%o.CheckEvery == 0 {
			w.check()
		}
		if w.fault != nil {
			return w.fault
		}
	}
	return w.finish()
}

// open makes the machine, the pool and the first streams.
func (w *world) open() error {
	w.draw()
	s := &w.shape
	w.machine = sim.New(sim.Config{TotalBytes: s.totalBytes, GranularityBytes: s.pageBytes, ReuseStreamIDs: w.chance(50)})
	w.faults = fault.Wrap(w.machine)
	var err error
	if w.device, err = w.faults.Open(0); err != nil {
		return err
	}
	w.watch = w.machine.Device(0)
	w.fences = fence.NewEvents(w.device)
	if w.base, err = w.device.MemAddressReserve(int64(s.arenaPages) * s.pageBytes); err != nil {
		return err
	}
	if w.checker, err = w.watch.StreamCreate(); err != nil {
		return err
	}
	w.pool.open(w)
	w.driver.marks = map[poolcore.Client][]stamp{}
	for range 1 + w.random.IntN(3) {
		w.openStream()
	}
	return nil
}

// draw decides what kind of run it is.
func (w *world) draw() {
	s := &w.shape
	s.pageBytes = int64(64<<10) << w.random.IntN(6) // up to 2 MiB
	pages := 6 + w.random.IntN(60)
	s.totalBytes = int64(pages) * s.pageBytes
	s.arenaPages = uint32(16 * pages) // as the pool's shell does
	s.limitBytes = s.totalBytes
	if w.chance(40) {
		s.limitBytes = s.totalBytes / 2
	}
	s.callShare = 20 + w.random.IntN(60)
	if w.chance(60) {
		s.faultChance = []float64{0.01, 0.05, 0.2, 0.5}[w.random.IntN(4)]
	}
	s.kernel = []time.Duration{0, 30, 300, 3000}[w.random.IntN(4)] * time.Microsecond
	s.largest = max(s.pageBytes, s.limitBytes/int64(3+w.random.IntN(12)))
	for range 2 + w.random.IntN(5) {
		s.sizes = append(s.sizes, w.anySize())
	}
}

func (w *world) anySize() int64 {
	switch w.random.IntN(8) {
	case 0:
		return 0
	case 1, 2:
		return 1 + w.random.Int64N(64<<10)
	case 3, 4:
		return 1 + w.random.Int64N(w.shape.pageBytes)
	default:
		return sizeclass.MaxBytes + 1 + w.random.Int64N(w.shape.largest)
	}
}

func (w *world) size() int64 {
	if w.chance(70) {
		return w.shape.sizes[w.random.IntN(len(w.shape.sizes))]
	}
	return w.anySize()
}

func (w *world) chance(percent int) bool { return w.random.IntN(100) < percent }

// note keeps an event for a failure and for the digest.
func (w *world) note(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	_, _ = w.digest.Write([]byte(text)) // a hash never fails
	if len(w.events) >= 8*eventLimit {
		w.events = append(w.events[:0], w.events[len(w.events)-eventLimit:]...)
	}
	w.events = append(w.events, fmt.Sprintf("%d: %s", w.step, text))
}

// broken keeps the first broken promise.
func (w *world) broken(format string, args ...any) {
	if w.fault == nil {
		w.fault = fmt.Errorf(format, args...)
	}
}

// must keeps an error that may not be.
func (w *world) must(err error, what string) {
	if err != nil {
		w.broken("%s: %w", what, err)
	}
}

var errClosed = errors.New("closed")
