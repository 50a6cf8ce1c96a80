package replay

import (
	"context"
	"errors"
	"sync"
)

// errGaveUp stops the players of a copy that gives up its round.
var errGaveUp = errors.New("replay: the copy gives up its round")

// groups holds the players of copies that wait for each other's frees, by copy. If a wait is refused as a deadlock, its copy
// behaves like a program: it gives up its round, frees all its memory, and restarts when another copy has finished its own.
// Nil where copies do not wait, or there is one.
//
// A copy whose players have all finished the round frees its remaining memory at once, for others to use.
type groups struct {
	session *session
	all     []*group

	mu      sync.Mutex
	arbiter arbiter
	changed chan struct{} // closed and replaced whenever a copy has freed all its memory
}

// group is the players of one copy.
type group struct {
	number  int
	players []*player

	// Guarded by groups.mu
	attempt *attempt
	arrived int // players that have come to the end of the attempt, or have stopped
}

// attempt is one pass of a copy over its round: the first, or one after the round was given up. Players read again after over.
type attempt struct {
	number int // from 0
	over   chan struct{}
	again  bool // another one follows
}

// newGroups parts the players, one for each stream, among so many copies.
func newGroups(se *session, copies int) *groups {
	gs := &groups{session: se, arbiter: newArbiter(copies)}
	count := len(se.players) / copies
	for number := range copies {
		g := &group{number: number, players: se.players[number*count : (number+1)*count]}
		for _, p := range g.players {
			p.group = g
		}
		gs.all = append(gs.all, g)
	}
	return gs
}

// begin is the start of a round, while nobody plays.
func (gs *groups) begin() {
	if gs == nil {
		return
	}
	gs.arbiter.begin()
	gs.changed = make(chan struct{})
	for _, g := range gs.all {
		g.attempt, g.arrived = &attempt{over: make(chan struct{})}, 0
	}
}

// restartCount returns the number of restarted rounds.
func (gs *groups) restartCount() uint64 {
	if gs == nil {
		return 0
	}
	return gs.arbiter.restartCount
}

// playOften plays the player's part of a round, and again where its copy gives the round up.
func (p *player) playOften(ctx context.Context, round int) error {
	gs := p.session.groups
	for {
		a, err := gs.playOnce(ctx, p, round)
		if err != nil && !errors.Is(err, errGaveUp) {
			return err
		}
		if err := gs.arrive(ctx, p, round); err != nil {
			return err
		}
		if !a.again {
			return nil
		}
	}
}

// playOnce plays one attempt of a player. It ends early with errGaveUp where the copy gives up.
func (gs *groups) playOnce(ctx context.Context, p *player, round int) (*attempt, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gs.mu.Lock()
	a := p.group.attempt
	p.stop = cancel
	if gs.arbiter.stages[p.group.number] == stopping { // others of the copy began before
		cancel(errGaveUp)
	}
	gs.mu.Unlock()
	return a, p.play(ctx, round, a.number)
}

// arrive waits, with the stream suspended, for the decision whether the copy plays on. The last player of a copy to arrive
// frees the copy's memory.
func (gs *groups) arrive(ctx context.Context, p *player, round int) error {
	g := p.group
	gs.mu.Lock()
	a := g.attempt
	g.arrived++
	last := g.arrived == len(g.players)
	if !last {
		p.suspend()
	}
	gaveUp := gs.arbiter.stages[g.number] == stopping
	gs.mu.Unlock()
	if last {
		if err := gs.session.freeAll(g, round, gaveUp); err != nil {
			return err
		}
		gs.freed(p)
	}
	select {
	case <-a.over:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// freed records that the player's copy has freed all its memory. It resumes the continuing players before it suspends the
// player's stream, so that no standstill occurs in between.
func (gs *groups) freed(p *player) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	a := p.group.attempt
	for _, number := range gs.arbiter.freed(p.group.number) {
		gs.restart(gs.all[number])
	}
	switch gs.arbiter.stages[p.group.number] {
	case ended:
		p.suspend()
		close(a.over)
	case aside:
		p.suspend()
	case playing, stopping: // it continues
	}
	close(gs.changed)
	gs.changed = make(chan struct{})
}

// restart lets a copy that holds no memory restart its round. The caller holds mu.
func (gs *groups) restart(g *group) {
	se := gs.session
	for _, p := range g.players {
		if p.resume != nil {
			p.resume()
		}
		if se.clock != nil {
			p.begun = se.clock.Now()
		}
		for i := range p.program.steps {
			s := &p.program.steps[i]
			if s.allocates() {
				se.missing[s.id] = false
			}
			if s.kind == stepAllocShared {
				se.gates[s.id].close()
			}
		}
	}
	a := g.attempt
	g.attempt, g.arrived = &attempt{number: a.number + 1, over: make(chan struct{})}, 0
	a.again = true
	close(a.over)
}

// freeAll frees the memory of a copy whose players have all stopped.
func (se *session) freeAll(g *group, round int, gaveUp bool) error {
	if gaveUp {
		return g.abandon(round, len(se.trace.Events))
	}
	for i := range se.leftovers {
		if s := &se.leftovers[i]; se.players[s.stream].group == g {
			if err := se.freeLeftover(round, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// abandon frees the buffers of the steps that were taken. event is the one to name in errors.
func (g *group) abandon(round, event int) error {
	freed := map[uint32]bool{}
	for _, p := range g.players {
		for _, s := range p.program.steps[:p.taken] {
			if !s.allocates() {
				freed[s.id] = true
			}
		}
	}
	for _, p := range g.players {
		for i := range p.program.steps[:p.taken] {
			if s := &p.program.steps[i]; s.allocates() && !freed[s.id] {
				if err := p.watchedFree(s); err != nil {
					return p.session.at(round, event, err)
				}
			}
		}
	}
	return nil
}

// freedCount returns the count to pass to refused for a wait that begins now.
func (gs *groups) freedCount() uint64 {
	if gs == nil {
		return 0
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	return gs.arbiter.freedCount
}

// refused judges a wait that was refused as a deadlock, and does not wait.
func (gs *groups) refused(p *player, freedCount uint64) (verdict, <-chan struct{}) {
	if gs == nil {
		return fails, nil
	}
	gs.mu.Lock()
	defer gs.mu.Unlock()
	v := gs.arbiter.refused(p.group.number, freedCount)
	if v == givesUp {
		for _, other := range p.group.players {
			if other.stop != nil { // else it has yet to begin
				other.stop(errGaveUp)
			}
		}
	}
	return v, gs.changed
}
