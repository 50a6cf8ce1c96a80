package lane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// landlord leases to lanes what a heap would have that never runs out, and counts what it gets back.
type landlord struct {
	t      *testing.T
	owner  *magazine.Owner
	leases *Leases
	last   int32
	out    map[int32]bool // blocks that lanes have
}

// handle is what a caller holds.
type handle struct {
	*magazine.Slot
	word uint64
}

// wakes is a Waker that nobody hears.
type wakes struct{}

// Wake implements magazine.Waker.
func (wakes) Wake() {}

// Piled implements magazine.Waker.
func (wakes) Piled() {}

func (wakes) Refused() {}

// Freed implements Waker.
func (wakes) Freed() {}

func newLandlord(t *testing.T) *landlord {
	t.Helper()
	d := &landlord{t: t, owner: magazine.NewOwner(new(magazine.Cache), wakes{}), out: map[int32]bool{}}
	d.leases = NewLeases(d.owner, d.give)
	return d
}

func (d *landlord) block() (int32, cudadrv.Ptr) {
	d.last++
	d.out[d.last] = true
	return d.last, cudadrv.Ptr(d.last) << 32
}

func (d *landlord) give(block, _ int32) {
	require.True(d.t, d.out[block], "given back twice")
	delete(d.out, block)
}

func (d *landlord) lane(budgetUnits uint64) *Lane {
	l := new(Lane)
	l.Init(budgetUnits, &tenant{landlord: d, lane: l})
	d.leases.Open(l)
	return l
}

// tenant is what is beyond a lane: what a stream does for it, without the stream's own way.
type tenant struct {
	landlord *landlord
	lane     *Lane
	outcome  Outcome // of the free at hand
}

// AllocBeyond implements beyond.
func (n *tenant) AllocBeyond(bytes int64) (*magazine.Slot, uint64, int64, error) {
	h := n.landlord.lease(n.lane, bytes)
	return h.Slot, h.word, bytes, nil
}

// AllocSampled implements beyond.
func (n *tenant) AllocSampled(s *magazine.Slot, handle uint64, bytes int64) (*magazine.Slot, uint64, int64, error) {
	return s, handle, bytes, nil
}

// FreeBeyond implements beyond.
func (n *tenant) FreeBeyond(_ *magazine.Slot, _ uint64, outcome Outcome) error {
	n.outcome = outcome
	return nil
}

func (d *landlord) alloc(l *Lane, bytes int64) handle {
	d.t.Helper()
	s, word, got, err := l.Alloc(bytes)
	require.NoError(d.t, err)
	require.Equal(d.t, bytes, got)
	return handle{s, word}
}

// free is what became of a free by the lane.
func (d *landlord) free(l *Lane, h handle) Outcome {
	d.t.Helper()
	n, ok := l.beyond.(*tenant)
	require.True(d.t, ok)
	n.outcome = Kept
	require.NoError(d.t, l.Free(h.Slot, h.word))
	return n.outcome
}

// lease serves what the lane had nothing for.
func (d *landlord) lease(l *Lane, bytes int64) handle {
	d.t.Helper()
	d.leases.Settle(l)
	if s, word := l.Take(bytes); s != nil {
		return handle{s, word}
	}
	require.True(d.t, l.Fits(bytes))
	require.True(d.t, d.leases.Admits(l, bytes))
	units := sizeclass.Units(bytes)
	if units > sizeclass.MaxUnits {
		block, base := d.block()
		s := d.leases.LeaseBlock(l, block, uint32(units), base)
		return handle{s, s.Word()}
	}
	if class := sizeclass.Of(units); !d.leases.Adopt(l, class) {
		span, base := d.block()
		d.leases.LeaseSpan(l, class, span, base)
	}
	s, word := l.Take(bytes)
	require.NotNil(d.t, s)
	return handle{s, word}
}

// stray is the end of another goroutine's free that raced with the lane's of the same handle: its
// compare-and-swap succeeded, as the lane's store did, and its OR comes now.
func (d *landlord) stray(s *magazine.Slot) {
	if (*magazine.Leased)(s).Return() {
		d.leases.MagazineHome(s.Magazine())
	}
}

// charged is what the charge of a lane must be.
func charged(l *Lane) (units uint64) {
	for class := range l.shelves {
		sh, span := &l.shelves[class], spanUnits(class)
		if sh.current != nil {
			units += span
		}
		for m := sh.ready.newest; m != nil; m = m.older {
			if m.local == m.whole {
				units += span
			}
		}
	}
	if l.large.top != nil {
		units += uint64(l.large.top.Units)
	}
	for _, s := range l.large.places {
		for ; s != nil; s = s.Next {
			units += uint64(s.Units)
		}
	}
	return units
}

// A class of which more lives than a span holds is served from whatever span has free slots, without the
// owner, and only spans that nobody uses count.
func TestLaneTurnsOver(t *testing.T) {
	d := newLandlord(t)
	l := d.lane(1 << 20)
	var all []handle
	for range 5 * 62 {
		all = append(all, d.alloc(l, 512))
	}
	require.Len(t, d.out, 5)
	assert.Equal(t, spanUnits(0), l.chargeUnits, "the one in use")
	for _, h := range all {
		assert.Equal(t, Kept, d.free(l, h))
		require.Equal(t, charged(l), l.chargeUnits)
	}
	assert.Equal(t, 5*spanUnits(0), l.chargeUnits)
	seen := map[*magazine.Slot]bool{}
	for range all {
		s, word := l.Take(512)
		require.NotNil(t, s, "without the owner")
		assert.False(t, seen[s])
		assert.True(t, s.Live(word))
		seen[s] = true
		require.Equal(t, charged(l), l.chargeUnits)
	}
	s, _ := l.Take(512)
	assert.Nil(t, s)
}

// Spans and blocks beyond the budget come back at once.
func TestLaneShedsWhatIsOverItsBudget(t *testing.T) {
	d := newLandlord(t)
	l := d.lane(2 * spanUnits(0))
	var all []handle
	for range 5 * 62 {
		all = append(all, d.alloc(l, 512))
	}
	for _, h := range all {
		if d.free(l, h) == Surplus {
			d.leases.Settle(l)
		}
		require.LessOrEqual(t, l.chargeUnits, l.budgetUnits)
		require.Equal(t, charged(l), l.chargeUnits)
	}
	assert.Len(t, d.out, 2)
	assert.Equal(t, 2*spanUnits(0), d.leases.LeasedUnits())

	d = newLandlord(t)
	l = d.lane(1000)
	a, b := d.alloc(l, 600<<9), d.alloc(l, 700<<9)
	assert.Equal(t, Kept, d.free(l, a))
	assert.Equal(t, Surplus, d.free(l, b))
	d.leases.Settle(l)
	assert.EqualValues(t, 600, d.leases.LeasedUnits())
	assert.EqualValues(t, 600, l.chargeUnits)
}

// A length has two places, and the block freed last one of its own; a fourth length that has only the same
// places pushes another out.
func TestLaneLengthsThatMeet(t *testing.T) {
	d := newLandlord(t)
	l := d.lane(1 << 40)
	var lengths []int64
	for units := uint64(sizeclass.MaxUnits + 1); len(lengths) < 4; units++ {
		if lengthPlace(units) == 7 {
			lengths = append(lengths, int64(units)<<sizeclass.UnitShift)
		}
	}
	free := func(want Outcome, handles ...handle) {
		t.Helper()
		for _, h := range handles {
			assert.Equal(t, want, d.free(l, h))
			require.Equal(t, charged(l), l.chargeUnits)
		}
	}
	var live []handle
	for _, bytes := range lengths {
		live = append(live, d.alloc(l, bytes))
	}
	free(Kept, live[:3]...)
	for range 3 {
		for _, bytes := range lengths[:3] {
			free(Kept, d.alloc(l, bytes))
		}
	}
	require.Len(t, d.out, 4)
	free(Surplus, live[3])
	d.leases.Settle(l)
	require.Len(t, d.out, 3, "one of the others went")
	free(Kept, d.alloc(l, lengths[3]))
	require.Len(t, d.out, 3)
	require.Equal(t, charged(l), l.chargeUnits)
	d.leases.ReleaseUnused(l)
	require.Empty(t, d.out)
	require.Zero(t, l.chargeUnits)
}

// What a free left that raced with the lane's free of the same handle has no effect, whenever it arrives
// and whoever has the slot by then.
func TestStrayBitsMeanNothing(t *testing.T) {
	for _, bytes := range []int64{512, 1 << 20} {
		d := newLandlord(t)
		l := d.lane(1 << 30)
		a := d.alloc(l, bytes)
		require.Equal(t, Kept, d.free(l, a))

		d.stray(a.Slot) // while the slot is free
		d.leases.Settle(l)
		b := d.alloc(l, bytes)
		require.Same(t, a.Slot, b.Slot)
		d.stray(a.Slot) // while it is another's
		d.leases.Settle(l)
		require.True(t, b.Live(b.word))
		c := d.alloc(l, bytes)
		require.NotSame(t, b.Slot, c.Slot)

		d.stray(a.Slot) // and before the other's own free
		require.NoError(t, b.Free(b.word))
		d.leases.Settle(l)
		b = d.alloc(l, bytes)
		require.Same(t, a.Slot, b.Slot)
		require.Equal(t, Kept, d.free(l, b))
		require.Equal(t, Kept, d.free(l, c))

		d.stray(a.Slot) // on a magazine that was given back, and leased anew before it was looked at
		d.owner.CollectParked()
		d.leases.Close(l)
		require.Empty(t, d.out)
		d.stray(a.Slot)
		d.owner.CollectParked()
		next := d.lane(1 << 30)
		block, base := d.block()
		if bytes == 512 {
			d.leases.LeaseSpan(next, 0, block, base)
			b.Slot, b.word = next.Take(bytes)
		} else {
			b.Slot = d.leases.LeaseBlock(next, block, uint32(bytes>>sizeclass.UnitShift), base)
			b.word = b.Word()
		}
		require.Same(t, a.Magazine(), b.Magazine())
		require.NoError(t, b.Free(b.word)) // no second hand-over: the magazine is on its way
		d.leases.Settle(next)
		require.Equal(t, charged(next), next.chargeUnits)
		require.Len(t, d.out, 1)
		assert.Same(t, b.Slot, d.alloc(next, bytes).Slot)
	}
}

// A stray bit of a span that counts as unused does not make it count twice.
func TestStrayBitOfAnUnusedSpan(t *testing.T) {
	d := newLandlord(t)
	l := d.lane(1 << 30)
	var all []handle
	for range 63 {
		all = append(all, d.alloc(l, 512))
	}
	for _, h := range all {
		require.Equal(t, Kept, d.free(l, h))
	}
	d.stray(all[0].Slot)
	d.leases.Settle(l)
	require.Equal(t, charged(l), l.chargeUnits)
}

// A magazine that was handed over to one lane, and is another's when that one looks, goes to the other.
func TestMagazineChangesLanesOnItsWay(t *testing.T) {
	d := newLandlord(t)
	l, next := d.lane(1<<20), d.lane(1<<20)
	a := d.alloc(l, 512)
	require.NoError(t, a.Free(a.word))
	b := d.alloc(l, 512)
	require.Equal(t, Kept, d.free(l, b))
	d.owner.CollectParked() // a's magazine is on its way to l
	require.NotNil(t, l.arrived)
	d.leases.Settle(l)
	d.stray(a.Slot)
	d.owner.CollectParked()
	require.NotNil(t, l.arrived)
	d.leases.ReleaseUnused(l)
	require.Empty(t, d.out)
	c := d.alloc(next, 512)
	require.Same(t, a.Magazine(), c.Magazine())
	d.leases.Settle(l)
	assert.Same(t, of(c.Magazine()), next.arrived)
	require.NoError(t, c.Free(c.word))
	d.leases.Settle(next)
	assert.Nil(t, next.arrived)
	assert.Same(t, c.Slot, d.alloc(next, 512).Slot)
}

// A lane keeps blocks of its own magazines only: the free of another lane's block, or of one that no lane can have, is refused.
func TestALaneRefusesWhatIsNotItsOwn(t *testing.T) {
	d := newLandlord(t)
	l, other := d.lane(1<<20), d.lane(1<<20)
	span, base := d.block()
	ordinary, loose := d.owner.Spans.New(0, span, base).Take(), d.owner.Loose.Take()
	for _, h := range []handle{
		d.alloc(other, 512), d.alloc(other, 1<<20), {ordinary, ordinary.Word()}, {loose, loose.Word()},
	} {
		assert.Equal(t, Refused, d.free(l, h))
		assert.Equal(t, Refused, l.FreeRaised(h.Slot, h.word))
		assert.True(t, h.Live(h.word))
	}
}

// A lane that was closed, or whose cache was, stays so whatever else is settled for it.
func TestAnEndedLaneStaysEnded(t *testing.T) {
	d := newLandlord(t)
	l, other := d.lane(1<<20), d.lane(1<<20)
	a := d.alloc(l, 512)
	d.leases.Close(l)
	assert.Equal(t, Ended, l.Raised()&Ended)
	d.leases.Settle(l)
	assert.Equal(t, Ended, l.Raised()&Ended)
	assert.Zero(t, other.Raised())
	require.NoError(t, a.Free(a.word))

	d.leases.Raise(Asked)
	assert.Equal(t, Asked, d.leases.Settle(other))
	assert.Zero(t, other.Raised(), "it has come")
	d.leases.Raise(Ended)
	assert.Equal(t, Ended, d.leases.Settle(other)&Ended)
	assert.Equal(t, Ended, other.Raised()&Ended)
}

// The budget turns requests away only so often.
func TestBudgetTurnsAwayOnlySoOften(t *testing.T) {
	d := newLandlord(t)
	l := d.lane(1000)
	a := d.alloc(l, 900<<9)
	require.Equal(t, Kept, d.free(l, a))
	for range refusalLimit - 1 {
		require.False(t, d.leases.Admits(l, 200<<9))
	}
	require.True(t, d.leases.Admits(l, 200<<9))
	assert.Empty(t, d.out)
	assert.Zero(t, l.chargeUnits)
}
