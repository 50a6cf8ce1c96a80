package core_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard/internal/core"
)

// step is a call in the reference's history. It keeps which steps come before it, all of them.
type step struct {
	before map[int]bool
}

// touched is an access to one byte.
type touched struct {
	step  int
	write bool
	life  int
}

// lot is one byte of memory as the reference knows it.
type lot struct {
	mapped, live bool
	managed      bool // the allocator's
	life         int  // of the buffer that has it, or had it last; 0 for none
	accesses     []touched
}

// reference keeps the whole order of calls, compares every access with every other one, byte by byte, and forgets only freed
// memory.
type reference struct {
	steps    []step
	last     map[cudadrv.Stream]int // the last step of each stream, -1 for none
	blocking map[cudadrv.Stream]bool
	events   map[cudadrv.Event]map[int]bool
	hosts    [2]map[int]bool
	lots     []lot
	lives    int
}

const lotCount = 24

func newReference() *reference {
	return &reference{
		last: map[cudadrv.Stream]int{0: -1}, blocking: map[cudadrv.Stream]bool{}, events: map[cudadrv.Event]map[int]bool{},
		hosts: [2]map[int]bool{{}, {}}, lots: make([]lot, lotCount),
	}
}

func join(into, from map[int]bool) { maps.Copy(into, from) }

// add adds a step after a stream's last one and after extra.
func (r *reference) add(s cudadrv.Stream, extra map[int]bool) int {
	before := maps.Clone(extra)
	if before == nil {
		before = map[int]bool{}
	}
	behind := func(at int) {
		if at >= 0 {
			join(before, r.steps[at].before)
			before[at] = true
		}
	}
	behind(r.last[s])
	join(before, r.hosts[core.Program])
	if s == 0 {
		for other, isBlocking := range r.blocking {
			if isBlocking {
				behind(r.last[other])
			}
		}
	} else if r.blocking[s] {
		behind(r.last[0])
	}
	r.steps = append(r.steps, step{before})
	r.last[s] = len(r.steps) - 1
	return r.last[s]
}

// point returns a new step's past, with itself.
func (r *reference) point(at int) map[int]bool {
	p := maps.Clone(r.steps[at].before)
	p[at] = true
	return p
}

func (r *reference) know(by core.Host, p map[int]bool) {
	join(r.hosts[core.Allocator], p)
	if by == core.Program {
		join(r.hosts[core.Program], p)
	}
}

func (r *reference) work(s cudadrv.Stream, accesses []core.Access) (found []core.Kind) {
	return r.workOf(s, accesses, nil)
}

// workOf is work that may touch only the lives that had its memory when it was captured; nil is any.
func (r *reference) workOf(s cudadrv.Stream, accesses []core.Access, lives map[int]bool) (found []core.Kind) {
	at := r.add(s, nil)
	for _, a := range accesses {
		for i := a.Ptr; i < a.Ptr+cudadrv.Ptr(a.Bytes); i++ {
			l := &r.lots[i-1]
			switch {
			case !l.mapped:
				found = append(found, core.Unmapped)
				continue
			case !l.managed: // the program's
			case l.life == 0:
				found = append(found, core.NeverAllocated)
			case !l.live, lives != nil && !lives[l.life]:
				found = append(found, core.UseAfterFree)
			}
			for _, other := range l.accesses {
				if (a.Write || other.write) && other.step != at && !r.steps[at].before[other.step] {
					found = append(found, core.Race)
				}
			}
			l.accesses = append(l.accesses, touched{at, a.Write, l.life})
		}
	}
	return found
}

// livesOf are those that have the memory of accesses, or had it last.
func (r *reference) livesOf(accesses []core.Access) map[int]bool {
	all := map[int]bool{}
	for _, a := range accesses {
		for i := a.Ptr; i < a.Ptr+cudadrv.Ptr(a.Bytes); i++ {
			all[r.lots[i-1].life] = true
		}
	}
	return all
}

func (r *reference) alloc(p cudadrv.Ptr, bytes int64, s cudadrv.Stream) (found []core.Kind) {
	at := r.add(s, nil) // a step that does nothing orders nothing else
	r.lives++
	for i := p; i < p+cudadrv.Ptr(bytes); i++ {
		l := &r.lots[i-1]
		if !l.mapped {
			found = append(found, core.Unmapped)
			continue
		}
		if l.live {
			found = append(found, core.Overlap)
		}
		l.accesses = slices.DeleteFunc(l.accesses, func(a touched) bool { return r.hosts[core.Allocator][a.step] })
		for _, a := range l.accesses {
			if !r.steps[at].before[a.step] {
				found = append(found, core.EarlyReuse)
			}
		}
		l.live, l.managed, l.life = true, true, r.lives
	}
	return found
}

func (r *reference) unmap(p cudadrv.Ptr, bytes int64, by core.Host) (found []core.Kind) {
	for i := p; i < p+cudadrv.Ptr(bytes); i++ {
		l := &r.lots[i-1]
		if !l.mapped {
			continue
		}
		isEarly := l.live
		for _, a := range l.accesses {
			isEarly = isEarly || !r.hosts[by][a.step]
		}
		if isEarly {
			found = append(found, core.EarlyUnmap)
		}
		*l = lot{}
	}
	return found
}

// player makes the same calls on both.
type player struct {
	t    *rapid.T
	core *core.Core
	ref  *reference

	streams []cudadrv.Stream
	lastID  cudadrv.Stream
	buffers map[cudadrv.Ptr]int64
	users   map[cudadrv.Ptr]cudadrv.Stream // the last, by the first address
	graphs  []*played

	lastGraph cudadrv.Graph
}

// played is a graph that can be launched: its steps, and the steps before the end of its last launch.
type played struct {
	exec  cudadrv.GraphExec
	steps [][]core.Access
	lives []map[int]bool // that had the memory of each step when it was captured
	last  map[int]bool
	made  *made
	ended bool // the checker does not know it
}

// made is a graph that launches are made of.
type made struct {
	graph cudadrv.Graph
	steps [][]core.Access
	lives []map[int]bool
	named bool
}

func (p *player) stream() cudadrv.Stream { return rapid.SampledFrom(p.streams).Draw(p.t, "stream") }

func (p *player) event() cudadrv.Event {
	return cudadrv.Event(rapid.IntRange(1, 3).Draw(p.t, "event"))
}

func (p *player) host() core.Host {
	return rapid.SampledFrom([]core.Host{core.Program, core.Allocator}).Draw(p.t, "host")
}

// span returns a range of lots.
func (p *player) span() (cudadrv.Ptr, int64) {
	begin := rapid.IntRange(1, lotCount).Draw(p.t, "begin")
	return cudadrv.Ptr(begin), int64(rapid.IntRange(1, min(8, lotCount+1-begin)).Draw(p.t, "bytes"))
}

// play takes one step and says which kinds of hazards it should show.
func (p *player) play() []core.Kind {
	switch verb := rapid.SampledFrom([]string{
		"work", "work", "work", "work", "record", "record", "wait", "wait", "query", "stream", "device",
		"map", "unmap", "alloc", "alloc", "free", "free", "create", "destroy", "capture", "launch", "launch", "branches", "change",
	}).Draw(p.t, "verb"); verb {
	case "work":
		s, accesses := p.accesses()
		if len(accesses) == 0 {
			return nil
		}
		p.core.Work(s, "kernel", nil, accesses)
		return p.ref.work(s, accesses)
	case "record":
		s, e := p.stream(), p.event()
		p.core.EventRecorded(e, s)
		p.ref.events[e] = p.ref.point(p.ref.add(s, nil))
	case "wait":
		s, e := p.stream(), p.event()
		p.core.StreamWaits(s, e)
		p.ref.add(s, p.ref.events[e])
	case "query":
		e, by := p.event(), p.host()
		p.core.Over(by, p.core.EventPoint(e))
		p.ref.know(by, p.ref.events[e])
	case "stream":
		s, by := p.stream(), p.host()
		p.core.Over(by, p.core.StreamPoint(s))
		p.ref.know(by, p.ref.point(p.ref.add(s, nil)))
	case "device":
		by := p.host()
		p.core.Over(by, p.core.DevicePoint())
		for at := range p.ref.steps {
			p.ref.know(by, p.ref.point(at))
		}
	case "create", "destroy":
		p.restream(verb)
	case "capture":
		p.capture()
	case "launch":
		return p.launch()
	case "branches":
		return p.branches()
	case "change":
		p.change()
	default:
		return p.remember(verb)
	}
	return nil
}

// accesses are mostly of live buffers, by the stream that used the first one last: else no history gets far.
func (p *player) accesses() (s cudadrv.Stream, all []core.Access) {
	s = p.stream()
	live := slices.Sorted(maps.Keys(p.buffers))
	for n := range rapid.IntRange(1, 2).Draw(p.t, "accesses") {
		a := core.Access{Write: rapid.Bool().Draw(p.t, "write")}
		switch {
		case rapid.IntRange(0, 99).Draw(p.t, "wild") == 50:
			a.Ptr, a.Bytes = p.span()
		case len(live) == 0:
			continue
		default:
			a.Ptr = rapid.SampledFrom(live).Draw(p.t, "buffer")
			a.Bytes = p.buffers[a.Ptr]
			if last, ok := p.users[a.Ptr]; ok && n == 0 && rapid.IntRange(0, 4).Draw(p.t, "loyal") > 0 && slices.Contains(p.streams, last) {
				s = last
			}
			if offset := cudadrv.Ptr(rapid.IntRange(0, int(a.Bytes)-1).Draw(p.t, "offset")); rapid.Bool().Draw(p.t, "part") {
				a.Ptr, a.Bytes = a.Ptr+offset, a.Bytes-int64(offset)
			}
			p.users[a.Ptr] = s
		}
		all = append(all, a)
	}
	return s, all
}

// capture makes a graph whose steps alternate between two streams, one after the other. It orders nothing outside.
func (p *player) capture() {
	first, second := p.stream(), p.stream()
	if first == 0 || second == 0 {
		return
	}
	const turn cudadrv.Event = 99
	var g made
	p.core.CaptureBegan(first)
	at := first
	to := func(s cudadrv.Stream) {
		if s != at {
			p.core.EventRecorded(turn, at)
			p.core.StreamWaits(s, turn)
			at = s
		}
	}
	for i := range rapid.IntRange(0, 3).Draw(p.t, "steps") {
		_, accesses := p.accesses()
		if len(accesses) == 0 {
			break
		}
		to([]cudadrv.Stream{first, second}[i%2])
		p.work(&g, at, accesses)
	}
	to(first)
	p.finish(&g, first)
}

// work captures a step, whose accesses are the caller's afterwards.
func (p *player) work(g *made, s cudadrv.Stream, accesses []core.Access) {
	g.steps, g.lives = append(g.steps, slices.Clone(accesses)), append(g.lives, p.ref.livesOf(accesses))
	p.core.Work(s, "kernel", nil, accesses)
	clear(accesses)
}

// finish ends a capture, and makes something of it that can be launched, or nothing.
func (p *player) finish(g *made, first cudadrv.Stream) {
	if rapid.IntRange(0, 9).Draw(p.t, "drops") == 5 {
		p.core.CaptureDropped(first)
		return
	}
	p.lastGraph++
	g.graph = p.lastGraph
	p.core.CaptureEnded(first, g.graph)
	if g.named = rapid.Bool().Draw(p.t, "named"); g.named {
		names := []cudadrv.GraphNode{}
		for i := range g.steps {
			names = append(names, nodeOf(g, i))
		}
		p.core.NodesNamed(g.graph, names)
		clear(names)
	}
	for range rapid.IntRange(1, 2).Draw(p.t, "instances") {
		x := &played{exec: cudadrv.GraphExec(len(p.graphs) + 1), steps: slices.Clone(g.steps), lives: slices.Clone(g.lives), made: g}
		p.core.GraphInstantiated(g.graph, x.exec)
		p.graphs = append(p.graphs, x)
	}
	if rapid.Bool().Draw(p.t, "forgets the graph") {
		p.core.GraphDestroyed(g.graph)
		g.graph = 0
	}
}

func nodeOf(g *made, i int) cudadrv.GraphNode { return cudadrv.GraphNode(int(g.graph)*100 + i + 1) }

// branches captures work on two streams. The second one follows the work of the first before the fork, and the first one follows
// the work of the second at the end.
func (p *player) branches() (found []core.Kind) {
	first, second := p.stream(), p.stream()
	if first == 0 || second == 0 || first == second {
		return nil
	}
	const fork, end cudadrv.Event = 97, 98
	var g made
	var trunk, branch [][]core.Access // without an order
	p.core.CaptureBegan(first)
	p.core.EventRecorded(fork, first)
	p.core.StreamWaits(second, fork)
	for range rapid.IntRange(1, 4).Draw(p.t, "steps") {
		_, accesses := p.accesses()
		if len(accesses) == 0 {
			break
		}
		kept := slices.Clone(accesses)
		own, other, s := &trunk, branch, first
		if rapid.Bool().Draw(p.t, "branch") {
			own, other, s = &branch, trunk, second
		}
		*own = append(*own, kept)
		p.work(&g, s, accesses)
		for _, one := range other {
			if conflicts(one, kept) {
				found = append(found, core.Race)
			}
		}
	}
	p.core.EventRecorded(end, second)
	p.core.StreamWaits(first, end)
	p.finish(&g, first)
	return found
}

func conflicts(a, b []core.Access) bool {
	for _, x := range a {
		for _, y := range b {
			if (x.Write || y.Write) && x.Ptr < y.Ptr+cudadrv.Ptr(y.Bytes) && y.Ptr < x.Ptr+cudadrv.Ptr(x.Bytes) {
				return true
			}
		}
	}
	return false
}

// change gives a kernel of a graph other parameters, updates the graph, or ends it.
func (p *player) change() {
	if len(p.graphs) == 0 {
		return
	}
	g := rapid.SampledFrom(p.graphs).Draw(p.t, "graph")
	node := rapid.IntRange(0, 3).Draw(p.t, "node")
	name := cudadrv.GraphNode(1_000_000)
	if g.made.graph != 0 {
		name = nodeOf(g.made, node)
	}
	known := !g.ended && g.made.graph != 0 && g.made.named && node < len(g.made.steps) && len(g.steps) == len(g.made.steps)
	switch rapid.SampledFrom([]string{"changed", "touches", "updated", "ended"}).Draw(p.t, "change") {
	case "changed":
		p.core.NodeChanged(g.exec, name)
		if g.steps = slices.Clone(g.steps); known {
			g.steps[node] = nil
		} else {
			g.steps, g.lives = nil, nil
		}
	case "touches":
		_, accesses := p.accesses()
		kept, lives := slices.Clone(accesses), p.ref.livesOf(accesses)
		p.core.NodeTouches(g.exec, name, nil, accesses)
		clear(accesses)
		if g.steps, g.lives = slices.Clone(g.steps), slices.Clone(g.lives); known {
			g.steps[node], g.lives[node] = kept, lives
		} else {
			g.steps, g.lives = nil, nil
		}
	case "updated":
		other := rapid.SampledFrom(p.graphs).Draw(p.t, "by")
		p.core.GraphUpdated(g.exec, other.made.graph)
		g.steps, g.lives = nil, nil
		if other.made.graph != 0 {
			g.steps, g.lives = slices.Clone(other.made.steps), slices.Clone(other.made.lives)
		}
	case "ended":
		p.core.GraphExecDestroyed(g.exec)
		g.ended = true
	}
}

// launch runs all steps after the last launch.
func (p *player) launch() (found []core.Kind) {
	if len(p.graphs) == 0 {
		return nil
	}
	g, s := rapid.SampledFrom(p.graphs).Draw(p.t, "graph"), p.stream()
	p.core.GraphLaunched(g.exec, s, nil)
	if g.ended {
		p.ref.add(s, nil)
		return nil
	}
	p.ref.add(s, g.last)
	for i, accesses := range g.steps {
		found = append(found, p.ref.workOf(s, accesses, g.lives[i])...)
	}
	g.last = p.ref.point(p.ref.add(s, nil))
	return found
}

func (p *player) restream(verb string) {
	if verb == "create" && len(p.streams) < 5 {
		p.lastID++
		isBlocking := rapid.Bool().Draw(p.t, "blocking")
		p.streams = append(p.streams, p.lastID)
		p.core.StreamCreated(p.lastID, isBlocking)
		p.ref.last[p.lastID], p.ref.blocking[p.lastID] = -1, isBlocking
	}
	if verb == "destroy" && len(p.streams) > 2 {
		at := rapid.IntRange(1, len(p.streams)-1).Draw(p.t, "which")
		s := p.streams[at]
		p.streams = slices.Delete(p.streams, at, at+1)
		p.core.StreamDestroyed(s)
		delete(p.ref.blocking, s)
	}
}

// remember plays a step of memory.
func (p *player) remember(verb string) []core.Kind {
	switch verb {
	case "map":
		at, bytes := p.span()
		by := p.host()
		p.core.Mapped(at, bytes, by)
		for i := at; i < at+cudadrv.Ptr(bytes); i++ {
			if l := &p.ref.lots[i-1]; !l.mapped {
				l.mapped, l.managed = true, by == core.Allocator
			}
		}
	case "unmap":
		at, bytes := p.span()
		if rapid.IntRange(0, 9).Draw(p.t, "wild") > 0 && slices.ContainsFunc(p.ref.lots[at-1:int64(at)-1+bytes], func(l lot) bool { return l.live }) {
			return nil
		}
		by := p.host()
		p.core.Unmapped(at, bytes, by, nil)
		return p.ref.unmap(at, bytes, by)
	case "alloc":
		at, bytes := p.span()
		if rapid.IntRange(0, 29).Draw(p.t, "wild") != 15 && !p.isFree(at, bytes) {
			return nil
		}
		s := p.stream()
		p.buffers[at], p.users[at] = bytes, s
		p.core.Allocated(core.Buffer{Ptr: at, Bytes: bytes, Stream: s})
		return p.ref.alloc(at, bytes, s)
	case "free":
		live := slices.Sorted(maps.Keys(p.buffers))
		if len(live) == 0 {
			return nil
		}
		at := rapid.SampledFrom(live).Draw(p.t, "buffer")
		p.core.Freed(at, nil)
		for i := at; i < at+cudadrv.Ptr(p.buffers[at]); i++ {
			p.ref.lots[i-1].live = false
		}
		delete(p.buffers, at)
	}
	return nil
}

func (p *player) isFree(at cudadrv.Ptr, bytes int64) bool {
	for i := at; i < at+cudadrv.Ptr(bytes); i++ {
		if l := p.ref.lots[i-1]; !l.mapped || l.live {
			return false
		}
	}
	return true
}

// Up to the first hazard both agree on every step, and on the kinds of that one. After it the core knows less on purpose: it
// has reported.
func TestAgainstTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &player{t: t, core: core.New(), ref: newReference(), streams: []cudadrv.Stream{0}}
		p.buffers, p.users = map[cudadrv.Ptr]int64{}, map[cudadrv.Ptr]cudadrv.Stream{}
		p.core.Mapped(1, lotCount, core.Allocator)
		for i := range p.ref.lots {
			p.ref.lots[i].mapped, p.ref.lots[i].managed = true, true
		}
		for range 2 {
			p.restream("create")
		}
		for range 3 {
			if len(p.remember("alloc")) > 0 {
				return
			}
		}
		for n := range 60 {
			want := map[core.Kind]bool{}
			for _, k := range p.play() {
				want[k] = true
			}
			reports, _ := p.core.Reports()
			got := map[core.Kind]bool{}
			for _, r := range reports {
				got[r.Kind] = true
			}
			require.Equal(t, want, got, "step %d: %s", n, fmt.Sprint(reports))
			require.NoError(t, p.core.Check())
			if len(want) > 0 {
				return
			}
		}
	})
}
