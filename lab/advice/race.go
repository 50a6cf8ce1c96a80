package advice

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/analysis"
)

// way is how a program calls the allocator.
type way uint8

const (
	plain way = iota // Stream.Alloc and Buffer.Free
	batches
)

// lap is one round of each way that races.
type lap [2]time.Duration

const (
	// lapCount is how many rounds are timed. Not fewer: all but one must agree.
	lapCount = 9
	// mostBatch bounds a batch.
	mostBatch = 256
)

// raced returns the result of a way: its time over the time of plain calls, the laps in which it was faster, and whether it
// won. It compares medians and best laps, and the worse ratio counts: neighbours on the machine slow whole laps down, and
// seldom the best one.
func raced(laps []lap, w way) (ratio float64, wins int, faster bool) {
	of := func(w way) (median, best float64) {
		var all []time.Duration
		for _, l := range laps {
			all = append(all, max(l[w], 1))
		}
		slices.Sort(all)
		return float64(all[len(all)/2]), float64(all[0])
	}
	for _, l := range laps {
		if l[w] < l[plain] {
			wins++
		}
	}
	median, best := of(w)
	plainMedian, plainBest := of(plain)
	ratio = max(median/plainMedian, best/plainBest)
	return ratio, wins, ratio <= 1-leastTime && wins >= len(laps)-1
}

// calls compares batches to plain calls.
func calls(laps []lap, eventCount int, p *analysis.Pattern) Recommendation {
	r := Recommendation{Topic: "batches"}
	ratio, wins, faster := raced(laps, batches)
	base := time.Duration(0)
	for _, l := range laps {
		base += l[plain]
	}
	r.Because = []string{
		fmt.Sprintf("%s of the allocations are in runs of %d and more", share(p.Runs.AllocShare), p.Runs.LeastLength),
		fmt.Sprintf("plain calls take %.0f ns an event on this machine, from one goroutine", float64(base.Nanoseconds())/float64(len(laps)*eventCount)),
		fmt.Sprintf("a batch for each run of %d and more: %.2f of the time of plain calls, faster in %d of %d laps",
			analysis.LeastRun, ratio, wins, len(laps)),
	}
	if faster {
		r.Change, r.Gain = true, fmt.Sprintf("%.2f of the time", ratio)
		r.Advice = "Allocate the runs with AllocBatch, and free them with FreeBatch."
		r.Paste = "err := stream.AllocBatch(buffers, sizes)"
	} else {
		r.Advice = "Leave the calls as they are: batches were not faster by a tenth in all laps but one."
	}
	return r
}

func share(s float64) string { return fmt.Sprintf("%.1f %%", 100*s) }

func tryWays(b *builder, p *analysis.Pattern) error {
	var racers []*racer
	var laps []lap
	var err error
	for w := range len(lap{}) {
		var r *racer
		if r, err = openRacer(b.trace, b.set.config, way(w)); err != nil { //nolint:gosec // two
			break
		}
		racers = append(racers, r)
	}
	if err == nil {
		laps, err = b.race(racers)
	}
	for _, r := range racers {
		_ = r.device.Close() // lists the live buffers of an aborted round, whose error is reported
	}
	if err != nil {
		return fmt.Errorf("batches: %w", err)
	}
	b.all = append(b.all, calls(laps, len(b.trace.Events), p))
	return nil
}

// race plays a round of each way in turn, and once more than it counts: the first is cold.
func (l *lab) race(racers []*racer) (laps []lap, err error) {
	for range lapCount + 1 {
		var one lap
		for w, r := range racers {
			if err := l.ctx.Err(); err != nil {
				return nil, err
			}
			if one[w], err = r.round(); err != nil {
				return nil, err
			}
		}
		laps = append(laps, one)
	}
	return laps[1:], nil
}

// racer plays a trace in one way on a device of its own.
type racer struct {
	device  *vram.Device
	streams []*vram.Stream
	moves   []move
	sizes   []int64       // by id
	buffers []vram.Buffer // by id
	left    []uint32
	scratch []vram.Buffer
}

// move is one call: an allocation or a free, or a batch of them.
type move struct {
	op     trace.Op
	stream uint16
	id     uint32   // of one, or the first of a batch of allocations
	count  int      // of a batch; 1 for one
	ids    []uint32 // of a batch of frees
}

func openRacer(tr *trace.Trace, config vram.Config, w way) (*racer, error) {
	config.Driver = simulated()
	device, err := vram.Open(config)
	if err != nil {
		return nil, err
	}
	r := &racer{
		device: device, moves: movesOf(tr, w == batches), left: tr.Leftovers(), scratch: make([]vram.Buffer, mostBatch),
		buffers: make([]vram.Buffer, tr.Info.AllocCount),
	}
	for i := range tr.Events {
		if e := &tr.Events[i]; e.Op == trace.Alloc {
			r.sizes = append(r.sizes, e.Bytes)
		}
	}
	for range tr.Info.StreamCount {
		s, err := device.NewStream()
		if err != nil {
			return nil, errors.Join(err, device.Close())
		}
		r.streams = append(r.streams, s)
	}
	return r, nil
}

// movesOf returns the calls of a trace, with a batch for each run where that is wanted.
func movesOf(tr *trace.Trace, batched bool) (moves []move) {
	for from := 0; from < len(tr.Events); {
		first := &tr.Events[from]
		to := from + 1
		for batched && to < len(tr.Events) && to-from < mostBatch && tr.Events[to].Op == first.Op && tr.Events[to].Stream == first.Stream {
			to++
		}
		if to-from < analysis.LeastRun {
			to = from + 1
		}
		m := move{op: first.Op, stream: first.Stream, id: first.ID, count: to - from}
		if m.count > 1 && m.op == trace.Free {
			for i := from; i < to; i++ {
				m.ids = append(m.ids, tr.Events[i].ID)
			}
		}
		moves = append(moves, m)
		from = to
	}
	return moves
}

// round plays the trace once, and frees its leftovers outside the time.
func (r *racer) round() (time.Duration, error) {
	start := time.Now()
	for i := range r.moves {
		if err := r.play(&r.moves[i]); err != nil {
			return 0, err
		}
	}
	elapsed := time.Since(start)
	for _, id := range r.left {
		if err := r.buffers[id].Free(); err != nil {
			return 0, err
		}
	}
	return elapsed, nil
}

func (r *racer) play(m *move) (err error) {
	stream := r.streams[m.stream]
	switch {
	case m.count == 1 && m.op == trace.Free:
		return r.buffers[m.id].Free()
	case m.count == 1:
		r.buffers[m.id], err = stream.Alloc(r.sizes[m.id])
	case m.op == trace.Alloc:
		to := int(m.id) + m.count
		err = stream.AllocBatch(r.buffers[m.id:to], r.sizes[m.id:to])
	default:
		freed := r.scratch[:len(m.ids)]
		for i, id := range m.ids {
			freed[i] = r.buffers[id]
		}
		err = stream.FreeBatch(freed)
	}
	return err
}
