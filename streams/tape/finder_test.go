package tape

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// listener observes requests and frees them when their life is over.
type listener struct {
	f    finder
	ends map[uint32][][2]uint32 // by position of the request that may have the memory: position and units
}

func (l *listener) request(r Request) {
	if l.ends == nil {
		l.ends = map[uint32][][2]uint32{}
	}
	for _, e := range l.ends[l.f.next] {
		l.f.ended(e[0], e[1])
	}
	delete(l.ends, l.f.next)
	p := l.f.observe(r.Units)
	if r.Life > 0 {
		l.ends[p+r.Life] = append(l.ends[p+r.Life], [2]uint32{p, r.Units})
	}
}

// A sequence that repeats is found when it has come twice, with the lives of its requests, and no sooner.
func TestAStepIsFoundWhenItCameTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := make([]Request, rapid.IntRange(2*phraseLength, 300).Draw(t, "length"))
		for i := range step {
			step[i] = Request{uint32(1000*i + rapid.IntRange(1, 9).Draw(t, "units")), uint32(rapid.IntRange(1, len(step)).Draw(t, "life"))}
		}
		var l listener
		for round := range 4 {
			for i, r := range step {
				l.request(r)
				if found := l.f.found(); found {
					require.GreaterOrEqual(t, round, 2, "at request %d", i)
					require.EqualValues(t, len(step), l.f.lag)
				}
			}
		}
		require.True(t, l.f.found())
		require.Equal(t, step, l.f.step())
	})
}

// layers is a training step: layers forward, whose requests live until their layer comes backward.
func layers(count int) []Request {
	const width = 20
	var step []Request
	for layer := range count {
		for i := range uint32(width) {
			step = append(step, Request{1000 + i, uint32(width * (2*(count-layer) - 1))})
		}
	}
	for range count {
		for i := range uint32(width) {
			step = append(step, Request{2000 + i, 1})
		}
	}
	return step
}

// Layers that pile up memory are no step, though their sizes repeat: the step round them is.
func TestALoopThatPilesUpIsNoStep(t *testing.T) {
	var l listener
	step := layers(6)
	for round := range 5 {
		for i, r := range step {
			l.request(r)
			if round == 0 && i < len(step)/2 {
				require.False(t, l.f.found(), "at request %d, forward", i)
			}
			if l.f.found() && l.f.worth(l.f.step()) {
				require.GreaterOrEqual(t, round, 1)
				require.EqualValues(t, len(step), l.f.lag)
			}
		}
	}
	assert.True(t, l.f.found())
}

// Micro-batches that leave nothing behind are a step of their own.
func TestMicroBatchesAreSteps(t *testing.T) {
	var l listener
	for range 4 {
		for _, r := range layers(4) {
			l.request(r)
		}
	}
	require.True(t, l.f.found())
	assert.EqualValues(t, len(layers(4)), l.f.lag)
	for i := range uint32(30) { // the optimizer
		l.request(Request{5000 + i, 1})
	}
	assert.False(t, l.f.found())
}

// differing plays a step of 400 of which one request in so many is left out, and another one is of another length, each time
// others. It returns how often the step was found.
func (l *listener) differing(every int) (found int) {
	for round := range 8 {
		for i := range uint32(400) {
			switch (int(i) + 37*round) % every {
			case 0:
				continue
			case every / 2:
				l.request(Request{90_000 + uint32(round), 3})
			default:
				l.request(Request{1000 + i*i%4001, 1 + i%30})
			}
			if l.f.found() {
				found++
			}
		}
	}
	return found
}

// One request in two hundred left out or of another length does not hide the step.
func TestAStepThatDiffersALittleIsFound(t *testing.T) {
	var l listener
	assert.Greater(t, l.differing(400), 300)
	assert.InDelta(t, 399, float64(l.f.lag), 2*driftReach)
}

// One in fifty does: its lag is followed, and no plan is made of it.
func TestAStepThatDiffersMoreIsNone(t *testing.T) {
	var l listener
	assert.Zero(t, l.differing(100))
	assert.InDelta(t, 396, float64(l.f.lag), 2*driftReach)
}

// The history is the last requests, however long ago the first was.
func TestHistoryFollowsTheReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h history
		first := rapid.SampledFrom([]uint32{1, 5000, 1<<32 - 1500}).Draw(t, "first")
		h.first, h.next = first, first
		type noted struct{ position, units, life uint32 }
		var all []noted
		var live uint32
		for range rapid.IntRange(1, 3000).Draw(t, "count") {
			units := uint32(len(all)%7 + 1)
			p := h.note(units)
			if p == 1 && len(all) > 0 { // the positions began anew
				all, live = nil, 0
			}
			live += units
			all = append(all, noted{position: p, units: units})
			if i := len(all) - 1 - len(all)%13; i >= 0 && all[i].life == 0 && len(all)%3 == 0 {
				h.ended(all[i].position, all[i].units)
				all[i].life = h.next - all[i].position
				live -= all[i].units
			}
		}
		require.Equal(t, live, h.liveUnits)
		for i, n := range all {
			if len(all)-i <= len(h.ring) {
				require.True(t, h.has(n.position))
				require.Equal(t, n.units, h.at(n.position).units)
				require.Equal(t, n.life, h.at(n.position).life)
			} else {
				require.False(t, h.has(n.position))
			}
		}
	})
}
