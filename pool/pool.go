package pool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recovered"
)

// MostBytes is the highest limit of a pool, and the longest buffer: half of the arena, so that a window of any length finds a
// place between live memory.
const MostBytes = arenaBytes / 2

// Pool is the memory of one device. Any number of goroutines may use it.
type Pool struct {
	device   cudadrv.Device
	fences   *fence.Events
	observer Observer
	panics   *recovered.Log
	debug    bool
	host     actors.Host // nil: the Go scheduler
	ref      *actors.Ref
	failure  atomic.Pointer[error] // the cause of the actor's end

	closing   atomic.Bool
	closeDone chan struct{}
	closeErr  error // written before closeDone is closed

	arena

	waits
	quotas  quotas
	tally   Tally // of the device
	tokens  atomic.Uint64
	spare   atomic.Pointer[effects]  // performed, for the next turn that leaves some
	changed atomic.Pointer[Reporter] // the last that was listed
	reports reports

	driver driver

	// Owned by the turn, after the actor's end by Close.
	core      *core.Core
	clients   map[core.Client]Client
	reporters map[core.Client]*Reporter
	granted   map[core.Client]uint64             // runs, since the client joined
	askedAt   map[core.Client]time.Duration      // on the clock, of the last Ask
	clock     func() time.Duration               // measures moves and the device's calls
	waiting   map[uint64]*futures.Promise[int64] // for an End
	sharing   sharing
	handed    func() []Handed // see Config
	marks     []markedFence   // of Returns since the last job
	out       *effects

	reclaimCount uint64 // of requests to clients

	read atomic.Pointer[Snapshot] // the newest, which the turn writes
}

// Config configures a pool. Device and Fences must be set.
type Config struct {
	Device   cudadrv.Device
	Fences   *fence.Events
	Settings core.Settings
	// Plain takes plain segments though the device has virtual memory. A device without it gets
	// them anyway.
	Plain    bool
	Observer Observer
	// Debug checks the books after every message. Books that do not balance quarantine the pool.
	Debug bool
	Host  actors.Host // nil: the Go scheduler
	// Modelled is the time in which the device's calls are measured; nil: real time.
	Modelled cudadrv.Modelled
	// Handed lists the buffers that streams have of others, for reports; nil: there are none. It must not wait.
	Handed func() []Handed
	// Panics gets every panic that the pool recovers from; nil: only the process-wide log does.
	Panics *recovered.Log
}

// New makes the arena of a device and starts the pool. With virtual memory that reserves address
// space; plain segments reserve none.
func New(cfg Config) (*Pool, error) {
	a, err := openArena(cfg.Device, cfg.Plain)
	if err != nil {
		return nil, err
	}
	settings := cfg.Settings
	settings.LimitBytes = min(settings.LimitBytes, a.bytes/2)
	newCore := core.New
	if a.places != nil {
		newCore = core.NewPlain
	}
	p := &Pool{
		host: cfg.Host, device: cfg.Device, fences: cfg.Fences, observer: cfg.Observer, panics: cfg.Panics, debug: cfg.Debug, arena: a, handed: cfg.Handed,
		closeDone: make(chan struct{}),
		core:      newCore(a.pageBytes, uint32(a.bytes/a.pageBytes), settings), clients: map[core.Client]Client{}, reporters: map[core.Client]*Reporter{},
		granted: map[core.Client]uint64{}, askedAt: map[core.Client]time.Duration{}, clock: clockOf(cfg.Modelled),
		waiting: map[uint64]*futures.Promise[int64]{},
	}
	p.driver.open(p)
	if p.ref, err = actors.Spawn(cfg.Host, cfg.Panics, "vram-pool", p); err != nil {
		return nil, errors.Join(fmt.Errorf("pool: %w", err), a.freeArena(cfg.Device))
	}
	p.driver.worker.Start()
	return p, nil
}

// Failure returns the cause of the pool's end, if Close did not end it: the books did not balance, or
// the actor was stopped. Nil while it serves and after Close.
func (p *Pool) Failure() error {
	if cause := p.failure.Load(); cause != nil && !errors.Is(*cause, ErrClosed) {
		return *cause
	}
	return nil
}

// Tally counts the device's requests.
func (p *Pool) Tally() *Tally { return &p.tally }

// Join makes the client of a reporter known under its id. Ids are not used twice. adopted: the client may be able to return
// memory only when its callers use it.
func (p *Pool) Join(r *Reporter, adopted bool) {
	p.ref.Call(&step{pool: p, message: core.Join{Client: r.id, Adopted: adopted}, client: r.client, reporter: r})
}

// Leave removes a client, which sends no further request. It may still return its pages. synced:
// the device has finished all its work.
func (p *Pool) Leave(id core.Client, synced bool) {
	p.tell(core.Leave{Client: id, Synced: synced}, fence.Mark{})
}

// Refill requests pages; c gets the answer. It does not wait.
func (p *Pool) Refill(c Client, r core.Refill) {
	p.ref.Call(&step{pool: p, message: r, client: c})
}

// RefillLater is like Refill, for a request that waits for its tenant's quota first.
func (p *Pool) RefillLater(c Client, r core.Refill, waits charger) {
	p.ref.Call(&step{pool: p, message: r, client: c, charger: waits})
}

// Return returns pages. mark covers their uses, and is part of no graph; the zero mark: all uses have
// finished. It does not wait.
func (p *Pool) Return(r core.Return, mark fence.Mark) { p.tell(r, mark) }

func (p *Pool) tell(m core.Message, mark fence.Mark) {
	p.ref.Call(&step{pool: p, message: m, mark: mark})
}

// Tick does the pool's periodic work.
func (p *Pool) Tick() { p.tell(core.Tick{}, fence.Mark{}) }

// Warm maps runs of those lengths ahead of need, in pages, in addition to the memory in use. It waits until all are there, ctx
// ends, or there is no more room; mapped runs stay. It returns the newly mapped bytes.
func (p *Pool) Warm(ctx context.Context, runs []uint32) (int64, error) {
	return p.request(ctx, func(token uint64) core.Message { return core.Warm{Token: token, Runs: runs} })
}

// Trim releases free memory to the driver until at most keepBytes are reserved, or no more can be
// released. It sends reclaim requests to the streams. It returns the released bytes.
func (p *Pool) Trim(ctx context.Context, keepBytes int64) (int64, error) {
	return p.request(ctx, func(token uint64) core.Message { return core.Trim{Token: token, KeepBytes: max(0, keepBytes)} })
}

// Snapshot is the state of the pool's books at one moment.
type Snapshot struct {
	core.Books
	Waits        WaitStats
	ReclaimCount uint64 // reclaim requests that were sent to clients
	CheckError   error
}

// Snapshot reads the books. It waits for the current turn only.
func (p *Pool) Snapshot(ctx context.Context) (Snapshot, error) {
	s := new(Snapshot) // the turn may write it after the end of ctx
	err := p.inTurn(ctx, func() {
		*s = Snapshot{Books: p.core.Books(), Waits: p.waitStats(), ReclaimCount: p.reclaimCount, CheckError: p.core.Check()}
		p.read.Store(s)
	})
	if err != nil {
		return Snapshot{}, err
	}
	return *s, nil
}

// LastSnapshot returns the newest Snapshot that was read; false: none was. It takes no turn.
func (p *Pool) LastSnapshot() (Snapshot, bool) {
	if s := p.read.Load(); s != nil {
		return *s, true
	}
	return Snapshot{}, false
}

// ResetPeaks restarts the peaks of reserved and live bytes at the present values, and the longest wait. liveBytes are the
// clients' current ones: a client reports frees only with its next message.
func (p *Pool) ResetPeaks(ctx context.Context, liveBytes map[core.Client]int64) error {
	p.resetLongest()
	return p.inTurn(ctx, func() { p.core.ResetPeaks(liveBytes) })
}

// BeginScope begins a scope of the peaks, under a number that no other scope has; liveBytes are as
// in ResetPeaks.
func (p *Pool) BeginScope(ctx context.Context, number uint64, liveBytes map[core.Client]int64) error {
	return p.inTurn(ctx, func() { p.core.BeginScope(number, liveBytes) })
}

// EndScope ends a scope of the peaks, and returns those inside it.
func (p *Pool) EndScope(ctx context.Context, number uint64) (core.Peaks, error) {
	var peaks core.Peaks
	if err := p.inTurn(ctx, func() { peaks = p.core.EndScope(number) }); err != nil {
		return core.Peaks{}, err // the turn may still write
	}
	return peaks, nil
}

// inTurn runs f in the pool's turn, and waits for it. After an error f may still run.
func (p *Pool) inTurn(ctx context.Context, f func()) error {
	return p.question(ctx, &question{run: f})
}

// Reconfigure replaces the settings from the next message on.
func (p *Pool) Reconfigure(ctx context.Context, s core.Settings) error {
	s.LimitBytes = min(s.LimitBytes, p.bytes/2)
	return p.inTurn(ctx, func() { p.core.SetSettings(s) })
}

func (p *Pool) question(ctx context.Context, q *question) error {
	q.reply.On(p.host)
	p.ref.Call(q)
	_, err := q.reply.Await(ctx)
	return err
}

// Close denies waiting requests, releases all memory, live or not, and ends the pool's goroutines.
// The caller has synchronised the device. It waits for the job in flight. Idempotent: every call
// returns the first one's error, after that has finished. The error lists the driver calls that
// failed.
func (p *Pool) Close() error {
	if !p.closing.CompareAndSwap(false, true) {
		actors.Wait(p.host, p.closeDone)
		return p.closeErr
	}
	defer close(p.closeDone)
	_, err := p.request(context.Background(), func(token uint64) core.Message { return core.Close{Token: token} })
	p.ref.Stop(ErrClosed)
	actors.Wait(p.host, p.ref.Done())
	p.driver.stop()
	p.driver.keep(p.marks)
	if err != nil {
		err = p.finish(err)
	}
	p.driver.release()
	if freeErr := p.freeArena(p.device); freeErr != nil && err == nil {
		err = freeErr
	}
	p.closeErr = err
	return err
}

// finish releases the memory for an actor that was stopped before it could: the caller has waited
// for the actor and the last job, and owns their state now. Books that do not balance are left
// alone: they are no ground to unmap anything.
func (p *Pool) finish(cause error) error {
	if p.core.Closed() || p.core.Check() != nil {
		return cause
	}
	token := p.tokens.Add(1)
	job := p.core.InFlight() // its outcome may not have been received, or it was never begun
	fx := p.core.Step(core.Close{Token: token})
	for {
		for e := range effect.Popped(&fx.Ends) {
			if e.Token == token {
				return e.Err
			}
		}
		if fx.Job != nil {
			job = fx.Job
		}
		if job == nil {
			return cause
		}
		if p.driver.last.Job != job {
			p.driver.run(&work{job: job})
		}
		fx = p.core.Step(p.driver.last)
		job = nil
	}
}

// request sends a message whose answer is an End.
func (p *Pool) request(ctx context.Context, message func(token uint64) core.Message) (int64, error) {
	token := p.tokens.Add(1)
	s := &step{pool: p, message: message(token), token: token, promise: futures.NewPromise[int64](nil)}
	s.promise.On(p.host)
	p.ref.Call(s)
	return s.promise.Await(ctx)
}
