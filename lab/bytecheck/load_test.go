package bytecheck

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram"
)

// Load configures the work.
type Load struct {
	Streams int // made for the load
	Workers int // goroutines; each works on two of the streams at a time
	Steps   int // of each worker; the end of the context ends it earlier
	Seed    uint64

	LiveBytes    int64 // bound of the live bytes of all workers
	LargestBytes int64 // of a buffer; a few workers' largest must fit LiveBytes
	HostBytes    int64 // pinned, for each worker
	Residents    int   // buffers of each worker that live as long as the load
	TrimSteps    int   // each worker trims after so many steps; 0: never
}

// Report counts the work of a load.
type Report struct {
	CheckedBytes  int64
	PeakLiveBytes int64 // as asked for, in all buffers together
	AllocCount    int64
	RefusalCount  int64 // requests that were refused for want of memory
	CrossCount    int64 // copies between streams
	UseCount      int64 // of them with an announced use of the copied buffer
	TransferCount int64 // buffers that were handed over
}

// ground is the shared state of the workers of a load.
type ground struct {
	house *House
	load  Load
	live  atomic.Int64
	peak  atomic.Int64
}

// grow notes that so many bytes more live.
func (g *ground) grow(bytes int64) {
	live := g.live.Add(bytes)
	for peak := g.peak.Load(); live > peak; peak = g.peak.Load() {
		if g.peak.CompareAndSwap(peak, live) {
			return
		}
	}
}

// Run does the work and waits until it is done, every buffer freed and every byte checked. The end of ctx is no error. A
// worker that fails ends the others. It joins *ByteError, *PlaceError, and the errors of allocations and of the driver.
func (h *House) Run(ctx context.Context, load Load) (Report, error) {
	var open []*vram.Stream
	var failed []error
	for range load.Streams {
		s, err := h.NewStream()
		if err != nil {
			failed = append(failed, err)
			break
		}
		open = append(open, s)
	}
	report := Report{}
	if len(failed) == 0 {
		var err error
		report, err = h.work(ctx, load, open)
		failed = append(failed, err)
	}
	for _, s := range open {
		failed = append(failed, s.Close())
	}
	return report, errors.Join(failed...)
}

func (h *House) work(ctx context.Context, load Load, open []*vram.Stream) (Report, error) {
	g := &ground{house: h, load: load}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	reports, failed := make([]Report, load.Workers), make([]error, load.Workers)
	var all sync.WaitGroup
	for i := range load.Workers {
		all.Go(func() {
			if reports[i], failed[i] = g.worker(ctx, i, open); failed[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	sum := Report{PeakLiveBytes: g.peak.Load()}
	for _, r := range reports {
		sum.CheckedBytes += r.CheckedBytes
		sum.AllocCount += r.AllocCount
		sum.RefusalCount += r.RefusalCount
		sum.CrossCount += r.CrossCount
		sum.UseCount += r.UseCount
		sum.TransferCount += r.TransferCount
	}
	return sum, errors.Join(failed...)
}
