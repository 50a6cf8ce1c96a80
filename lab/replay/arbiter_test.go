package replay

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// walk tries every order of events from a state on, and says how many rounds can be given up at most. No state comes back:
// that would be a livelock.
func walk(t *testing.T, a arbiter, on map[string]bool, known map[string]int) (mostGivenUp int) {
	t.Helper()
	state := fmt.Sprintf("%d", a.stages)
	if most, seen := known[state]; seen {
		return most
	}
	require.False(t, on[state], "%v comes back", state)
	on[state] = true
	count := func(s stage) (n int) {
		for _, other := range a.stages {
			if other == s {
				n++
			}
		}
		return n
	}
	require.LessOrEqual(t, count(stopping), 1, state)
	if count(aside) > 0 {
		require.Positive(t, count(playing), state)
	}
	for number, s := range a.stages {
		next := arbiter{stages: slices.Clone(a.stages), freedCount: a.freedCount}
		switch s {
		case playing:
			switch next.refused(number, a.freedCount) {
			case givesUp:
				mostGivenUp = max(mostGivenUp, 1+walk(t, next, on, known))
			case fails:
				require.Equal(t, 1, count(playing), state)
			case awaits:
				require.Equal(t, 1, count(stopping), state)
			case stops, again:
				require.Fail(t, "a wait of this moment, of a copy that plays", state)
			}
			next.stages = slices.Clone(a.stages)
			next.freed(number) // it has come to the end
			require.Equal(t, ended, next.stages[number])
			mostGivenUp = max(mostGivenUp, walk(t, next, on, known))
		case stopping:
			require.Equal(t, stops, next.refused(number, a.freedCount))
			next.freed(number)
			mostGivenUp = max(mostGivenUp, walk(t, next, on, known))
		case aside, ended:
		}
	}
	delete(on, state)
	known[state] = mostGivenUp
	return mostGivenUp
}

func TestCopiesThatGiveUpComeToTheEnd(t *testing.T) {
	t.Parallel()
	for copies := 1; copies <= 6; copies++ {
		a := newArbiter(copies)
		a.begin()
		most := walk(t, a, map[string]bool{}, map[string]int{})
		assert.Equal(t, copies*(copies-1)/2, most, "%d copies", copies)
	}
}

func TestARefusalThatIsOutOfDateIsNone(t *testing.T) {
	t.Parallel()
	a := newArbiter(3)
	a.begin()
	require.Equal(t, givesUp, a.refused(1, 0))
	assert.Equal(t, awaits, a.refused(0, 0), "what 1 holds comes home")
	assert.Empty(t, a.freed(1))
	assert.Equal(t, again, a.refused(0, 0), "it has come home since the wait began")
	require.Equal(t, givesUp, a.refused(0, 1))
	assert.Equal(t, []int{1}, a.freed(2), "another has come to the end")
	assert.Empty(t, a.freed(0), "1 plays")
	assert.Equal(t, fails, a.refused(1, 3), "it plays alone")
	assert.Equal(t, []int{0}, a.freed(1))
	assert.Empty(t, a.freed(0))
	assert.Equal(t, []stage{ended, ended, ended}, a.stages)
	assert.EqualValues(t, 2, a.restartCount)
}
