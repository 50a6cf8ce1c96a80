package core_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard/internal/core"
	"github.com/go-vram/vram/cudadrv/site"
)

const (
	idOfOne uint32 = 11
	idOfTwo uint32 = 12
)

// bufferOf is a buffer of 16 bytes as a report shows it, without places.
func bufferOf(p cudadrv.Ptr, s cudadrv.Stream, tag string) *core.Buffer {
	id := map[cudadrv.Stream]uint32{one: idOfOne, two: idOfTwo}[s]
	return &core.Buffer{Ptr: p, Bytes: 16, Stream: s, Tag: tag, StreamID: id}
}

func onStream(what string, s cudadrv.Stream) core.Use {
	return core.Use{What: what, Stream: s, StreamID: map[cudadrv.Stream]uint32{one: idOfOne, two: idOfTwo}[s]}
}

// Each kind of hazard has a report with all of its facts, and once.
func TestFactsOfReports(t *testing.T) {
	const next = arena + 16
	unmapped := core.Use{What: "unmapped", OnHost: true}
	a, b := *bufferOf(arena, one, "a"), *bufferOf(next, two, "b")
	write := func(p cudadrv.Ptr, bytes int64) []core.Access {
		return []core.Access{{Ptr: p, Bytes: bytes, Write: true}}
	}
	read := func(p cudadrv.Ptr, bytes int64) []core.Access { return []core.Access{{Ptr: p, Bytes: bytes}} }
	const branches = "both are in one graph, on branches without an order"
	const loose = "the buffer was freed without an order between that use and its own stream, and without an announcement of it"
	for name, c := range map[string]struct {
		make func(k *core.Core)
		want []core.Report
	}{
		"a race": {func(k *core.Core) {
			k.Work(one, "copy", nil, write(arena, 32))
			k.Work(two, "kernel", nil, read(arena+4, 8))
		}, []core.Report{{
			Kind: core.Race, Start: arena + 4, Bytes: 8, Now: onStream("kernel reads", two), Before: onStream("copy writes", one), Buffer: &a,
		}}},
		"a race with a former buffer's work": {func(k *core.Core) {
			k.Work(one, "kernel", nil, read(arena, 16))
			k.Freed(arena, nil)
			k.Allocated(core.Buffer{Ptr: arena, Bytes: 16, Stream: one, Tag: "later", StreamID: idOfOne})
			k.Work(two, "kernel", nil, write(arena, 16))
		}, []core.Report{{
			Kind: core.Race, Start: arena, Bytes: 16, Now: onStream("kernel writes", two), Before: onStream("kernel reads", one),
			Buffer: bufferOf(arena, one, "later"), Former: &a,
		}}},
		"memory that was never allocated": {func(k *core.Core) { k.Work(one, "kernel", nil, write(next+16, 4)) }, []core.Report{{
			Kind: core.NeverAllocated, Start: next + 16, Bytes: 4, Now: onStream("kernel writes", one),
		}}},
		"use after free": {func(k *core.Core) {
			k.Freed(next, nil)
			k.Work(two, "kernel", nil, write(next+15, 1))
		}, []core.Report{{Kind: core.UseAfterFree, Start: next + 15, Bytes: 1, Now: onStream("kernel writes", two), Buffer: &b}}},
		"a stale buffer": {func(k *core.Core) { k.Stale(a, onStream("free", two)) }, []core.Report{{
			Kind: core.UseAfterFree, Start: arena, Bytes: 16, Now: onStream("free", two), Buffer: &a,
		}}},
		"memory that was not mapped": {func(k *core.Core) { k.Work(one, "kernel", nil, read(0x100, 4)) }, []core.Report{{
			Kind: core.Unmapped, Start: 0x100, Bytes: 4, Now: onStream("kernel reads", one),
		}}},
		"memory that is not mapped any more": {func(k *core.Core) {
			k.Freed(arena, nil)
			k.Unmapped(arena, 16, core.Allocator, nil)
			k.Work(one, "kernel", nil, read(arena, 4))
		}, []core.Report{{
			Kind: core.Unmapped, Start: arena, Bytes: 4, Now: onStream("kernel reads", one), Before: unmapped, Buffer: &a,
		}}},
		"a buffer in memory that is not mapped": {func(k *core.Core) {
			k.Unmapped(next+32, 16, core.Allocator, nil)
			k.Allocated(core.Buffer{Ptr: next + 24, Bytes: 16, Stream: two, StreamID: idOfTwo})
		}, []core.Report{{
			Kind: core.Unmapped, Start: next + 32, Bytes: 8, Now: onStream("allocated", two), Before: unmapped, Buffer: bufferOf(next+24, two, ""),
		}}},
		"overlap": {func(k *core.Core) {
			k.Allocated(core.Buffer{Ptr: arena + 8, Bytes: 8, Stream: two, StreamID: idOfTwo})
		}, []core.Report{{
			Kind: core.Overlap, Start: arena + 8, Bytes: 8, Now: onStream("allocated", two), Before: onStream("allocated", one),
			Buffer: &core.Buffer{Ptr: arena + 8, Bytes: 8, Stream: two, StreamID: idOfTwo}, Former: &a,
		}}},
		"early reuse, told once": {func(k *core.Core) {
			k.Work(one, "kernel", nil, write(arena, 8))
			k.Work(one, "copy", nil, read(arena+8, 8))
			k.Freed(arena, nil)
			k.Allocated(core.Buffer{Ptr: arena, Bytes: 16, Stream: two, StreamID: idOfTwo})
		}, []core.Report{{
			Kind: core.EarlyReuse, Start: arena, Bytes: 8, Now: onStream("allocated", two), Before: onStream("kernel writes", one),
			Buffer: bufferOf(arena, two, ""), Former: &a,
		}}},
		"early reuse after a use that was not announced": {func(k *core.Core) {
			k.Allocated(core.Buffer{Ptr: next + 16, Bytes: 1, Stream: one, StreamID: idOfOne})
			k.Work(two, "kernel", nil, read(next+16, 1))
			k.Freed(next+16, nil)
			k.Allocated(core.Buffer{Ptr: next + 16, Bytes: 1, Stream: one, StreamID: idOfOne})
		}, []core.Report{{
			Kind: core.EarlyReuse, Start: next + 16, Bytes: 1, Now: onStream("allocated", one), Before: onStream("kernel reads", two), Hint: loose,
			Buffer: &core.Buffer{Ptr: next + 16, Bytes: 1, Stream: one, StreamID: idOfOne},
			Former: &core.Buffer{Ptr: next + 16, Bytes: 1, Stream: one, StreamID: idOfOne},
		}}},
		"early reuse of a part after a use that was not announced": {func(k *core.Core) {
			k.Work(two, "kernel", nil, read(arena+8, 8))
			k.Freed(arena, nil)
			k.Allocated(core.Buffer{Ptr: arena, Bytes: 16, Stream: one, StreamID: idOfOne})
		}, []core.Report{{
			Kind: core.EarlyReuse, Start: arena + 8, Bytes: 8, Now: onStream("allocated", one), Before: onStream("kernel reads", two), Hint: loose,
			Buffer: bufferOf(arena, one, ""), Former: &a,
		}}},
		"memory of which a part is not mapped": {func(k *core.Core) { k.Work(one, "kernel", nil, read(arena-4, 8)) }, []core.Report{{
			Kind: core.Unmapped, Start: arena - 4, Bytes: 4, Now: onStream("kernel reads", one),
		}}},
		"work on a stream that has a number": {func(k *core.Core) {
			k.StreamCreated(3, false)
			k.NumberStream(3, 1)
			k.NumberStream(3, 0) // not known
			k.Work(3, "kernel", nil, read(1, 1))
		}, []core.Report{{Kind: core.Unmapped, Start: 1, Bytes: 1, Now: core.Use{What: "kernel reads", Stream: 3, StreamID: 1}}}},
		"a buffer as its caller had it before": {func(k *core.Core) {
			k.Freed(arena, nil)
			k.Allocated(core.Buffer{Ptr: arena, Bytes: 16, Stream: one, StreamID: idOfOne, Freed: site.Here(0)})
			k.Unmapped(arena, 16, core.Allocator, nil)
		}, []core.Report{{
			Kind: core.EarlyUnmap, Start: arena, Bytes: 16, Now: unmapped, Buffer: bufferOf(arena, one, ""), Hint: "the buffer was not freed",
		}}},
		"early unmap under work, told once": {func(k *core.Core) {
			k.Work(one, "kernel", nil, write(arena, 16))
			k.Work(two, "kernel", nil, write(next, 16))
			k.Freed(arena, nil)
			k.Freed(next, nil)
			k.Unmapped(arena, 32, core.Allocator, nil)
		}, []core.Report{{Kind: core.EarlyUnmap, Start: arena, Bytes: 16, Now: unmapped, Before: onStream("kernel writes", one), Buffer: &a}}},
		"early unmap under a former buffer's work": {func(k *core.Core) {
			k.Work(one, "kernel", nil, read(arena, 16))
			k.Freed(arena, nil)
			k.Allocated(core.Buffer{Ptr: arena, Bytes: 16, Stream: one, StreamID: idOfOne})
			k.Freed(arena, nil)
			k.Unmapped(arena, 16, core.Allocator, nil)
		}, []core.Report{{
			Kind: core.EarlyUnmap, Start: arena, Bytes: 16, Now: unmapped, Before: onStream("kernel reads", one), Buffer: bufferOf(arena, one, ""), Former: &a,
		}}},
		"early unmap of live buffers, told once": {func(k *core.Core) { k.Unmapped(arena, 32, core.Allocator, nil) }, []core.Report{{
			Kind: core.EarlyUnmap, Start: arena, Bytes: 16, Now: unmapped, Buffer: &a, Hint: "the buffer was not freed",
		}}},
		"a race in a graph": {func(k *core.Core) {
			k.CaptureBegan(one)
			k.EventRecorded(event, one)
			k.StreamWaits(two, event)
			k.Work(one, "kernel", nil, write(arena, 16))
			k.Work(two, "copy", nil, read(arena, 1))
			k.CaptureDropped(one)
		}, []core.Report{{
			Kind: core.Race, Start: arena, Bytes: 1, Now: onStream("copy reads", two), Before: onStream("kernel writes", one), Hint: branches,
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			k := core.New()
			k.StreamCreated(one, false)
			k.StreamCreated(two, false)
			k.Mapped(arena, 0x1000, core.Allocator)
			k.NumberStream(one, idOfOne)
			k.Allocated(a)
			k.Allocated(b)
			c.make(k)
			kept, count := k.Reports()
			assert.Equal(t, c.want, kept)
			assert.EqualValues(t, len(c.want), count)
			clear(kept)
			again, _ := k.Reports()
			assert.Equal(t, c.want, again, "they are the caller's")
			next := k.Fresh()
			assert.Equal(t, len(c.want), next.KeptCount())
			assert.Zero(t, next.LiveCount())
			next.Work(one, "later", nil, read(1, 1))
			assert.Equal(t, []core.Report{{Kind: core.Unmapped, Start: 1, Bytes: 1, Now: core.Use{What: "later reads", Stream: one}}},
				next.ReportsFrom(len(c.want)), "the numbers of streams are another device's")
		})
	}
}

// A report as text has both places, the buffers with their tags, and the streams by number, or by handle.
func TestReportsAsText(t *testing.T) {
	here := site.Here(0)
	trace := here.Trace("    ")
	full := core.Report{
		Kind: core.Race, Start: 0x1000, Bytes: 16, Now: core.Use{What: "kernel reads", Stream: 5, Place: here, StreamID: 7},
		Before: core.Use{What: "unmapped", OnHost: true, Place: here},
		Buffer: &core.Buffer{Ptr: 0x1000, Bytes: 15, Stream: 5, StreamID: 7, Tag: "x", Allocated: here},
		Former: &core.Buffer{Ptr: 0x0f00, Bytes: 512, Stream: 6, Allocated: here, Freed: here}, Hint: "wait",
	}
	assert.Equal(t, "race: kernel reads, [0x1000,0x1010)\n"+
		"  now: kernel reads, on stream 7, at\n"+trace+
		"  not ordered after: unmapped, by the host, at\n"+trace+
		"  buffer: 15 bytes at 0x1000 of stream 7, tag \"x\", allocated at\n"+trace+
		"  former buffer: 512 bytes at 0xf00 of stream 0x6, allocated at\n"+trace+
		"   freed at\n"+trace+"  hint: wait", full.String())
	assert.Equal(t, "unmapped at "+here.String(), full.Before.String())
	assert.Equal(t, "kernel reads on stream 7 at "+here.String(), full.Now.String())
	assert.NotContains(t, core.Report{Now: full.Now}.String(), "not ordered")
}

// A graph keeps its accesses where the caller changes the list later. A launch follows the one before it.
func TestLaunchesOfAGraph(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	accesses := []core.Access{{Ptr: arena, Bytes: 0x1000, Write: true}}
	b.CaptureBegan(one)
	b.Work(one, "kernel", site.Here(0), accesses)
	accesses[0] = core.Access{Ptr: 1, Bytes: 1}
	b.CaptureEnded(one, 1)
	b.GraphInstantiated(1, 1)
	b.GraphLaunched(1, one, site.Here(0))
	b.GraphLaunched(1, two, site.Here(0))
	b.GraphLaunched(1, one, site.Here(0))
	b.fine()
	b.writes(two, arena, 0x1000)
	b.found(core.Race)
}

// A destroyed stream leaves its capture, which ends if it began there.
func TestACapturedStreamIsDestroyed(t *testing.T) {
	for _, destroyed := range []cudadrv.Stream{one, two} {
		b := newBench(t)
		b.StreamCreated(3, false)
		b.CaptureBegan(one)
		b.EventRecorded(event, one)
		b.StreamWaits(two, event)
		b.StreamWaits(3, event)
		b.StreamDestroyed(destroyed)
		b.writes(destroyed, 0x500, 1) // it is not mapped
		b.found(core.Unmapped)
		b.writes(3, 0x600, 1)
		_, count := b.Reports()
		assert.Equal(t, destroyed == one, count == 2, "the capture has ended")
	}
}

// A capture that ends, in any way, ends for its own streams: the work of another one still goes into that one's graph.
func TestTwoCapturesAtATime(t *testing.T) {
	const joined cudadrv.Stream = 3
	for name, end := range map[string]func(b bench, s cudadrv.Stream){
		"ended":     func(b bench, s cudadrv.Stream) { b.CaptureEnded(s, cudadrv.Graph(s)) },
		"dropped":   func(b bench, s cudadrv.Stream) { b.CaptureDropped(s) },
		"destroyed": func(b bench, s cudadrv.Stream) { b.StreamDestroyed(s) },
	} {
		for _, ended := range []cudadrv.Stream{one, two} {
			b := newBench(t)
			b.StreamCreated(joined, false)
			b.alloc(arena, 0x1000, one)
			b.CaptureBegan(one)
			b.CaptureBegan(two)
			other := one + two - ended
			b.EventRecorded(event, other)
			b.StreamWaits(joined, event)
			end(b, ended)
			for i, s := range []cudadrv.Stream{other, joined} { // both are captured still
				b.writes(s, arena+0x800*cudadrv.Ptr(i), 0x800)
			}
			b.EventRecorded(event, joined)
			b.StreamWaits(other, event)
			b.CaptureEnded(other, 9)
			b.GraphInstantiated(9, 9)
			b.free(arena)
			b.fine()
			b.GraphLaunched(9, other, site.Here(0))
			kept, count := b.Reports()
			require.NotEmpty(t, kept, "%s: stream %d", name, ended)
			assert.Equal(t, core.UseAfterFree, kept[0].Kind)
			assert.EqualValues(t, 2, count, "%s: stream %d", name, ended)
		}
	}
}

// Memory of a stream that holds belongs to graphs, freed or not: only a graph that keeps its memory may touch it.
func TestHeldMemory(t *testing.T) {
	for name, c := range map[string]struct{ holds, keeps, ended, other bool }{
		"it holds, and the graph keeps": {holds: true, keeps: true}, "the graph does not keep": {holds: true}, "it does not hold": {keeps: true},
		"it holds no more": {holds: true, keeps: true, ended: true}, "another's memory": {holds: true, keeps: true, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if c.holds {
				b.HoldBegan(one)
			}
			b.alloc(arena, 0x1000, one)
			b.CaptureBegan(one)
			b.writes(one, arena, 0x1000)
			b.CaptureEnded(one, 1)
			b.GraphInstantiated(1, 1)
			if c.keeps {
				b.GraphKeeps(1)
				b.GraphKeeps(2) // not known
			}
			b.free(arena)
			owner := one
			if c.other {
				owner = two
			}
			b.alloc(arena, 0x1000, owner) // for another graph
			b.free(arena)
			if c.ended {
				b.HoldEnded(one)
			}
			b.GraphLaunched(1, owner, site.Here(0))
			if c.holds && c.keeps && !c.ended && !c.other {
				b.fine()
			} else {
				b.found(core.UseAfterFree)
			}
			before := b.KeptCount()
			b.writes(owner, arena, 0x1000)
			assert.Equal(t, []core.Kind{core.UseAfterFree}, kindsOf(b.ReportsFrom(before)), "work that is no graph's")
		})
	}
}

// kindsOf returns the kinds of reports.
func kindsOf(all []core.Report) (kinds []core.Kind) {
	for _, r := range all {
		kinds = append(kinds, r.Kind)
	}
	return slices.Compact(kinds)
}

// A hold's stream allocates memory of its buffers again without an order of its own: the graphs' launches have one.
func TestMemoryIsReusedInAHold(t *testing.T) {
	for _, holds := range []bool{false, true} {
		b := newBench(t)
		if holds {
			b.HoldBegan(one)
		}
		b.alloc(arena, 0x1000, one)
		b.reads(two, arena, 0x1000)
		b.free(arena)
		b.alloc(arena, 0x1000, one)
		if holds {
			b.fine()
		} else {
			b.found(core.EarlyReuse)
		}
		require.NoError(t, b.Check())
	}
}

// The steps of a launch are those that the graph had, with the changes that are known. Graphs that
// were made past the checker have none.
func TestChangesOfAGraph(t *testing.T) {
	const x cudadrv.GraphExec = 1
	const g cudadrv.Graph = 1
	at := func(i int) []core.Access {
		return []core.Access{{Ptr: arena + cudadrv.Ptr(16*i), Bytes: 16, Write: true}}
	}
	makes := func(b bench, g cudadrv.Graph, ranges ...int) {
		b.CaptureBegan(one)
		names := []cudadrv.GraphNode{}
		for _, i := range ranges {
			b.Work(one, "kernel", nil, at(i))
			names = append(names, cudadrv.GraphNode(i+1))
		}
		b.CaptureEnded(one, g)
		b.NodesNamed(g, names)
		clear(names)
	}
	for name, c := range map[string]struct {
		change func(b bench)
		want   []int // the ranges that a launch touches
	}{
		"none":                        {func(bench) {}, []int{0, 1, 2}},
		"a node":                      {func(b bench) { b.NodeChanged(x, 2) }, []int{0, 2}},
		"the first node":              {func(b bench) { b.NodeChanged(x, 1) }, []int{1, 2}},
		"a node that is not known":    {func(b bench) { b.NodeChanged(x, 9) }, nil},
		"an instance that is unknown": {func(b bench) { b.NodeChanged(9, 1); b.GraphUpdated(9, g); b.NodesNamed(9, nil) }, []int{0, 1, 2}},
		"a node touches other memory": {func(b bench) {
			accesses := at(3)
			b.NodeTouches(x, 1, nil, accesses)
			clear(accesses)
		}, []int{1, 2, 3}},
		"a node that is not known touches memory": {func(b bench) { b.NodeTouches(x, 9, nil, at(3)) }, nil},
		"an update":                          {func(b bench) { makes(b, 2, 3); b.GraphUpdated(x, 2) }, []int{3}},
		"an update, and a node":              {func(b bench) { makes(b, 2, 3); b.GraphUpdated(x, 2); b.NodeChanged(x, 1) }, nil},
		"an update of as many, and a node":   {func(b bench) { makes(b, 2, 3, 4, 5); b.GraphUpdated(x, 2); b.NodeChanged(x, 2) }, []int{3, 5}},
		"an update, and a change of another": {func(b bench) { b.GraphInstantiated(g, 2); b.NodeChanged(2, 1); b.GraphUpdated(x, g) }, []int{0, 1, 2}},
		"an update by an unknown graph":      {func(b bench) { b.GraphUpdated(x, 9) }, nil},
		"an update by a destroyed graph":     {func(b bench) { b.GraphDestroyed(g); b.GraphUpdated(x, g) }, nil},
		"its graph is destroyed":             {func(b bench) { b.GraphDestroyed(g) }, []int{0, 1, 2}},
		"it is destroyed":                    {func(b bench) { b.GraphExecDestroyed(x) }, nil},
		"of a destroyed graph":               {func(b bench) { b.GraphExecDestroyed(x); b.GraphDestroyed(g); b.GraphInstantiated(g, x) }, nil},
		"a capture past the checker ends":    {func(b bench) { b.CaptureEnded(two, 7); b.CaptureDropped(two); b.GraphInstantiated(7, 7) }, []int{0, 1, 2}},
		"a capture is dropped": {func(b bench) {
			b.CaptureBegan(one)
			b.CaptureDropped(one)
			b.writes(one, arena+16*4, 16) // runs
		}, []int{0, 1, 2, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.alloc(arena, 0x1000, one)
			makes(b, g, 0, 1, 2)
			b.GraphInstantiated(g, x)
			c.change(b)
			b.GraphLaunched(x, one, site.Here(0))
			var touched []int
			for i := range 8 {
				before := b.KeptCount()
				b.Work(two, string(rune('a'+i)), nil, at(i))
				if b.KeptCount() > before {
					touched = append(touched, i)
				}
			}
			assert.Equal(t, c.want, touched)
			for _, r := range b.ReportsFrom(0) {
				assert.Equal(t, core.Race, r.Kind)
			}
		})
	}
	b := newBench(t)
	b.CaptureBegan(one)
	b.Work(one, "kernel", site.Here(0), at(0))
	b.CaptureEnded(one, g)
	b.GraphInstantiated(g, x)
	b.GraphLaunched(x, one, site.Here(0))
	assert.Contains(t, b.found(core.NeverAllocated).Now.What, "kernel, captured at ")
	b.NodesNamed(g, []cudadrv.GraphNode{1})
	b.NodeTouches(x, 1, site.Here(0), at(1))
	b.GraphLaunched(x, one, site.Here(0))
	require.Equal(t, 2, b.KeptCount())
	assert.Contains(t, b.ReportsFrom(1)[0].Now.What, "kernel, set at ")
}

// An event has one point, whichever of its names is used, and as long as one is left.
func TestNamesOfAnEvent(t *testing.T) {
	for _, recorded := range []cudadrv.Event{event, event + 1} {
		b := newBench(t)
		b.EventOpened(event+1, event)
		b.alloc(arena, 0x1000, one)
		b.writes(one, arena, 0x1000)
		b.EventRecorded(recorded, one)
		b.EventDestroyed(recorded)
		b.StreamWaits(two, 2*event+1-recorded)
		b.reads(two, arena, 0x1000)
		b.fine()
		assert.True(t, b.StreamKnown(one))
		assert.False(t, b.StreamKnown(77))
		b.StreamDestroyed(one)
		assert.False(t, b.StreamKnown(one))
	}
	text, err := core.EarlyReuse.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "early reuse", string(text))
}

// Places of destroyed streams are used again also where their work was not over at first.
func TestPlacesOfStreamsThatEndLater(t *testing.T) {
	b := newBench(t)
	for s := range cudadrv.Stream(500) {
		s = 100 + 2*s
		b.StreamCreated(s, false)
		b.Work(s, "kernel", nil, nil)
		b.StreamDestroyed(s)
		b.StreamCreated(s+1, false) // not in its place yet
		b.Work(s+1, "kernel", nil, nil)
		b.StreamDestroyed(s + 1)
		b.Over(core.Program, b.DevicePoint())
	}
	assert.LessOrEqual(t, len(b.DevicePoint()), 6)
}
