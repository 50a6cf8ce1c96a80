package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/trace"
)

// DefaultRounds is the number of rounds where Options.Rounds is 0. Not fewer: an allocator that learns needs two rounds, and
// the median should not be of one value.
const DefaultRounds = 5

// Options say how a trace is played. NewDriver must be set; the rest has a useful zero value.
type Options struct {
	NewDriver func() cudadrv.Driver // called once for each device that is opened: one, and one for each limit that MinCapacity tries
	Config    vram.Config           // of the device; Driver and LimitBytes are set by Run
	Rounds    int                   // 0: DefaultRounds
	Limit     Limit
	Parallel  bool // a goroutine for each stream
	Wait      bool // allocations wait for the frees of other goroutines rather than fail; with Parallel
	// Copies is the number of copies of the trace played in parallel, on streams of their own; 0 is 1. Limits are in terms of
	// one. With Wait a copy gives up its round where it is refused as a deadlock, and restarts it when another has finished
	// its own.
	Copies int
	Seed   uint64        // of an interleaving of the goroutines; 0: as the scheduler has it
	Lag    time.Duration // each buffer's last use occupies its stream for so long; needs the simulated device
	// Gap adds a round at the end that keeps the processor busy for so long before each event and times
	// the events one by one; 0 adds none.
	Gap time.Duration
	// Hazards runs a kernel that writes each buffer after its allocation, and one that reads it before its free, on the
	// buffer's stream, and reports forbidden accesses: needs the simulated device. Times mean nothing then.
	Hazards bool
	// Jitter is the share of the allocations that each round changes: leaves out, resizes or swaps with the next event.
	Jitter float64
	// Warm maps the trace's memory at its peak before the first round. No figure includes it.
	Warm bool
	// Demands replaces the memory that Warm maps.
	Demands []vram.Demand
	// Rest is a pause after each round, for the device's background work. No figure includes it.
	Rest time.Duration
	// MinCapacity looks for the least limit at which all rounds complete.
	MinCapacity bool

	// Observe is called after each step if it is set, with Parallel from several goroutines at once. A copy that restarts its
	// round is observed from the start again, but not its frees before that.
	Observe func(Observation)
}

// Observation is a step that was just taken.
type Observation struct {
	Round   int // from 0
	Attempt int // at the round, of the copy: from 0
	Index   int // of the event in the trace
	Event   trace.Event
	Buffer  vram.Buffer // allocated or freed
	Err     error       // the allocation's failure for want of memory, or nil
}

// ErrLagNeedsSimulator says that Options.Lag was set for a device whose clock cannot be driven.
var ErrLagNeedsSimulator = errors.New("replay: a lag needs the simulated device")

// ErrHazardsNeedSimulator says that Options.Hazards was set for a device without simulated kernels.
var ErrHazardsNeedSimulator = errors.New("replay: hazards need the simulated device")

// ErrWaitNeedsGoroutines says that Options.Wait was set where one goroutine plays all streams: nobody would free.
var ErrWaitNeedsGoroutines = errors.New("replay: waiting needs a goroutine for each stream")

// MostCopies bounds Options.Copies: streams are counted in 16 bits.
const MostCopies = 64

func (o *Options) complete() error {
	switch {
	case o.NewDriver == nil:
		return errors.New("replay: no driver")
	case o.Rounds < 0:
		return fmt.Errorf("replay: %d rounds, want at least 1", o.Rounds)
	case o.Lag < 0:
		return fmt.Errorf("replay: lag %v, want 0 or more", o.Lag)
	case !(o.Jitter >= 0 && o.Jitter <= 1):
		return fmt.Errorf("replay: jitter %v, want 0 to 1", o.Jitter)
	case o.Rest < 0:
		return fmt.Errorf("replay: rest %v, want 0 or more", o.Rest)
	case o.Gap < 0:
		return fmt.Errorf("replay: gap %v, want 0 or more", o.Gap)
	case o.Gap > 0 && o.Parallel:
		return ErrGapNeedsOneGoroutine
	case o.Wait && !o.Parallel:
		return ErrWaitNeedsGoroutines
	case o.Copies < 0 || o.Copies > MostCopies:
		return fmt.Errorf("replay: %d copies, want 1 to %d", o.Copies, MostCopies)
	case o.Rounds == 0:
		o.Rounds = DefaultRounds
	}
	return nil
}
