package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
)

// device is the part of a *vram.Device that a session needs.
type device interface {
	NewStream() (*vram.Stream, error)
	Warm(ctx context.Context, want ...vram.Demand) error
	Stats() vram.Stats
	ResetPeaks()
	Close() error
}

// session is one opened device and everything that playing a trace on it needs. Rounds follow each
// other; nothing of it is used by two rounds at once.
type session struct {
	recorded   *trace.Trace
	device     device
	driverName string
	modelled   bool // its calls take modelled time

	// Written before the first round.
	streams       []*vram.Stream
	players       []*player
	groups        *groups // nil where no copies wait for each other
	gates         []*gate // by id; nil where no two players share a buffer
	leftovers     []step  // steps that free the buffers without a free in the trace
	lag, rest     time.Duration
	clock         *sim.Device // nil without a lag
	kernels       *kernels    // nil without Options.Hazards
	observe       func(Observation)
	stopAtFailure bool

	jitter   float64
	parallel bool
	wait     bool
	seed     uint64

	// Written between rounds.
	trace         *trace.Trace // that is played: the recorded one, or with a jitter one like it
	peakLiveBytes int64        // of all that were played

	// By id, written by the player that allocates the id.
	buffers []vram.Buffer
	missing []bool // the allocation found no memory in this round
}

// openSession opens a device under the limit (0: none) with the trace's streams.
func openSession(ctx context.Context, tr *trace.Trace, o *Options, limitBytes int64) (*session, error) {
	cfg := o.Config
	if limitBytes != 0 {
		cfg.LimitBytes = limitBytes
	}
	se := &session{
		recorded: tr, trace: tr, peakLiveBytes: tr.Info.PeakLiveBytes, jitter: o.Jitter, parallel: o.Parallel, wait: o.Wait, seed: o.Seed, lag: o.Lag, rest: o.Rest, observe: o.Observe,
		buffers: make([]vram.Buffer, tr.Info.AllocCount), missing: make([]bool, tr.Info.AllocCount),
	}
	if err := se.watch(o, &cfg); err != nil {
		return nil, err
	}
	se.driverName = cfg.Driver.Name()
	se.leftovers = leftovers(tr)
	programs, gates := plan(tr, o.Parallel)
	se.gates = gates
	for i, pr := range programs {
		se.players = append(se.players, &player{number: i, program: pr, session: se})
	}
	if o.Wait && o.Copies > 1 {
		se.groups = newGroups(se, o.Copies)
	}
	device, err := vram.Open(cfg)
	if err != nil {
		return nil, errors.Join(err, se.kernels.close())
	}
	se.device = device
	for range tr.Info.StreamCount {
		s, err := se.device.NewStream()
		if err != nil {
			return nil, errors.Join(err, se.close())
		}
		if o.Wait {
			s.Exclusive() // its player is one goroutine
		}
		se.streams = append(se.streams, s)
	}
	if err := se.warm(ctx, o); err != nil {
		return nil, errors.Join(err, se.close())
	}
	return se, nil
}

// warm maps the demands of the options, or the trace's memory at its peak.
func (se *session) warm(ctx context.Context, o *Options) error {
	want := o.Demands
	if len(want) == 0 && !o.Warm {
		return nil
	}
	if len(want) == 0 {
		for _, h := range se.recorded.AtPeak() {
			want = append(want, vram.Demand(h))
		}
	}
	return se.device.Warm(ctx, want...)
}

// watch makes the driver, with the clock and the checker that the options ask for.
func (se *session) watch(o *Options, cfg *vram.Config) (err error) {
	driver := o.NewDriver()
	cfg.Driver = driver
	simulator, simulated := driver.(*sim.Driver)
	se.modelled = simulated
	if o.Lag > 0 {
		if !simulated {
			return ErrLagNeedsSimulator
		}
		device := simulator.Device(o.Config.Ordinal)
		if device == nil {
			return fmt.Errorf("ordinal %d: %w", o.Config.Ordinal, cudadrv.ErrNoDevice)
		}
		se.clock = device
	}
	if o.Hazards {
		if !simulated {
			return ErrHazardsNeedSimulator
		}
		if se.kernels, err = openKernels(cfg); err != nil {
			return err
		}
	}
	return nil
}

// close closes the device, with its streams. It ignores buffers that an aborted round left live.
func (se *session) close() error { return errors.Join(se.device.Close(), se.kernels.close()) }

func (se *session) watched() bool {
	return se.clock != nil || se.observe != nil || se.kernels != nil
}

// waits reports whether players wait for each other's frees, or are held up as a seed has it.
func (se *session) waits() bool { return se.wait || se.seed != 0 }

// at says where an error happened.
func (se *session) at(round, event int, err error) error {
	if errors.Is(err, errStop) {
		return err
	}
	return fmt.Errorf("%s: round %d, event %d: %w", se.trace.Name, round+1, event, err)
}

// timing has the clock and heap figures of one round.
type timing struct {
	elapsed     time.Duration
	mallocs     uint64
	failedCount int
	deadlocked  int
}

// play runs one round up to its last step.
func (se *session) play(ctx context.Context, round int) (timing, error) {
	clear(se.missing)
	if se.jitter > 0 {
		se.perturb(round)
	}
	for _, g := range se.gates {
		if g != nil {
			g.close()
		}
	}
	for _, p := range se.players {
		p.failedCount, p.deadlocked = 0, 0
		if se.clock != nil {
			p.begun = se.clock.Now()
		}
	}
	se.groups.begin()
	var t timing
	var err error
	if len(se.players) == 1 {
		t, err = se.playAlone(ctx, round)
	} else {
		t, err = se.playTogether(ctx, round)
	}
	for _, p := range se.players {
		t.failedCount += p.failedCount
		t.deadlocked += p.deadlocked
	}
	return t, err
}

func (se *session) playAlone(ctx context.Context, round int) (timing, error) {
	before := mallocCount()
	start := time.Now()
	err := se.players[0].play(ctx, round, 0)
	elapsed := time.Since(start)
	return timing{elapsed: elapsed, mallocs: mallocCount() - before}, err
}

// playTogether gives each player a goroutine. The first error stops the others.
func (se *session) playTogether(ctx context.Context, round int) (timing, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ready, done sync.WaitGroup
	errs := make([]error, len(se.players))
	begin := make(chan struct{})
	for i, p := range se.players {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			if errs[i] = p.playRound(ctx, round); errs[i] != nil {
				cancel(errs[i])
			}
		})
	}
	ready.Wait()
	before := mallocCount()
	start := time.Now()
	close(begin)
	done.Wait()
	elapsed := time.Since(start)
	for _, p := range se.players {
		if p.resume != nil {
			p.resume()
		}
	}
	t := timing{elapsed: elapsed, mallocs: mallocCount() - before}
	if ctx.Err() != nil {
		return t, context.Cause(ctx)
	}
	return t, nil
}

// playRound plays a player's part of a round.
func (p *player) playRound(ctx context.Context, round int) error {
	if p.group != nil {
		return p.playOften(ctx, round)
	}
	err := p.play(ctx, round, 0)
	if p.session.wait { // it frees nothing before the next round
		p.suspend()
	}
	return err
}

// freeLeftovers frees the trace's remaining buffers at the end of a round, unless copies have done so.
func (se *session) freeLeftovers(round int) error {
	if se.groups != nil {
		return nil
	}
	for i := range se.leftovers {
		if err := se.freeLeftover(round, &se.leftovers[i]); err != nil {
			return err
		}
	}
	return nil
}

func (se *session) freeLeftover(round int, s *step) error {
	if se.missing[s.id] {
		return nil
	}
	b := se.buffers[s.id]
	if err := b.Free(); err != nil {
		return se.at(round, len(se.trace.Events), fmt.Errorf("free of a leftover of %d bytes: %w", s.bytes, err))
	}
	return nil
}

// mallocCount returns how many objects were ever allocated on the heap.
func mallocCount() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
