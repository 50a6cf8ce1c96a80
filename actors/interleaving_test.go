package actors

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recovered"
)

// stage is a Host that runs tasks one at a time and draws which of them runs next, at every place between the
// atomic operations of a turn.
type stage struct {
	random  *rand.Rand
	tasks   []*stageTask
	current *stageTask
	queued  map[string][]*stageTask // after the one that runs, by worker
	places  map[string]int
}

type stageTask struct {
	worker string
	closed []<-chan struct{}
	next   func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
}

func newStage(seed uint64) *stage {
	return &stage{
		random: rand.New(rand.NewPCG(seed, 1)), //nolint:gosec // reproducible is the point
		queued: map[string][]*stageTask{}, places: map[string]int{},
	}
}

// Go implements Host.
func (g *stage) Go(worker string, f func()) {
	task := &stageTask{worker: worker}
	task.next, task.stop = iter.Pull(func(yield func(struct{}) bool) {
		task.yield = yield
		f()
	})
	if waiting, busy := g.queued[worker]; worker != "" && busy {
		g.queued[worker] = append(waiting, task)
		return
	}
	if worker != "" {
		g.queued[worker] = nil
	}
	g.tasks = append(g.tasks, task)
}

// Wait implements Host.
func (g *stage) Wait(closed ...<-chan struct{}) {
	task := g.current
	for !anyClosed(closed) {
		task.closed = closed
		task.yield(struct{}{})
	}
	task.closed = nil
}

// Reach implements Host.
func (g *stage) Reach(place string) {
	g.places[place]++
	if task := g.current; task != nil {
		task.yield(struct{}{})
	}
}

// Behavior implements Host.
func (g *stage) Behavior(_ string, b Behavior) Behavior { return &seams{b, g} }

// seams is a behavior with a place before and after each of its calls.
type seams struct {
	Behavior
	stage *stage
}

func (s *seams) Receive(m Message) {
	s.stage.Reach("before a message")
	s.Behavior.Receive(m)
	s.stage.Reach("after a message")
}

func (s *seams) Detach() Effects {
	s.stage.Reach("before the end of a turn")
	return s.Behavior.Detach()
}

func anyClosed(channels []<-chan struct{}) bool {
	for _, c := range channels {
		select {
		case <-c:
			return true
		default:
		}
	}
	return false
}

// run runs tasks until none can run. Those that are left wait.
func (g *stage) run() {
	for {
		var ready []*stageTask
		for _, task := range g.tasks {
			if len(task.closed) == 0 || anyClosed(task.closed) {
				ready = append(ready, task)
			}
		}
		if len(ready) == 0 {
			return
		}
		task := ready[g.random.IntN(len(ready))]
		for range 1 << g.random.IntN(3) { // past some places
			g.current = task
			_, more := task.next()
			g.current = nil
			if !more {
				g.end(task)
				break
			}
			if len(task.closed) > 0 {
				break
			}
		}
	}
}

func (g *stage) end(task *stageTask) {
	for i := range g.tasks {
		if g.tasks[i] == task {
			g.tasks = append(g.tasks[:i], g.tasks[i+1:]...)
			break
		}
	}
	if task.worker == "" {
		return
	}
	if waiting := g.queued[task.worker]; len(waiting) > 0 {
		g.queued[task.worker] = waiting[1:]
		g.tasks = append(g.tasks, waiting[0])
	} else {
		delete(g.queued, task.worker)
	}
}

// errDrawn is the value of drawn panics.
var errDrawn = recovered.Planted("drawn")

// play is an actor, its callers, and their observations.
type play struct {
	*stage
	ref     *Ref
	jobs    []*job
	inside  int    // turns
	over    bool   // quarantined or stopped: no code runs in a turn any more
	stops   uint64 // calls of Stopped
	stopped bool   // a task called Stop or StopNow, or the actor is quarantined
	crash   bool   // the next Detach panics
	audit   bool   // the next audit finds something
	broken  []string
}

func (p *play) breaks(format string, args ...any) {
	p.broken = append(p.broken, fmt.Sprintf(format, args...))
}

// enter notes code that runs in a turn.
func (p *play) enter(what string) {
	if p.inside++; p.inside > 1 {
		p.breaks("%s inside another turn", what)
	}
	if p.over {
		p.breaks("%s after the end", what)
	}
	p.Reach("inside")
	p.inside--
}

func (p *play) Receive(m Message) {
	p.enter("a message")
	if j, ok := m.(*job); ok {
		if j.run != nil {
			j.run()
		}
		j.answer()
	}
}

func (p *play) Detach() Effects {
	if p.crash {
		p.crash, p.over, p.stopped = false, true, true
		panic(errDrawn)
	}
	if p.random.IntN(3) == 0 {
		return effect(func() {
			p.Reach("effects")
			if p.random.IntN(8) == 0 {
				panic(errDrawn)
			}
		})
	}
	return nil
}

func (p *play) Panicked(Panic) error {
	if p.audit {
		p.audit, p.over, p.stopped = false, true, true
		return errBooks
	}
	return nil
}

func (p *play) Stopped(error) {
	p.over = true
	p.stops++
}

// act is one call of a caller.
func (p *play) act() {
	newOne := func(run func()) *job {
		j := newJob(run)
		j.looked = func() { p.Reach("before a message is queued") }
		p.jobs = append(p.jobs, j)
		return j
	}
	switch p.random.IntN(16) {
	case 0, 1, 2:
		p.ref.Call(newOne(nil))
	case 3, 4:
		p.ref.Tell(newOne(nil))
	case 5:
		p.ref.Call(newOne(func() { p.ref.Tell(newOne(nil)) }))
	case 6:
		p.ref.Call(newOne(func() { panic(errDrawn) }))
	case 7, 8, 9:
		if p.ref.TryEnter() {
			p.enter("an entered turn")
			p.ref.Perform(p.leave())
		}
	case 10:
		p.crash = true // the turn that ends next
		p.ref.Call(newOne(nil))
	case 11:
		p.audit = true
		p.ref.Tell(newOne(func() { panic(errDrawn) }))
	case 12, 13:
		p.ref.box.postSystem(unsuspend{})
	case 14:
		if p.random.IntN(2) == 0 {
			p.stopped = true
			p.ref.Stop(errClosed)
		}
	default:
		if p.random.IntN(4) == 0 {
			p.stopped = true
			p.ref.StopNow()
		}
	}
}

// leave ends an entered turn in one of the ways that there are.
func (p *play) leave() (effects Effects) {
	switch p.random.IntN(4) {
	case 0:
		p.ref.End()
		return nil
	case 1:
		p.audit = p.audit || p.random.IntN(2) == 0
		func() {
			defer p.ref.Exit(&effects, nil)
			panic(errDrawn)
		}()
		return effects
	}
	func() {
		defer p.ref.Exit(&effects, nil)
	}()
	return effects
}

// settled checks the promises when no task can run: nobody waits who could be served.
func (p *play) settled() {
	b := &p.ref.box
	for _, j := range p.jobs {
		if n := j.answerCount.Load(); n != 1 {
			p.breaks("a message has %d answers", n)
		}
	}
	if b.taken != nil || b.waiting() {
		p.breaks("messages wait though nothing can run")
	}
	if b.takenSystem != nil || b.system.Load() != nil {
		p.breaks("system messages wait though nothing can run")
	}
	want := idle
	if p.stopped {
		want = closed
	}
	if state := b.state.Load(); state != want {
		p.breaks("the state is %d, want %d", state, want)
	}
	if p.stopped != (p.stops == 1) || p.stops > 1 {
		p.breaks("the end was told %d times", p.stops)
	}
	if p.stopped && !anyClosed([]<-chan struct{}{p.ref.Done()}) {
		p.breaks("the actor has ended, and Done is open")
	}
}

// playOne plays one order of some callers.
func playOne(t *testing.T, seed uint64) *play {
	t.Helper()
	p := &play{stage: newStage(seed)}
	var err error
	p.ref, err = Spawn(p.stage, nil, fmt.Sprintf("played-%d", seed), p)
	require.NoError(t, err)
	callers, acts := 2+p.random.IntN(2), 1+p.random.IntN(3) // few: a later turn would repair a loss
	for range callers {
		p.Go("", func() {
			for range acts {
				p.act()
			}
		})
	}
	p.run()
	p.settled()
	if len(p.broken) == 0 {
		p.stopped = true
		p.Go("", func() { p.ref.Stop(nil) })
		p.run()
		p.settled()
	}
	for _, task := range p.tasks {
		p.broken = append(p.broken, "a task hangs: "+task.worker)
	}
	return p
}

// For any order of callers, the worker, panics and ends at the places of a turn: turns do not overlap, nobody runs in one
// after a quarantine, each message has one answer, and none waits that could be received.
func TestNothingIsLostInAnyOrder(t *testing.T) {
	seeds := uint64(20_000)
	if testing.Short() {
		seeds = 4000
	}
	places := map[string]int{}
	for seed := range seeds {
		p := playOne(t, seed)
		require.Empty(t, p.broken, "seed %d", seed)
		for place, n := range p.places {
			places[place] += n
		}
	}
	for _, place := range []string{beforeLeaving, afterLeaving, "before a message is queued"} {
		require.Positive(t, places[place], place)
	}
}
