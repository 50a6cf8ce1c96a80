package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// play lets a loop take and give pages tick by tick: what is lent at each, with as much reserved.
func (f *forecast) play(lent ...uint64) {
	for _, pages := range lent {
		f.note(pages, pages)
		f.beat(pages, pages)
	}
}

// step is a loop's step: rise ticks with that many pages, and pause ticks with what stays.
func (f *forecast) step(pages, stay uint64, rise, pause int) {
	for range rise {
		f.play(pages)
	}
	for range pause {
		f.play(stay)
	}
}

// After two steps the third is foreseen, from shortly before it on; what stays between them does not matter.
func TestTheThirdStepIsForeseen(t *testing.T) {
	t.Parallel()
	for name, stay := range map[string]uint64{"nothing stays": 0, "weights stay": 60} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f forecast
			f.step(100, stay, 3, 17)
			assert.Zero(t, f.wanted(), "one step is no loop")
			f.step(100, stay, 3, 17-4)
			assert.Zero(t, f.wanted(), "it is too early")
			f.play(stay)
			assert.Equal(t, uint64(100), f.wanted())
			f.play(stay, stay, stay)
			assert.Equal(t, uint64(100), f.wanted())
			f.play(100)
			assert.Zero(t, f.wanted(), "it is there")
			assert.Equal(t, uint64(1), f.hits)
			assert.Zero(t, f.misses)
		})
	}
}

// A loop whose steps are shorter than a tick is at its peak and at its ebb in each of them.
func TestStepsShorterThanATick(t *testing.T) {
	t.Parallel()
	var f forecast
	for n := range 10 {
		f.note(50, 50)
		f.note(0, 50)
		f.beat(0, 50)
		assert.Equal(t, n >= 1, f.wanted() == 50, "tick %d", n)
		assert.Equal(t, n >= 1, f.held() == 50, "tick %d", n)
	}
}

// Steps that need the driver want more: as much as the last was more than the one before, and the longest request once
// more. Steps that find what they need want no more than that.
func TestGrowingSteps(t *testing.T) {
	t.Parallel()
	var f forecast
	f.grow(7)
	f.step(100, 0, 2, 8)
	f.grow(7)
	f.grow(5)
	f.step(130, 0, 2, 8)
	assert.Equal(t, uint64(130+30+7), f.wanted())
	f.step(167, 0, 2, 8)
	assert.Equal(t, uint64(167), f.wanted(), "that was enough")
	f.grow(3)
	f.step(120, 0, 2, 8)
	assert.Equal(t, uint64(123), f.wanted(), "less is no trend")
}

// What does not come is not held for ever, and more is asked for before the next is foreseen.
func TestAStepThatDoesNotCome(t *testing.T) {
	t.Parallel()
	var f forecast
	f.step(100, 0, 2, 18)
	f.step(100, 0, 2, 18)
	assert.Equal(t, uint64(100), f.wanted())
	f.step(0, 0, 0, 100)
	assert.Zero(t, f.wanted())
	assert.Equal(t, uint64(1), f.misses, "it is missed once")
	f.step(100, 0, 2, 18)
	assert.Zero(t, f.wanted(), "an interval like none before")
	f.step(100, 0, 2, 18)
	assert.Zero(t, f.wanted(), "one is not enough any more")
	f.step(100, 0, 2, 18)
	assert.Equal(t, uint64(100), f.wanted())
	f.spoiled = true
	assert.Zero(t, f.wanted())
	f.step(100, 0, 2, 18)
	assert.Equal(t, uint64(100), f.wanted(), "until the next")
	assert.Equal(t, uint64(1), f.hits)
}

// Whatever is lent: what is wanted was needed once, but for a trend; it is wanted for a part of the time between two rises and no
// longer; hits and misses are rises and their absence.
func TestForecastKeepsWithinItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var f forecast
		var most uint64
		wantedFor := uint64(0)
		for range rapid.IntRange(1, 200).Draw(t, "ticks") {
			for range rapid.IntRange(0, 3).Draw(t, "steps") {
				lent := rapid.Uint64Range(0, 200).Draw(t, "lent")
				reserved := lent + rapid.Uint64Range(0, 50).Draw(t, "more")
				most = max(most, reserved)
				f.note(lent, reserved)
				if rapid.Bool().Draw(t, "grow") {
					f.grow(uint32(rapid.IntRange(1, 20).Draw(t, "longest")))
				}
			}
			lent := rapid.Uint64Range(0, 200).Draw(t, "lent")
			most = max(most, lent)
			f.note(lent, lent)
			began := f.began
			f.beat(lent, lent)
			require.LessOrEqual(t, f.wanted(), 2*most+20)
			require.LessOrEqual(t, f.held(), 2*most+20)
			if f.began != began {
				wantedFor = 0
			}
			if f.wanted() > 0 {
				wantedFor++
				require.True(t, f.sure() && !f.rising)
			}
			require.LessOrEqual(t, wantedFor, 2*slackTicks(f.interval)+1)
			require.LessOrEqual(t, f.hits+f.misses, 2*f.tick)
			require.LessOrEqual(t, f.asked, mostAsked)
		}
	})
}
