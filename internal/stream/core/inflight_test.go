package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence/line"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// kept is a freed block in the reference: the numbers that must pass before its units may be reused.
type kept struct {
	from, units uint32
	until       map[*line.Line]uint64
}

func (k *kept) waits() bool {
	for l, number := range k.until {
		if !l.Passed(number) {
			return true
		}
	}
	return false
}

// newLines gives a core that many lines, the last of which has no number.
func newLines(t require.TestingT, w *world, count int) (all []*line.Line, lines *line.Lines) {
	w.core.inFlight.lines = new(line.Lines)
	for range count {
		l := new(line.Line)
		l.Init(nil)
		all = append(all, l)
	}
	for i, l := range all[:count-1] {
		number, ok := w.core.inFlight.lines.Add(l)
		require.True(t, ok)
		require.Equal(t, i, number)
	}
	return all, w.core.inFlight.lines
}

// A use that has ended, and lasts again until the free, holds the memory for later work too: the fence of its end does not set it free.
func TestAUseThatBeginsAgainLastsUntilTheFree(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]func(b *buffer, l *line.Line) error{
		"begun":    func(b *buffer, l *line.Line) error { _, err := b.slot.Begin(b.word, l); return err },
		"recorded": func(b *buffer, l *line.Line) error { return b.slot.RecordLine(b.word, l) },
	} {
		w := newWorld(t, 512, Budget{})
		all, _ := newLines(t, w, 2)
		for _, l := range all { // with a number, and without
			b := w.alloc(4000, 0, w.always)
			require.NotNil(t, b)
			u, err := b.slot.Begin(b.word, l)
			require.NoError(t, err)
			require.NoError(t, u.End(l.Next()))
			l.Took(l.Begin())
			require.NoError(t, again(b, l))
			l.Pass(1)
			w.free(b)
			w.core.Drain()
			require.Positive(t, w.core.PendingBytes(), name)
			l.Took(l.Begin())
			l.Pass(2)
			w.core.Drain()
			require.Zero(t, w.core.PendingBytes(), name)
		}
	}
}

// In any order of uses, ends, frees, allocations and fences, no block is handed out while a use of it has not
// passed, each is collected once all have, and the books balance after each step.
func TestPendingBlocksComeHomeWhenTheirUsesHavePassed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 512, Budget{})
		all, _ := newLines(t, w, 3)
		var pending []*kept
		until := map[*buffer]map[*line.Line]uint64{} // 0: until the free
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			l := all[rapid.IntRange(0, len(all)-1).Draw(t, "line")]
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0, 1:
				bytes := rapid.SampledFrom([]int64{100, 4000, 70 * kib, 300 * kib}).Draw(t, "bytes")
				if b := w.alloc(bytes, 0, w.always); b != nil {
					until[b] = map[*line.Line]uint64{}
					for _, k := range pending {
						if k.waits() {
							require.False(t, k.from < b.from+b.units && b.from < k.from+k.units, "used units are handed out")
						}
					}
				}
			case 2:
				if b := w.any(t); b != nil {
					number := 0
					for all[number] != l {
						number++
					}
					if number < len(all)-1 {
						require.NoError(t, b.slot.Record(b.word, number))
					} else {
						require.NoError(t, b.slot.RecordLine(b.word, l))
					}
					until[b][l] = 0
				}
			case 3:
				if b := w.any(t); b != nil {
					u, err := b.slot.Begin(b.word, l)
					require.NoError(t, err)
					if number, open := until[b][l]; rapid.Bool().Draw(t, "ends") {
						require.NoError(t, u.End(l.Next()))
						if !open || number > 0 {
							until[b][l] = l.Next()
						}
					} else {
						until[b][l] = 0
					}
				}
			case 4:
				if b := w.any(t); b != nil {
					k := &kept{b.from, b.units, until[b]}
					for l, number := range k.until {
						if number == 0 {
							k.until[l] = l.Next()
						}
					}
					pending = append(pending, k)
					w.free(b)
				}
			case 5:
				l.Took(l.Begin())
			case 6:
				if next := l.Next(); next > 1 {
					l.Pass(uint64(rapid.IntRange(1, int(next-1)).Draw(t, "passed")))
				}
			case 7:
				w.core.Drain()
				var units uint64
				for _, k := range pending {
					if k.waits() {
						units += uint64(k.units)
					}
				}
				require.GreaterOrEqual(t, w.core.PendingBytes(), int64(units<<sizeclass.UnitShift))
			}
			require.NoError(t, w.core.Check())
			n := w.core.Snapshot()
			require.Equal(t, uint64(len(w.live)), n.LiveCount)
			require.Equal(t, int64(w.liveUnits<<sizeclass.UnitShift), n.LiveBytes)
			require.Equal(t, n.HeldBytes, n.LiveBytes+n.PendingBytes+n.CachedBytes)
		}
		w.core.Drain()
		for _, l := range all {
			number := l.Begin()
			l.Took(number)
			l.Pass(number)
		}
		w.core.Drain()
		require.Zero(t, w.core.PendingBytes())
		require.False(t, w.core.Waits())
		require.NoError(t, w.core.Check())
	})
}

// A stream that waits for several others has the memory of all of them, until it is told of a later wait for the same one.
func TestAStreamJoinsSeveralLines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	all, _ := newLines(t, w, 4)
	for _, l := range all[:2] {
		w.core.inFlight.Join(l, l.Next())
	}
	pending := func(line int) int64 {
		b := w.alloc(300*kib, 0, w.always)
		require.NoError(t, b.slot.Record(b.word, line))
		w.free(b)
		w.core.Drain()
		return w.core.PendingBytes()
	}
	require.Zero(t, pending(0))
	require.Zero(t, pending(1))
	require.Positive(t, pending(2), "nobody waits for it")
	w.core.inFlight.Join(all[2], all[2].Next())
	require.Zero(t, w.core.PendingBytes())
	all[0].Took(all[0].Begin())
	all[0].Begin()
	require.Positive(t, pending(0), "work after the wait")
	w.core.inFlight.Join(all[0], all[0].Next())
	require.Zero(t, w.core.PendingBytes())
	require.Len(t, w.core.inFlight.joins, 3, "one of each line")
	for _, l := range all {
		l.Finish()
	}
	w.core.inFlight.Join(all[3], all[3].Next())
	require.Len(t, w.core.inFlight.joins, 1, "waits that are over are forgotten")
}

// A request that finds no memory looks at fences once 8 MiB are pending, and not below; with slack once it would exceed that.
func TestWhenARequestLooksAtFences(t *testing.T) {
	t.Parallel()
	f := &newWorld(t, 512, Budget{}).core.inFlight
	for _, c := range []struct {
		pendingUnits, slackUnits uint64
		bytes                    int64
		scarce                   bool
	}{
		{minSlack - 1, 0, 1, false},
		{minSlack, 0, 1, true},
		{minSlack, 3 * minSlack, 1, false},
		{minSlack, 3 * minSlack, 2 * minSlack << sizeclass.UnitShift, false},
		{minSlack, 3 * minSlack, 2*minSlack<<sizeclass.UnitShift + 1, true},
		{minSlack - 1, 0, 64 * minSlack << sizeclass.UnitShift, false},
	} {
		f.units, f.slack.units = c.pendingUnits, c.slackUnits
		assert.Equal(t, c.scarce, f.Scarce(c.bytes), "%+v", c)
	}
	f.units, f.slack.units = 0, 0
}

// any returns a live buffer.
func (w *world) any(t *rapid.T) *buffer {
	if len(w.live) == 0 {
		return nil
	}
	return w.live[rapid.IntRange(0, len(w.live)-1).Draw(t, "buffer")]
}

// Fences are due for many blocks, for long ones, or on request; each is requested once.
func TestFencesAreDueWhereManyWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	all, _ := newLines(t, w, 2)
	due := func(everything bool) (numbers []uint64) {
		w.core.Drain()
		w.core.Due(everything, func(l *line.Line, number uint64) bool {
			assert.Same(t, all[0], l)
			numbers = append(numbers, number)
			return true
		})
		return numbers
	}
	use := func(bytes int64) {
		b := w.alloc(bytes, 0, w.always)
		require.NoError(t, b.slot.Record(b.word, 0))
		w.free(b)
	}
	for range magazine.PileSlots - 1 {
		use(100)
	}
	assert.Empty(t, due(false))
	assert.Equal(t, []uint64{1}, due(true))
	use(100)
	for range fenceRest {
		assert.Empty(t, due(false), "it was asked for")
	}
	assert.Equal(t, []uint64{1}, due(false), "nobody took it")
	all[0].Took(all[0].Begin())
	assert.Empty(t, due(true))
	use(16 << 20)
	assert.Equal(t, []uint64{2}, due(false))
	assert.Positive(t, w.piles)
}

// The fence requests of one stream do not affect the next stream that takes its index in the list.
func TestAQueueBeginsAnew(t *testing.T) {
	t.Parallel()
	var p inFlight
	one, other := new(line.Line), new(line.Line)
	one.Init(nil)
	other.Init(nil)
	q := p.queue(one)
	q.wanted, q.rest = 7, fenceRest
	q.group(5)
	p.queues = p.queues[:0]
	q = p.queue(other)
	assert.Same(t, other, q.line)
	assert.Empty(t, q.groups)
	assert.Zero(t, q.wanted)
	assert.Zero(t, q.rest)
}

// A request by turn collects the blocks that others have used if they are a pile, or if requests wait for memory: also if it
// finds memory without them.
func TestAPileIsCollectedByTheNextTurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		bytes     int64
		wanted    bool
		collected bool
	}{
		{"a pile", 16 * mib, false, true},
		{"less", 16*mib - 64*kib, false, false},
		{"less, but wanted", 16*mib - 64*kib, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 512, Budget{})
			lines, _ := newLines(t, w, 2)
			b := w.alloc(c.bytes, 0, w.always)
			require.True(t, w.lend(0, 16))
			useUntilPassed(t, b, lines[0])
			w.core.SetWanted(c.wanted)
			w.free(b)
			require.NotNil(t, w.alloc(300*kib, 0, func(uint32) bool { return false }))
			assert.Equal(t, c.collected, w.core.heap.LargestFits(uint32(c.bytes>>sizeclass.UnitShift)))
			assert.Equal(t, c.collected, !w.core.owner.HasUsed())
			w.check()
		})
	}
}

// useUntilPassed has a line use a buffer until a number that has passed, so that the buffer is freed with a use that has ended.
func useUntilPassed(t *testing.T, b *buffer, l *line.Line) {
	t.Helper()
	use, err := b.slot.Begin(b.word, l)
	require.NoError(t, err)
	number := l.Begin()
	require.NoError(t, use.End(number))
	l.Took(number)
	l.Pass(number)
}

// A request that only ended uses can serve gets its own kind of block: of a class up to the longest class, else one of its length.
func TestEndedUsesServeAnyRequest(t *testing.T) {
	t.Parallel()
	for bytes, small := range map[int64]bool{512: true, 64 * kib: true, 64*kib + 512: false} {
		w := newWorld(t, 512, Budget{})
		lines, _ := newLines(t, w, 2)
		b := w.alloc(256*kib, 0, w.always)
		useUntilPassed(t, b, lines[0])
		w.free(b)
		got := w.alloc(bytes, 0, func(uint32) bool { return false })
		require.NotNil(t, got, "%d bytes", bytes)
		assert.Equal(t, small, got.slot.Magazine().Span() != nil, "%d bytes", bytes)
		w.check()
	}
}

// Pending visits the blocks that are freed and in use by others, with their addresses and lengths, and no other.
func TestPendingVisitsThePendingBlocks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	lines, _ := newLines(t, w, 2)
	pending := func() map[cudadrv.Ptr]int64 {
		all := map[cudadrv.Ptr]int64{}
		w.core.Pending(func(p cudadrv.Ptr, bytes int64) { all[p] = bytes })
		return all
	}
	assert.Empty(t, pending())
	want := map[cudadrv.Ptr]int64{}
	for _, bytes := range []int64{512, 64 * kib, 300 * kib} {
		b := w.alloc(bytes, 0, w.always)
		w.free(w.alloc(bytes, 0, w.always)) // nobody else uses that
		require.NoError(t, b.slot.Record(b.word, 0))
		assert.Equal(t, want, pending(), "it lives")
		w.free(b)
		want[b.slot.Address()] = bytes
		assert.Equal(t, want, pending())
	}
	number := lines[0].Begin()
	lines[0].Took(number)
	lines[0].Pass(number)
	assert.Empty(t, pending())
}

// The check of pending blocks finds each figure that is off by one, in each place.
func TestTheCheckOfPendingBlocksFindsEachFigure(t *testing.T) {
	t.Parallel()
	damages := map[string]func(f *inFlight){
		"the count":              func(f *inFlight) { f.count++ },
		"the units":              func(f *inFlight) { f.units-- },
		"the count of a group":   func(f *inFlight) { f.queues[0].groups[0].count++ },
		"the units of a group":   func(f *inFlight) { f.queues[0].groups[1].units++ },
		"two groups of a number": func(f *inFlight) { f.queues[0].groups[1].number = f.queues[0].groups[0].number },
		"the order of groups":    func(f *inFlight) { f.queues[0].groups[1].number = 0 },
		"an empty queue":         func(f *inFlight) { f.queues[1].groups = nil },
		"the uses of a block":    func(f *inFlight) { f.blocks[0].left++ },
		"a block without a slot": func(f *inFlight) { f.blocks[0].slot = nil },
	}
	damages["none"] = func(*inFlight) {}
	for name, damage := range damages {
		w := newWorld(t, 512, Budget{})
		all, _ := newLines(t, w, 3)
		for i, bytes := range []int64{300 * kib, 4000, 100} {
			b := w.alloc(bytes, 0, w.always)
			require.NoError(t, b.slot.Record(b.word, 0))
			if i == 0 {
				require.NoError(t, b.slot.Record(b.word, 1))
			}
			w.free(b)
			w.core.Drain()
			all[0].Took(all[0].Begin())
		}
		f := &w.core.inFlight
		require.Len(t, f.queues, 2)
		require.NoError(t, f.check())
		damage(f)
		assert.Equal(t, name != "none", f.check() != nil, name)
	}
}

// A request finds the pending memory whose fence has passed, also if nothing was freed since.
func TestARequestLandsWhatHasPassed(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{64 * kib, 300 * kib} {
		w := newWorld(t, 512, Budget{})
		lines, _ := newLines(t, w, 2)
		b := w.alloc(bytes, 0, w.always)
		for w.alloc(bytes, 0, func(uint32) bool { return false }) != nil {
			continue // all that there is
		}
		require.NoError(t, b.slot.Record(b.word, 0))
		w.free(b)
		w.core.Drain()
		require.Equal(t, bytes, w.core.PendingBytes())
		require.Nil(t, w.alloc(bytes, 0, func(uint32) bool { return false }))
		number := lines[0].Begin()
		lines[0].Took(number)
		lines[0].Pass(number)
		require.NotNil(t, w.alloc(bytes, 0, func(uint32) bool { return false }), "%d bytes", bytes)
		require.Zero(t, w.core.PendingBytes())
	}
}

// The lists of pending blocks are as long as the most that were pending at a time.
func TestListsOfPendingBlocksDoNotGrow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	lines, _ := newLines(t, w, 3)
	for range 50 {
		for i := range 4 {
			b := w.alloc(4*kib, 0, w.always)
			require.NoError(t, b.slot.Record(b.word, i%2))
			require.NoError(t, b.slot.Record(b.word, 1))
			w.free(b)
		}
		w.core.Drain()
		for _, l := range lines {
			number := l.Begin()
			l.Took(number)
			l.Pass(number)
		}
		w.core.Drain()
		require.Zero(t, w.core.PendingBytes())
	}
	f := &w.core.inFlight
	assert.Len(t, f.blocks, 4)
	assert.Len(t, f.entries, 6)
	assert.Empty(t, f.queues)
	assert.LessOrEqual(t, cap(f.queues), 4)
}

// Each stream for which blocks wait is visited once: with the first number that they wait for, and with the one that a fence must
// cover, or 0 if one was recorded.
func TestEachLineIsVisited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	lines, _ := newLines(t, w, 3)
	use := func(line int) {
		b := w.alloc(4*kib, 0, w.always)
		require.NoError(t, b.slot.Record(b.word, line))
		w.free(b)
		w.core.Drain()
	}
	visited := func(each func(func(*line.Line, uint64))) map[*line.Line]uint64 {
		all := map[*line.Line]uint64{}
		each(func(l *line.Line, number uint64) {
			_, twice := all[l]
			assert.False(t, twice)
			all[l] = number
		})
		return all
	}
	assert.Empty(t, visited(w.core.EachLine))
	use(0)
	use(1)
	assert.Equal(t, map[*line.Line]uint64{lines[0]: 1, lines[1]: 1}, visited(w.core.EachLine))
	assert.Equal(t, map[*line.Line]uint64{lines[0]: 1, lines[1]: 1}, visited(w.core.EachMissing))
	lines[0].Took(lines[0].Begin())
	use(0)
	assert.Equal(t, map[*line.Line]uint64{lines[0]: 1, lines[1]: 1}, visited(w.core.EachLine))
	assert.Equal(t, map[*line.Line]uint64{lines[0]: 0, lines[1]: 1}, visited(w.core.EachMissing))
}

// A stream that is shut serves no caller: neither a magazine nor a block that was just freed.
func TestAShutStreamServesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.swell()
	w.churn(w.core.misses.stability.at + 1)
	require.True(t, w.takesBack(300*kib))
	w.free(w.alloc(4*kib, 0, w.always))
	w.free(w.alloc(300*kib, 0, w.always))
	w.core.Shut()
	for _, bytes := range []int64{4 * kib, 300 * kib} {
		s, _ := w.cache.TakeBack(bytes)
		assert.Nil(t, s)
		s, _ = w.cache.Take(bytes)
		assert.Nil(t, s)
	}
}

// A stream that is shut serves nobody from a magazine of large blocks either, and blocks that are freed later stay where they are.
func TestAShutStreamsMagazinesServeNobody(t *testing.T) {
	t.Parallel()
	for _, shuts := range []bool{false, true} {
		w := newWorld(t, 512, Budget{})
		w.hoard(4, 256*kib, 0, w.always)
		for range 2 {
			w.free(w.live[0])
		}
		if shuts {
			w.core.Shut()
		}
		s, _ := w.cache.Take(256 * kib)
		assert.Equal(t, shuts, s == nil)
		w.free(w.live[0])
		s, _ = w.cache.Take(256 * kib)
		assert.Equal(t, shuts, s == nil)
	}
}
