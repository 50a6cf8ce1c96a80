package magazine

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
)

// lentSlot is a slot whose block other streams use, with the books that the package comment describes: a set and a list for each
// stream, and no words.
type lentSlot struct {
	t      *testing.T
	random *rand.Rand
	c      *Cache
	o      *Owner
	s      *Slot

	lines []*line.Line
	hands []*Hand // of the line of that index
	ended []bool

	handle  uint64   // live
	old     []uint64 // not live any more
	holder  int      // index of the line that has the block; -1: none
	numbers map[int]int
	lent    []lentUse
	owned   []int64 // bytes of each hand
	shared  bool
}

// lentUse is a use of the block, of the present allocation or an earlier one.
type lentUse struct {
	use      Use
	line     int
	fence    uint64
	over     bool
	recorded bool // lasts until the free; it has no Use
	freed    bool
	held     bool // begun by a move
}

func newLentSlot(t *testing.T, seed uint64) *lentSlot {
	t.Helper()
	l := &lentSlot{t: t, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // the same in each run
	l.c, l.o, _ = cacheOf(0)
	for i := range 3 {
		of := new(line.Line)
		of.Init(nil)
		l.lines, l.hands = append(l.lines, of), append(l.hands, &Hand{To: uint32(i + 1)}) //nolint:gosec // three
	}
	l.ended, l.owned = make([]bool, len(l.lines)), make([]int64, len(l.lines))
	l.take()
	return l
}

func (l *lentSlot) take() {
	s, handle := l.c.Take(512)
	require.NotNil(l.t, s)
	require.True(l.t, l.s == nil || l.s == s)
	l.s, l.handle, l.holder, l.numbers, l.shared = s, handle, -1, map[int]int{}, false
}

// any returns the live handle, or an old one; it reports whether it is live.
func (l *lentSlot) any() (handle uint64, live bool) {
	if len(l.old) > 0 && l.random.IntN(5) == 0 {
		return l.old[l.random.IntN(len(l.old))], false
	}
	return l.handle, true
}

// going returns the index of a line that has not ended; false: all have.
func (l *lentSlot) going() (at int, ok bool) {
	at = l.random.IntN(len(l.lines))
	return at, !l.ended[at]
}

func (l *lentSlot) record() {
	handle, live := l.any()
	number := []int{0, 1, userCount - 1, userCount, line.Count - 1}[l.random.IntN(5)]
	err := l.s.Record(handle, number)
	if !live {
		require.ErrorIs(l.t, err, ErrStale)
		return
	}
	require.NoError(l.t, err)
	l.numbers[number], l.shared = 1, true
}

func (l *lentSlot) recordLine() {
	handle, live := l.any()
	at, ok := l.going()
	if !ok {
		return
	}
	err := l.s.RecordLine(handle, l.lines[at])
	if !live {
		require.ErrorIs(l.t, err, ErrStale)
		return
	}
	require.NoError(l.t, err)
	l.lent, l.shared = append(l.lent, lentUse{line: at, recorded: true}), true
}

func (l *lentSlot) begin() {
	handle, live := l.any()
	at, ok := l.going()
	if !ok {
		return
	}
	u, err := l.s.Begin(handle, l.lines[at])
	if !live {
		require.ErrorIs(l.t, err, ErrStale)
		return
	}
	require.NoError(l.t, err)
	l.lent, l.shared = append(l.lent, lentUse{use: u, line: at}), true
}

func (l *lentSlot) end() {
	if len(l.lent) == 0 {
		return
	}
	u := &l.lent[l.random.IntN(len(l.lent))]
	if u.recorded || u.held {
		return
	}
	fence := 1 + l.random.Uint64N(9)
	if err := u.use.End(fence); u.over {
		require.ErrorIs(l.t, err, ErrUseOver)
	} else if !u.freed {
		require.NoError(l.t, err)
	}
	u.over, u.fence = true, max(u.fence, fence) // a later number of an end too many does no harm
}

func (l *lentSlot) move() {
	handle, live := l.any()
	to := l.random.IntN(len(l.lines)+1) - 1
	if to >= 0 && l.ended[to] {
		return
	}
	fence := 1 + l.random.Uint64N(9)
	var of *line.Line
	var hand *Hand
	if to >= 0 {
		of, hand = l.lines[to], l.hands[to]
	}
	moved, err := l.s.Move(handle, of, fence, hand)
	if !live {
		require.ErrorIs(l.t, err, ErrStale)
		return
	}
	require.NoError(l.t, err)
	l.leave(fence)
	l.old, l.handle, l.holder, l.shared = append(l.old, handle), moved, to, true
	if to >= 0 {
		l.lent = append(l.lent, lentUse{line: to, held: true})
		l.owned[to] += 512
	}
}

// leave ends the use of the stream that has the block.
func (l *lentSlot) leave(fence uint64) {
	if l.holder < 0 {
		return
	}
	l.owned[l.holder] -= 512
	i := slices.IndexFunc(l.lent, func(u lentUse) bool { return u.held && !u.over && !u.freed })
	l.lent[i].over, l.lent[i].fence = true, fence
}

func (l *lentSlot) finish() {
	at, ok := l.going()
	if ok && l.random.IntN(3) == 0 {
		l.lines[at].Finish()
		l.ended[at] = true
	}
}

// free ends the allocation, compares the uses that the owner finds, and begins another one.
func (l *lentSlot) free() {
	handle, live := l.any()
	err := l.s.Free(handle)
	if !live {
		require.ErrorIs(l.t, err, ErrBadFree)
		return
	}
	require.NoError(l.t, err)
	l.old = append(l.old, handle)
	if l.holder >= 0 {
		l.owned[l.holder] -= 512
	}
	if l.shared {
		require.Same(l.t, l.s, l.o.Used(false))
		l.compareUses()
		l.o.Collect(l.s)
	}
	for i := range l.lent {
		l.lent[i].freed = true
	}
	l.take()
}

// compareUses compares the uses of a freed slot, by their streams: whether one is open, or the highest fence.
func (l *lentSlot) compareUses() {
	type state struct {
		open  bool
		fence uint64
	}
	want, got := map[int]state{}, map[int]state{}
	add := func(to map[int]state, at int, open bool, fence uint64) {
		x := to[at]
		to[at] = state{x.open || open, max(x.fence, fence)}
	}
	for i := range l.lent {
		if u := &l.lent[i]; !u.freed && !l.ended[u.line] {
			add(want, u.line, !u.over, u.fence)
		}
	}
	numbers := map[int]int{}
	l.s.TakeUses(func(number int) { numbers[number]++ }, func(of *line.Line, fence uint64, open bool) {
		if at := slices.Index(l.lines, of); !l.ended[at] { // nobody waits for others
			add(got, at, open, fence)
		}
	})
	require.Equal(l.t, l.numbers, numbers)
	require.Equal(l.t, want, got)
}

func (l *lentSlot) check() {
	require.True(l.t, l.s.Live(l.handle))
	require.Equal(l.t, l.handle, l.s.Word())
	require.True(l.t, l.s.Settled(l.handle))
	require.False(l.t, slices.ContainsFunc(l.old, l.s.Live))
	require.Equal(l.t, l.shared, l.s.Shared())
	var holder *line.Line
	var handedTo uint32
	if l.holder >= 0 {
		holder = l.lines[l.holder]
		if !l.ended[l.holder] {
			handedTo = l.hands[l.holder].To
		}
	}
	require.Same(l.t, holder, l.s.Holder(l.handle))
	require.Equal(l.t, handedTo, l.s.HandedTo())
	for i, h := range l.hands {
		if bytes := h.Bytes(); bytes != l.owned[i] {
			require.Equal(l.t, l.owned[i], bytes, "bytes that line %d was handed", i)
		}
	}
	for i := range l.lent {
		u, want := &l.lent[i], error(nil)
		switch {
		case u.recorded || u.held:
			continue
		case u.over:
			want = ErrUseOver
		case u.freed:
			want = ErrStale
		}
		if err := u.use.Open(); !errors.Is(err, want) { // ahead of ErrorIs, which looks for its caller each time
			require.ErrorIs(l.t, err, want)
		}
	}
}

// The uses, moves and frees of a slot, over several allocations, do what books of each use say: which handles are live, who has the
// block, how many bytes each stream was handed, which uses are open, and what the owner finds once the block is freed.
func TestUsesFollowTheirBooks(t *testing.T) {
	t.Parallel()
	steps := []func(*lentSlot){
		(*lentSlot).record, (*lentSlot).recordLine, (*lentSlot).begin, (*lentSlot).begin, (*lentSlot).end, (*lentSlot).end,
		(*lentSlot).move, (*lentSlot).finish, (*lentSlot).free,
	}
	for seed := range uint64(1000) {
		func() {
			defer func() {
				if t.Failed() {
					t.Logf("seed %d", seed)
				}
			}()
			l := newLentSlot(t, seed)
			for range 60 {
				steps[l.random.IntN(len(steps))](l)
				l.check()
			}
		}()
	}
}
