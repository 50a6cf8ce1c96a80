package core

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/tape"
)

// request is one of a step: its length, and how many requests later it is freed.
type request struct {
	units uint32
	life  int
}

// drawStep draws a step of lengths that differ: it is no loop of shorter ones.
func drawStep(t *rapid.T) []request {
	step := make([]request, rapid.IntRange(20, 60).Draw(t, "length"))
	for i := range step {
		step[i] = request{
			units: uint32(sizeclass.MaxUnits + 1 + i + 60*rapid.IntRange(0, 5).Draw(t, "units")),
			life:  rapid.IntRange(1, len(step)-1).Draw(t, "life"),
		}
	}
	return step
}

// performer plays steps to a world with a tape.
type performer struct {
	w    *world
	ends map[int][]*buffer // by time
	at   int

	freeing func(*buffer) // what is done first; nil: nothing
}

func newPerformer(t require.TestingT, pageUnits uint32) *performer {
	w := newWorld(t, pageUnits, Budget{})
	w.core.SetSettings(Settings{Tape: true})
	return &performer{w: w, ends: map[int][]*buffer{}}
}

func (p *performer) request(r request) {
	for _, b := range p.ends[p.at] {
		if p.freeing != nil {
			p.freeing(b)
		}
		p.w.free(b)
	}
	delete(p.ends, p.at)
	b := p.w.alloc(int64(r.units)<<sizeclass.UnitShift, 0, func(need uint32) bool { return p.w.lend(0, need) })
	p.at++
	if b != nil {
		p.ends[p.at+r.life-1] = append(p.ends[p.at+r.life-1], b)
	}
}

// tick does what a tick of the stream does.
func (p *performer) tick() {
	p.w.core.Tick()
	if job := p.w.core.PlanJob(); job != nil {
		for !job.Run(1000) {
		}
		p.w.core.Planned(job)
	}
}

func (p *performer) counts() tape.Counts { return p.w.core.tape.Counts() }

// A step that repeats is recognised, packed and, where there is room, placed whole.
func TestTapePlaysAStepThatRepeats(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := drawStep(t)
		p := newPerformer(t, 128)
		require.True(t, p.w.grant(0, worldUnits/128))
		for range 12 {
			for _, r := range step {
				p.request(r)
			}
			p.tick()
			p.w.check()
		}
		require.Equal(t, tape.Playing, p.w.core.tape.State())
		before := p.counts()
		for range 3 {
			for _, r := range step {
				p.request(r)
			}
		}
		now := p.counts()
		require.Equal(t, uint64(3*len(step)), now.Requests-before.Requests)
		require.Equal(t, now.Requests-before.Requests, now.Placed-before.Placed, "all are placed")
		p.w.check()
	})
}

// Whatever differs from the step, and whoever wants the memory back meanwhile: no unit has two owners, and the books
// balance after each event.
func TestTapeFollowsTheReferenceWhateverComes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := drawStep(t)
		other := drawStep(t)
		p := newPerformer(t, rapid.SampledFrom([]uint32{128, 512}).Draw(t, "page units"))
		for range 14 {
			this := step
			if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
				this = other
			}
			for i := 0; i < len(this); i++ {
				r := this[i]
				switch rapid.IntRange(0, 40).Draw(t, "event") {
				case 0: // left out
					continue
				case 1: // of another length
					r.units = uint32(sizeclass.MaxUnits + 1 + rapid.IntRange(0, 300).Draw(t, "length"))
				case 2: // more than there was
					p.request(this[rapid.IntRange(0, len(this)-1).Draw(t, "more")])
				case 3: // in another order
					if i+1 < len(this) {
						p.request(this[i+1])
						i++
					}
				case 4: // freed at another time
					r.life = rapid.IntRange(1, 3*len(this)).Draw(t, "life")
				case 5:
					p.tick()
				case 6:
					if rapid.Bool().Draw(t, "spare") {
						p.w.back(p.w.core.Spare(^uint32(0), false))
					} else {
						p.w.back(p.w.core.Surrender(^uint32(0), false))
					}
				case 7:
					p.w.core.SetSettings(Settings{Tape: rapid.IntRange(0, 3).Draw(t, "tape") > 0})
				}
				p.request(r)
				p.w.check()
				p.w.checkLive()
			}
			p.tick()
		}
		p.w.core.SetSettings(Settings{})
		p.w.finish(rapid.Bool().Draw(t, "close first"))
	})
}

// A stream that plays resynchronises a few requests behind a difference.
func TestTapeFindsItsPlaceAgain(t *testing.T) {
	step := make([]request, 40)
	for i := range step {
		step[i] = request{uint32(sizeclass.MaxUnits + 1 + i*i%97), 1 + i%7}
	}
	p := newPerformer(t, 128)
	require.True(t, p.w.grant(0, worldUnits/128))
	for range 12 {
		for _, r := range step {
			p.request(r)
		}
		p.tick()
	}
	for name, change := range map[string]func() int{
		"left out":  func() int { return 12 },
		"inserted":  func() int { p.request(request{700, 2}); return 11 },
		"longer":    func() int { p.request(request{700, 2}); return 12 },
		"a repeat":  func() int { return 3 },
		"two wrong": func() int { p.request(request{700, 2}); p.request(request{701, 2}); return 13 },
	} {
		for _, r := range step[:11] {
			p.request(r)
		}
		next := change()
		before := p.counts()
		for _, r := range step[next:] {
			p.request(r)
		}
		now := p.counts()
		requests, placed := now.Requests-before.Requests, now.Placed-before.Placed
		assert.GreaterOrEqual(t, placed+10, requests, "%s: %d of %d placed", name, placed, requests)
		require.Equal(t, tape.Playing, p.w.core.tape.State(), name)
		for range 2 {
			for _, r := range step {
				p.request(r)
			}
		}
		p.w.check()
	}
}

// The memory of a plan is no reason to hold more: what the plan does not have gets it before the pool is asked.
func TestPlanYieldsBeforeThePoolIsAsked(t *testing.T) {
	for name, ask := range map[string]func(w *world, bytes int64) (*magazine.Slot, uint32){
		"a buffer":    func(w *world, bytes int64) (*magazine.Slot, uint32) { return w.core.Alloc(bytes, 0) },
		"one aligned": func(w *world, bytes int64) (*magazine.Slot, uint32) { return w.core.AllocAligned(bytes, 4*kib, false) },
		"a batch": func(w *world, bytes int64) (s *magazine.Slot, need uint32) {
			w.core.AllocMany(uint32(sizeclass.Units(bytes)), 1, 0, func(one *magazine.Slot) { s = one })
			return s, 1
		},
	} {
		b := newBareStep(true)
		w := &world{core: b.core}
		require.Equal(t, tape.Playing, b.core.tape.State(), name)
		held, longest := b.core.HeldBytes(), int64(b.core.heap.LargestFree())<<sizeclass.UnitShift
		slot, need := ask(w, longest+sizeclass.UnitBytes)
		require.NotNil(t, slot, "%s: %d pages are missing", name, need)
		assert.Equal(t, tape.Ready, b.core.tape.State(), name)
		assert.Equal(t, held, b.core.HeldBytes(), name)
		_ = slot.Free(slot.Word())
		b.core.Drain()
		require.NoError(t, b.core.Check(), name)
	}
}

// The pool gets the memory of a plan that is played, all of it where nothing lives; Spare leaves it.
func TestTheMemoryOfAPlanIsSurrendered(t *testing.T) {
	b := newBareStep(true)
	require.Equal(t, tape.Playing, b.core.tape.State())
	require.NotEmpty(t, b.core.ground)
	for i := range b.slots {
		for _, s := range b.slots[i][:b.count[i]] {
			_ = s.Free(s.Word())
		}
	}
	b.core.Spare(math.MaxUint32, false)
	require.Equal(t, tape.Playing, b.core.tape.State())
	require.Positive(t, b.core.HeldBytes())
	b.core.Surrender(math.MaxUint32, false)
	assert.Zero(t, b.core.HeldBytes())
	assert.NotEqual(t, tape.Playing, b.core.tape.State())
	require.NoError(t, b.core.Check())
}

// A plan whose ground is mostly taken by what lives, with no room for that besides, is not begun.
func TestPlanThatMissesTooMuchIsNotBegun(t *testing.T) {
	b := newBareStep(true)
	step := b.core.Plan()
	b.core.SetSettings(Settings{})
	b.core.SetSettings(Settings{Tape: true})
	require.True(t, b.core.Teach(step))
	for i := 0; b.core.tape.State() != tape.Ready; i++ {
		require.Less(t, i, 10)
		b.play()
		b.tick()
	}
	var taken []*magazine.Slot
	for b.core.heap.FreeUnits() > 0 { // nothing is free but what the step itself gives back
		s, _ := b.core.Alloc(int64(b.core.heap.LargestFree())<<sizeclass.UnitShift, 0)
		require.NotNil(t, s)
		taken = append(taken, s)
	}
	before := b.core.tape.Counts().Plans
	again := func() {
		for _, r := range b.step {
			if b.core.tape.Place(r.units); b.core.tape.Want() == tape.WantClaim {
				b.core.heed()
			}
			b.core.tape.Served(r.units)
		}
	}
	again()
	assert.Greater(t, b.core.tape.Counts().Plans, before)
	require.Equal(t, tape.Ready, b.core.tape.State())
	assert.Empty(t, b.core.ground)
	for _, s := range taken {
		_ = s.Free(s.Word())
	}
	b.core.Drain()
	again()
	assert.Equal(t, tape.Playing, b.core.tape.State(), "there is room")
}

// A tape watches from the first tick on that finds the stream at work, and callers take blocks back until then.
func TestTapeBeginsAtATick(t *testing.T) {
	w := newWorld(t, 512, Budget{})
	w.core.SetSettings(Settings{Tape: true})
	w.core.Tick()
	assert.Nil(t, w.core.tape, "the stream has done nothing")
	w.swell()
	w.churn(w.core.calmAt + 1)
	assert.True(t, w.takesBack(300*kib))
	assert.Zero(t, w.core.Snapshot().Tape.RequestCount)
	w.core.Tick()
	assert.False(t, w.takesBack(310*kib))
	assert.Positive(t, w.core.Snapshot().Tape.RequestCount)
	w.finish(true)
}

// What does not repeat is watched for a while, and then left alone: callers may take blocks back, until a step is taught.
func TestTapeRests(t *testing.T) {
	b := newBareStep(true)
	b.core.SetSettings(Settings{})
	b.core.SetSettings(Settings{Tape: true})
	b.core.Tick()
	var r ramp
	live := [32]*magazine.Slot{}
	one := func(i int) {
		if s := live[i%len(live)]; s != nil {
			_ = s.Free(s.Word())
		}
		bytes := r.next() + int64(i*i%1009)*sizeclass.UnitBytes
		s, _ := b.core.Alloc(bytes, 0)
		require.NotNil(t, s)
		b.core.Served(false)
		live[i%len(live)] = s
	}
	i := 0
	for ; !b.core.tape.Rests(); i++ {
		require.Less(t, i, 300_000)
		one(i)
	}
	assert.Greater(t, i, 200_000)
	assert.Equal(t, tape.Watching, b.core.tape.State())
	assert.LessOrEqual(t, b.core.calmAt, b.core.misses.Turns, "callers may take blocks back at the next ebb")
	require.True(t, b.core.Teach(tape.Step{{Units: 300, Life: 1}, {Units: 400, Life: 1}}))
	assert.False(t, b.core.tape.Rests())
	assert.Greater(t, b.core.calmAt, b.core.misses.Turns, "the step must be seen")
	require.NoError(t, b.core.Check())
}

// score is a step of a bare core: 200 requests, lives up to 20.
func score() []request {
	var r ramp
	step := make([]request, 200)
	for i := range step {
		step[i] = request{uint32(sizeclass.Units(r.next())), 1 + i*7%20}
	}
	return step
}

// bareStep plays a step to a core, with a list of what ends when.
type bareStep struct {
	*bare
	step  []request
	slots [32][8]*magazine.Slot
	count [32]int
	at    int
}

func (b *bareStep) play() {
	for _, r := range b.step {
		end := b.at % len(b.slots)
		for i := range b.count[end] {
			s := b.slots[end][i]
			_ = s.Free(s.Word())
		}
		b.count[end] = 0
		s, _ := b.core.Alloc(int64(r.units)<<sizeclass.UnitShift, 0)
		b.core.Served(false)
		b.at++
		end = (b.at + r.life - 1) % len(b.slots)
		b.slots[end][b.count[end]] = s
		b.count[end]++
	}
}

// newBareStep has played until the plan is played.
func newBareStep(taped bool) *bareStep {
	b := &bareStep{bare: newBare(), step: score()}
	b.core.SetSettings(Settings{Tape: taped})
	for range 40 {
		b.play()
		b.tick()
	}
	return b
}

func (b *bareStep) tick() {
	b.core.Tick()
	if job := b.core.PlanJob(); job != nil {
		for !job.Run(1 << 20) {
		}
		b.core.Planned(job)
	}
}

func TestPlacingDoesNotAllocate(t *testing.T) {
	b := newBareStep(true)
	before := b.core.tape.Counts()
	assert.Zero(t, testing.AllocsPerRun(100, b.play))
	now := b.core.tape.Counts()
	assert.Equal(t, uint64(101*len(b.step)), now.Placed-before.Placed)
	require.NoError(t, b.core.Check())
}

// BenchmarkStep is a pair of a step that repeats, with and without the tape.
func BenchmarkStep(b *testing.B) {
	for _, taped := range []bool{false, true} {
		b.Run(map[bool]string{false: "tape=off", true: "tape=on"}[taped], func(b *testing.B) {
			s := newBareStep(taped)
			b.ReportAllocs()
			for b.Loop() {
				s.play()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(s.step)), "ns/pair")
		})
	}
}
