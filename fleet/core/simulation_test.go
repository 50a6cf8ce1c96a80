package core

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shrunk plays a seed again with fewer and fewer faults, as long as the same promise breaks, and returns the last world.
func shrunk(seed uint64, steps int, m mutation, first *world) *world {
	replay := func(faults []int) *world {
		w := newWorldWith(seed, m, faults)
		w.play(steps)
		return w
	}
	faults := first.fired
	for part := max(len(faults)/2, 1); ; part = max(part/2, 1) {
		removed := false
		for at := 0; at < len(faults); {
			fewer := append(append([]int{}, faults[:at]...), faults[min(at+part, len(faults)):]...)
			if w := replay(fewer); w.breach != nil && w.breach.class == first.breach.class {
				faults, removed = fewer, true
			} else {
				at += part
			}
		}
		if part == 1 && !removed {
			return replay(faults)
		}
	}
}

func newWorldWith(seed uint64, m mutation, faults []int) *world {
	w := newWorld(seed, m)
	w.verbose, w.allowed = true, map[int]bool{}
	for _, f := range faults {
		w.allowed[f] = true
	}
	return w
}

// number returns a variable of the environment, for long runs.
func number(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// No promise breaks, in thousands of events with faults of every kind. VRAM_SEED and VRAM_SEEDS play others, VRAM_STEPS longer ones.
func TestNoPromiseOfTheFleetBreaks(t *testing.T) {
	first, steps := number("VRAM_SEED", 1), int(number("VRAM_STEPS", 4000))
	seeds := uint64(60)
	if !testing.Short() {
		seeds = 600
	}
	events, answers := 0, 0
	for seed := first; seed < first+number("VRAM_SEEDS", seeds); seed++ {
		w := newWorld(seed, correct)
		events += w.play(steps)
		answers += w.answers
		if w.breach != nil {
			short := shrunk(seed, steps, correct, w)
			log := short.log
			require.Fail(t, w.breach.class+": "+w.breach.text, "seed %d, %d faults of %d:\n%s", seed, len(short.fired), len(w.fired), strings.Join(log[max(0, len(log)-80):], "\n"))
		}
	}
	t.Logf("%d events, %d grants", events, answers)
	assert.Greater(t, answers, int(seeds)*10, "the requests get nothing")
}

// Each planted bug breaks a promise within a few seeds.
func TestPlantedBugsOfTheFleetAreFound(t *testing.T) {
	for _, planted := range []struct {
		name    string
		m       mutation
		first   uint64 // seed of the search, near the first that finds it
		classes []string
	}{
		{"the end of a lease is not checked", skipExpiry, 1, []string{"left"}},
		{"the number of a snapshot is ignored", skipFences, 49, []string{"kept", "fence", "answers", "grant"}},
		{"a compare is left out", skipCompares, 375, []string{"promised", "bypass"}},
		{"an owner does not release", skipRelease, 1, []string{"kept", "memory", "left"}},
		{"a grant is carried out twice", commitDoubles, 26, []string{"promised", "left", "grant", "answers"}},
		{"the devices are not compared", skipOffer, 73, []string{"promised", "left"}},
		{"a request is answered twice", answerDoubles, 1, []string{"answers"}},
		{"books of some keys count as all", skipKeys, 1, []string{"promised", "left", "grant"}},
	} {
		t.Run(planted.name, func(t *testing.T) {
			t.Parallel()
			for seed := planted.first; ; seed++ {
				require.Less(t, seed, planted.first+200, "no seed finds it")
				w := newWorld(seed, planted.m)
				w.play(4000)
				if w.breach == nil {
					continue
				}
				assert.Contains(t, planted.classes, w.breach.class, w.breach.text)
				t.Logf("seed %d: %s: %s", seed, w.breach.class, w.breach.text)
				return
			}
		})
	}
}
