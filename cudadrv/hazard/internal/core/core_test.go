package core_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard/internal/core"
	"github.com/go-vram/vram/cudadrv/site"
)

// bench is a core with two streams and 64 KiB of the allocator's memory at 0x10000.
type bench struct {
	*core.Core
	t *testing.T
}

const (
	arena cudadrv.Ptr    = 0x10000
	one   cudadrv.Stream = 1
	two   cudadrv.Stream = 2
	event cudadrv.Event  = 9
)

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{core.New(), t}
	b.StreamCreated(one, false)
	b.StreamCreated(two, false)
	b.Mapped(arena, 0x10000, core.Allocator)
	return b
}

func (b bench) alloc(p cudadrv.Ptr, bytes int64, s cudadrv.Stream) {
	b.Allocated(core.Buffer{Ptr: p, Bytes: bytes, Stream: s, Allocated: site.Here(0)})
}

func (b bench) free(p cudadrv.Ptr) { b.Freed(p, site.Here(0)) }

func (b bench) reads(s cudadrv.Stream, p cudadrv.Ptr, bytes int64) {
	b.Work(s, "kernel", site.Here(0), []core.Access{{Ptr: p, Bytes: bytes}})
}

func (b bench) writes(s cudadrv.Stream, p cudadrv.Ptr, bytes int64) {
	b.Work(s, "kernel", site.Here(0), []core.Access{{Ptr: p, Bytes: bytes, Write: true}})
}

// fine says that nothing was reported.
func (b bench) fine() {
	b.t.Helper()
	kept, count := b.Reports()
	assert.Empty(b.t, kept)
	assert.Zero(b.t, count)
}

// found returns the one report.
func (b bench) found(kind core.Kind) core.Report {
	b.t.Helper()
	kept, count := b.Reports()
	require.Len(b.t, kept, 1)
	assert.EqualValues(b.t, 1, count)
	assert.Equal(b.t, kind, kept[0].Kind)
	assert.Contains(b.t, kept[0].Now.Place.Trace(""), b.t.Name()[:4])
	return kept[0]
}

func TestOneStreamIsInOrder(t *testing.T) {
	b := newBench(t)
	for range 3 {
		b.alloc(arena, 0x1000, one)
		b.writes(one, arena, 0x1000)
		b.reads(one, arena+0x800, 0x100)
		b.free(arena)
	}
	b.fine()
}

func TestTwoStreamsWithoutAnOrder(t *testing.T) {
	for name, second := range map[string]struct{ firstWrites, secondWrites, isRace bool }{
		"write write": {true, true, true},
		"write read":  {true, false, true},
		"read write":  {false, true, true},
		"read read":   {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.alloc(arena, 0x1000, one)
			b.Work(one, "kernel", site.Here(0), []core.Access{{Ptr: arena, Bytes: 0x1000, Write: second.firstWrites}})
			b.Work(two, "kernel", site.Here(0), []core.Access{{Ptr: arena + 0x100, Bytes: 0x10, Write: second.secondWrites}})
			if !second.isRace {
				b.fine()
				return
			}
			kept, _ := b.Reports()
			require.Len(t, kept, 1)
			r := kept[0]
			assert.Equal(t, core.Race, r.Kind)
			assert.Equal(t, arena+0x100, r.Start)
			assert.EqualValues(t, 0x10, r.Bytes)
			assert.Equal(t, two, r.Now.Stream)
			assert.Equal(t, one, r.Before.Stream)
			assert.NotEqual(t, r.Now.Place, r.Before.Place)
			require.NotNil(t, r.Buffer)
			assert.Equal(t, arena, r.Buffer.Ptr)
			assert.Contains(t, r.String(), "race")
		})
	}
}

func TestWhatOrdersTwoStreams(t *testing.T) {
	for name, order := range map[string]func(b bench){
		"an event that is waited for": func(b bench) {
			b.EventRecorded(event, one)
			b.StreamWaits(two, event)
		},
		"a chain of events": func(b bench) {
			b.StreamCreated(3, false)
			b.EventRecorded(event, one)
			b.StreamWaits(3, event)
			b.EventRecorded(event, 3)
			b.StreamWaits(two, event)
		},
		"an event that the program knows to have passed": func(b bench) {
			b.EventRecorded(event, one)
			b.Over(core.Program, b.EventPoint(event))
		},
		"a synchronised stream": func(b bench) { b.Over(core.Program, b.StreamPoint(one)) },
		"a synchronised device": func(b bench) { b.Over(core.Program, b.DevicePoint()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.alloc(arena, 0x1000, one)
			b.writes(one, arena, 0x1000)
			order(b)
			b.writes(two, arena, 0x1000)
			b.fine()
		})
	}
}

func TestWhatDoesNotOrderTwoStreams(t *testing.T) {
	for name, order := range map[string]func(b bench){
		"an event recorded before the work": func(b bench) { b.StreamWaits(two, 8) },
		"an event that was never recorded":  func(b bench) { b.StreamWaits(two, 77) },
		"an event of the other direction": func(b bench) {
			b.EventRecorded(event, two)
			b.StreamWaits(one, event)
		},
		"what only the allocator knows": func(b bench) { b.Over(core.Allocator, b.DevicePoint()) },
		"the default stream, for streams that do not block": func(b bench) {
			b.Work(0, "kernel", nil, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.EventRecorded(8, one)
			b.alloc(arena, 0x1000, one)
			b.writes(one, arena, 0x1000)
			order(b)
			b.reads(two, arena, 0x1000)
			b.found(core.Race)
		})
	}
}

func TestTheDefaultStreamOrdersBlockingStreams(t *testing.T) {
	b := newBench(t)
	b.StreamCreated(3, true)
	b.StreamCreated(4, true)
	b.alloc(arena, 0x1000, 3)
	b.writes(3, arena, 0x1000)
	b.writes(0, arena, 0x1000)
	b.writes(4, arena, 0x1000)
	b.fine()
	b.writes(3, arena, 0x1000)
	b.found(core.Race)
}

func TestUseAfterFree(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.free(arena)
	b.reads(one, arena+0xff0, 0x10)
	r := b.found(core.UseAfterFree)
	require.NotNil(t, r.Buffer)
	assert.Contains(t, r.Buffer.Allocated.String(), "bench.alloc")
	assert.Contains(t, r.Buffer.Freed.String(), "bench.free")
	assert.Contains(t, r.Now.Place.String(), "bench.reads")
	assert.Contains(t, r.String(), "freed at")
}

func TestMemoryThatWasNeverAllocated(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.writes(one, arena, 0x1001) // one byte too many
	r := b.found(core.NeverAllocated)
	assert.Equal(t, arena+0x1000, r.Start)
	assert.EqualValues(t, 1, r.Bytes)
}

func TestMemoryOfTheProgramNeedsNoAllocation(t *testing.T) {
	b := newBench(t)
	b.Mapped(0x90000, 0x1000, core.Program)
	b.writes(one, 0x90000, 0x1000)
	b.fine()
	b.writes(two, 0x90000, 1)
	b.found(core.Race)
}

// Memory of the program and of the allocator keep apart where they meet, in any order of their mappings.
func TestMemoryOfTheProgramNextToTheAllocators(t *testing.T) {
	const below, above, bytes = arena - 0x1000, arena + 0x10000, 0x1000
	for _, order := range [][]core.Host{{core.Program, core.Allocator}, {core.Allocator, core.Program}} {
		for _, managed := range []cudadrv.Ptr{0, arena, above - 1} { // the first access to the allocator's
			b := bench{core.New(), t}
			b.StreamCreated(one, false)
			for _, by := range order {
				if by == core.Allocator {
					b.Mapped(arena, 0x10000, by)
					continue
				}
				b.Mapped(below, bytes, by)
				b.Mapped(above, bytes, by)
			}
			b.writes(one, below, bytes)
			b.writes(one, above, bytes)
			b.fine()
			if managed != 0 {
				b.writes(one, managed, 1)
				assert.Equal(t, managed, b.found(core.NeverAllocated).Start)
			}
			b.alloc(arena, 0x10000, one)
			b.writes(one, below, 0x12000)
			b.free(arena)
			known := b.KeptCount()
			b.writes(one, below, 0x12000)
			after := b.ReportsFrom(known)
			require.Len(t, after, 1)
			assert.Equal(t, core.UseAfterFree, after[0].Kind)
			assert.Equal(t, core.Access{Ptr: arena, Bytes: 0x10000}, core.Access{Ptr: after[0].Start, Bytes: after[0].Bytes})
			require.NoError(t, b.Check())
		}
	}
}

func TestMemoryThatIsNotMapped(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.free(arena)
	b.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
	b.fine()
	b.reads(one, arena, 0x1000)
	r := b.found(core.Unmapped)
	assert.Equal(t, "unmapped", r.Before.What)
	require.NotNil(t, r.Buffer, "it names the buffer that was there")
	assert.Contains(t, r.Buffer.Freed.String(), "bench.free")

	other := newBench(t)
	other.reads(one, 0x500, 1)
	assert.Empty(t, other.found(core.Unmapped).Before.What)
	other.Work(one, "kernel", nil, []core.Access{{Ptr: ^cudadrv.Ptr(0), Bytes: 16}, {Ptr: 1, Bytes: -1}, {Ptr: arena}})
	_, count := other.Reports()
	assert.EqualValues(t, 1, count, "what is no range is the driver's to refuse")
	other.Work(one, "kernel", nil, []core.Access{{Ptr: 1, Bytes: -1}, {Ptr: 0x700, Bytes: 1}})
	_, count = other.Reports()
	assert.EqualValues(t, 2, count, "the rest is checked")

	gap := newBench(t)
	gap.Unmapped(arena, 0x1000, core.Allocator, site.Here(0))
	gap.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
	gap.reads(one, arena+0x2000, 0x1000)
	gap.found(core.Unmapped)
}

func TestEarlyUnmap(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(b bench)
		isEarly bool
	}{
		"after a free that nobody waited for": {func(b bench) { b.free(arena) }, true},
		"under a live buffer":                 {func(b bench) { b.Over(core.Allocator, b.DevicePoint()) }, true},
		"known to be over": {func(b bench) {
			b.free(arena)
			b.Over(core.Allocator, b.DevicePoint())
		}, false},
		"the allocator is closed": {func(b bench) {
			b.Ended(site.Here(0))
			b.Over(core.Program, b.DevicePoint())
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.alloc(arena, 0x1000, one)
			b.writes(one, arena, 0x1000)
			c.prepare(b)
			b.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
			if !c.isEarly {
				b.fine()
				return
			}
			r := b.found(core.EarlyUnmap)
			require.NotNil(t, r.Buffer)
			assert.NotEmpty(t, r.Before.What+r.Hint)
		})
	}
}

// An unmap that is too early for several buffers is told once, and all of its memory is gone: later work on any part is told.
func TestAnEarlyUnmapOfSeveralBuffers(t *testing.T) {
	for part := range cudadrv.Ptr(4) { // the last has no buffer
		b := newBench(t)
		for i := range cudadrv.Ptr(3) {
			b.alloc(arena+i*0x1000, 0x1000, one)
			b.writes(one, arena+i*0x1000, 0x1000)
		}
		b.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
		assert.Equal(t, arena, b.found(core.EarlyUnmap).Start)
		b.reads(one, arena+part*0x1000, 0x100)
		kept, _ := b.Reports()
		require.Len(t, kept, 2, "part %d", part)
		assert.Equal(t, core.Unmapped, kept[1].Kind)
		assert.Equal(t, arena+part*0x1000, kept[1].Start)
	}
}

func TestEarlyReuse(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.writes(one, arena, 0x1000)
	b.free(arena)
	b.alloc(arena+0x800, 0x1000, two)
	r := b.found(core.EarlyReuse)
	assert.Contains(t, r.Now.Place.String(), "bench.alloc")
	assert.Contains(t, r.Before.Place.String(), "bench.writes")
	require.NotNil(t, r.Former)
	assert.Contains(t, r.Former.Freed.String(), "bench.free")
	assert.Equal(t, two, r.Buffer.Stream)
	assert.Empty(t, r.Hint)
	assert.Contains(t, r.String(), "former buffer")
	b.writes(two, arena+0x800, 0x1000)
	_, count := b.Reports()
	assert.EqualValues(t, 1, count, "told once")
}

func TestReuseThatIsInOrder(t *testing.T) {
	for name, order := range map[string]func(b bench){
		"a wait on the device":          func(b bench) { b.EventRecorded(event, one); b.StreamWaits(two, event) },
		"a fence known to have passed":  func(b bench) { b.EventRecorded(event, one); b.Over(core.Allocator, b.EventPoint(event)) },
		"the program has waited itself": func(b bench) { b.Over(core.Program, b.DevicePoint()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.alloc(arena, 0x1000, one)
			b.writes(one, arena, 0x1000)
			b.free(arena)
			order(b)
			b.alloc(arena, 0x1000, two)
			b.writes(two, arena, 0x1000)
			b.fine()
		})
	}
}

// A use on a stream that the allocator cannot know of is the owner's mistake, and the report says so.
func TestAUseThatWasNotAnnounced(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.reads(two, arena, 0x1000)
	b.free(arena)
	b.alloc(arena, 0x1000, one)
	assert.Contains(t, b.found(core.EarlyReuse).Hint, "announcement")
}

// Memory that is reused on its own stream is not yet anybody else's.
func TestAUseElsewhereOfMemoryThatItsStreamReused(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.writes(one, arena, 0x1000)
	b.free(arena)
	b.alloc(arena, 0x1000, one)
	b.writes(two, arena, 0x1000)
	r := b.found(core.Race)
	require.NotNil(t, r.Former)
	assert.True(t, r.Former.Freed.Known())
	assert.False(t, r.Buffer.Freed.Known())
}

func TestOverlap(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0x1000, one)
	b.alloc(arena+0xfff, 0x1000, one)
	r := b.found(core.Overlap)
	assert.Equal(t, arena, r.Former.Ptr)
}

func TestAllocationInMemoryThatIsNotMapped(t *testing.T) {
	b := newBench(t)
	b.Unmapped(arena+0x1000, 0x1000, core.Allocator, site.Here(0))
	b.alloc(arena, 0x2000, one)
	r := b.found(core.Unmapped)
	assert.Equal(t, "unmapped", r.Before.What)
}

func TestBuffersOfNoBytes(t *testing.T) {
	b := newBench(t)
	b.alloc(arena, 0, one)
	b.alloc(arena+512, 1, one)
	assert.Equal(t, 2, b.LiveCount())
	b.free(arena)
	b.free(arena + 512)
	b.free(arena + 1024) // nobody's
	assert.Zero(t, b.LiveCount())
	b.fine()
}

// A stream's place in the clocks serves another one once its work is known to be over, and not before.
func TestPlacesOfStreamsThatAreNoMore(t *testing.T) {
	b := newBench(t)
	for s := range cudadrv.Stream(1000) {
		s += 100
		b.StreamCreated(s, false)
		b.alloc(arena, 0x1000, s)
		b.writes(s, arena, 0x1000)
		b.free(arena)
		b.Over(core.Program, b.StreamPoint(s))
		b.StreamDestroyed(s)
	}
	assert.LessOrEqual(t, len(b.DevicePoint()), 4)
	b.fine()

	b.StreamCreated(7, false)
	b.Mapped(0x90000, 0x1000, core.Program)
	b.writes(7, 0x90000, 1)
	b.StreamDestroyed(7)
	b.StreamCreated(7, false) // the name again; the work of before may still run
	b.writes(7, 0x90000, 1)
	b.found(core.Race)
}

// A stream is ordered after work of a destroyed one if the program knows that work to be over, and by nothing else: neither by
// what the allocator knows, nor by a place in the clocks that it takes over.
func TestAPlaceCarriesNoOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			b := bench{Core: core.New()}
			b.Mapped(0x90000, 0x1000, core.Program)
			var known []bool // by the program, for each byte that was written
			for s := range cudadrv.Stream(rapid.IntRange(1, 4).Draw(t, "streams")) {
				b.StreamCreated(s+1, rapid.Bool().Draw(t, "blocking"))
				first := len(known)
				for range rapid.IntRange(1, 3).Draw(t, "works") {
					b.writes(s+1, 0x90000+cudadrv.Ptr(len(known)), 1)
					known = append(known, false)
					if rapid.Bool().Draw(t, "is asked") {
						by := rapid.SampledFrom([]core.Host{core.Program, core.Allocator}).Draw(t, "by")
						b.Over(by, b.StreamPoint(s+1))
						for i := first; i < len(known); i++ {
							known[i] = known[i] || by == core.Program
						}
					}
				}
				b.StreamDestroyed(s + 1)
			}
			b.StreamCreated(9, false)
			at := rapid.IntRange(0, len(known)-1).Draw(t, "at")
			b.writes(9, 0x90000+cudadrv.Ptr(at), 1)
			kept, _ := b.Reports()
			if known[at] {
				require.Empty(t, kept)
			} else {
				require.Len(t, kept, 1)
				require.Equal(t, core.Race, kept[0].Kind)
			}
		}
	})
}

func TestCellsMerge(t *testing.T) {
	b := newBench(t)
	for i := range cudadrv.Ptr(64) {
		b.alloc(arena+i*0x100, 0x100, one)
		b.writes(one, arena+i*0x100, 0x100)
		b.free(arena + i*0x100)
	}
	assert.GreaterOrEqual(t, b.CellCount(), 64)
	b.alloc(arena, 64*0x100, one)
	b.writes(one, arena, 64*0x100)
	assert.Equal(t, 2, b.CellCount(), "what the buffer has, and the rest")
	b.reads(one, arena+0x10, 0x10)
	assert.Equal(t, 4, b.CellCount())
	b.writes(one, arena, 64*0x100)
	assert.Equal(t, 2, b.CellCount())
	b.fine()
}

func TestReportsAreBounded(t *testing.T) {
	b := newBench(t)
	for range 1000 {
		b.reads(one, arena, 1)
	}
	kept, count := b.Reports()
	assert.Len(t, kept, 1, "one of each pair of places")
	assert.EqualValues(t, 1000, count)
	for i := range 1000 {
		b.Work(one, string(rune('a'+i)), nil, []core.Access{{Ptr: arena, Bytes: 1}})
	}
	assert.Equal(t, 100, b.KeptCount())
	assert.Len(t, b.ReportsFrom(99), 1)
	assert.Equal(t, "Kind(99)", core.Kind(99).String())
}

// A report is known by its place and the place before: of the earlier use, or of the free of a buffer that nothing had used.
func TestReportsAreKnownByBothPlaces(t *testing.T) {
	const bytes = 0x1000
	for name, before := range map[string]func(b bench, p cudadrv.Ptr, first bool){
		"a free": func(b bench, p cudadrv.Ptr, first bool) {
			if b.alloc(p, bytes, one); first {
				b.Freed(p, site.Here(0))
			} else {
				b.Freed(p, site.Here(0))
			}
		},
		"a use": func(b bench, p cudadrv.Ptr, first bool) {
			written := []core.Access{{Ptr: p, Bytes: bytes, Write: true}}
			if b.alloc(p, bytes, one); first {
				b.Work(one, "kernel", site.Here(0), written)
			} else {
				b.Work(one, "kernel", site.Here(0), written)
			}
		},
		"an unmap": func(b bench, p cudadrv.Ptr, first bool) {
			if first {
				b.Unmapped(p, bytes, core.Allocator, site.Here(0))
			} else {
				b.Unmapped(p, bytes, core.Allocator, site.Here(0))
			}
		},
	} {
		b := newBench(t)
		for i := range 6 {
			p := arena + cudadrv.Ptr(i)*bytes
			before(b, p, i < 3)
			b.reads(two, p, bytes)
		}
		kept, count := b.Reports()
		assert.Len(t, kept, 2, name)
		assert.EqualValues(t, 6, count, name)
	}
}

func TestPastIsBounded(t *testing.T) {
	b := newBench(t)
	for i := range cudadrv.Ptr(10_000) {
		b.Mapped(0x100000+i*512, 512, core.Program)
		b.Unmapped(0x100000+i*512, 512, core.Program, site.Here(0))
	}
	b.reads(one, 0x100000+9_999*512, 1)
	assert.Equal(t, "unmapped", b.found(core.Unmapped).Before.What)
	b.reads(two, 0x100000, 1)
	kept, _ := b.Reports()
	require.Len(t, kept, 2)
	assert.Empty(t, kept[1].Before.What, "too long ago")
}

// Of streams and events that were destroyed nothing is kept, also if they were numbered, or slept: a later stream of that name
// does not sleep.
func TestDestroyedStreamsAreForgotten(t *testing.T) {
	b := newBench(t)
	life := func(s cudadrv.Stream, e cudadrv.Event) {
		b.StreamCreated(s, false)
		b.NumberStream(s, 7)
		b.alloc(arena, 4096, s)
		b.writes(s, arena, 4096)
		b.EventRecorded(e, s)
		b.Over(core.Program, b.EventPoint(e))
		b.EventDestroyed(e)
		b.SleepBegan(s)
		b.free(arena)
		b.StreamDestroyed(s)
	}
	life(3, event)
	before := b.Entries()
	for i := range 1000 {
		life(cudadrv.Stream(4+i), event+1+cudadrv.Event(i))
	}
	assert.Equal(t, before, b.Entries())
	b.fine()

	b.StreamCreated(3, false)
	b.alloc(arena, 4096, 3)
	b.Unmapped(arena, 0x10000, core.Allocator, site.Here(0))
	b.found(core.EarlyUnmap)
}
