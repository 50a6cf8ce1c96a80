package streams

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// recordedLaunches is how many launches of a stream are recorded. Not fewer: a program launches dozens of kernels before it
// waits. Not more: each keeps some 500 bytes, and nobody reads a longer list.
const recordedLaunches = 32

// launches are the last launches of a stream, of those that are not known to have finished.
type launches struct {
	count    atomic.Uint64 // launches so far
	finished atomic.Uint64 // those that have finished, by their number
	last     [recordedLaunches]atomic.Pointer[launch]
}

// launch is a recorded launch. It is immutable.
type launch struct {
	number  uint64
	kernel  string
	place   site.Stack
	buffers []LaunchBuffer
}

// LaunchBuffer is an argument of a launch.
type LaunchBuffer struct {
	Index  int // from 0
	Buffer Buffer
}

// Launching records a launch before it is made; ended is called if it was not made. Precondition: RecordsLaunches.
func (x Submitter) Launching(kernel string, buffers []LaunchBuffer) (ended func()) {
	all := x.s.peer.launches
	l := &launch{number: all.count.Add(1), kernel: kernel, place: x.Helpers().Here(2), buffers: buffers}
	slot := &all.last[l.number%recordedLaunches]
	slot.Store(l)
	return func() { slot.CompareAndSwap(l, nil) }
}

// RecordsLaunches reports whether package cuda records its launches, to name the launch of a fault on a GPU.
func (x Submitter) RecordsLaunches() bool { return x.s.peers.recordsLaunches }

// AwaitsLaunches reports whether each launch waits until the device has finished it.
func (x Submitter) AwaitsLaunches() bool { return x.s.peers.awaitsLaunches }

// LaunchCount returns the number of recorded launches, for Finished.
func (x Submitter) LaunchCount() uint64 {
	if all := x.s.peer.launches; all != nil {
		return all.count.Load()
	}
	return 0
}

// Finished records that the device has finished so many launches.
func (x Submitter) Finished(count uint64) {
	if all := x.s.peer.launches; all != nil {
		shared.RaiseUint64(&all.finished, count)
	}
}

// Failure returns err, or, after a fault of the device, a *FaultError or a *DeviceFailedError.
func (x Submitter) Failure(err error) error {
	if err == nil {
		return nil
	}
	p := x.s.peers
	return p.faults.Tell(p.faults.Failed(err, x.Device(), p.unfinished))
}

// Failed translates the error of a driver call: see Faults.Failed.
func (p *Peers) Failed(err error, device cudadrv.Device) error {
	return p.faults.Failed(err, device, p.unfinished)
}

// Tell is Faults.Tell, for a call of the program.
func (p *Peers) Tell(err error) error { return p.faults.Tell(err) }

// RecordLaunches has launches recorded, and each wait with await. Call it before the first stream is open.
func (p *Peers) RecordLaunches(await bool) { p.recordsLaunches, p.awaitsLaunches = true, await }

// unfinished returns the recorded launches that are not known to have finished, and whether launches are recorded.
func (p *Peers) unfinished() (all []FailedLaunch, recorded bool) {
	if !p.recordsLaunches {
		return nil, false
	}
	for _, s := range p.list() {
		var of []*launch
		finished := s.launches.finished.Load()
		for i := range s.launches.last {
			if l := s.launches.last[i].Load(); l != nil && l.number > finished {
				of = append(of, l)
			}
		}
		slices.SortFunc(of, func(a, b *launch) int { return int(b.number - a.number) }) //nolint:gosec // close to each other
		for _, l := range of {
			all = append(all, l.failed())
		}
	}
	return all, true
}

func (l *launch) failed() FailedLaunch {
	f := FailedLaunch{Kernel: l.kernel, Place: l.place}
	for _, b := range l.buffers {
		f.Arguments = append(f.Arguments, fmt.Sprintf("argument %d %s", b.Index, b.Buffer.describe()))
	}
	return f
}

// describe returns the size of a buffer and, while it lives, its tag and place as far as they are known.
func (b Buffer) describe() string {
	text := units.Count(b.bytes, "byte")
	if b.slot == nil || !b.slot.Live(b.word) {
		return text + ", freed since"
	}
	facts := b.slot.Facts()
	if facts.Tag != "" {
		text += fmt.Sprintf(", tag %q", facts.Tag)
	}
	if facts.Allocated.Known() {
		text += fmt.Sprintf(", allocated at %v", facts.Allocated)
	}
	return text
}
