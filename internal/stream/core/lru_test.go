package core

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/magazine"
)

// In any order of uses and removals the list has the magazines that were used and not removed, linked in both directions in the order of
// their last uses.
func TestTheListIsInTheOrderOfUses(t *testing.T) {
	t.Parallel()
	draw := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // reproducible is the point
	all := make([]magazine.Exact, 5)
	for range 20 {
		var l lru
		var want []*magazine.Exact // the oldest first
		for range 60 {
			m := &all[draw.IntN(len(all))]
			want = slices.DeleteFunc(want, func(other *magazine.Exact) bool { return other == m })
			if draw.IntN(3) > 0 {
				l.touch(m)
				want = append(want, m)
			} else {
				l.remove(m)
			}
			var newer, older []*magazine.Exact
			for at := l.oldest; at != nil && len(newer) <= len(want); at = at.Newer {
				newer = append(newer, at)
			}
			for at := l.newest; at != nil && len(older) <= len(want); at = at.Older {
				older = append(older, at)
			}
			slices.Reverse(older)
			require.True(t, slices.Equal(want, newer))
			require.True(t, slices.Equal(want, older))
			for i := range all {
				require.Equal(t, slices.Contains(want, &all[i]), l.has(&all[i]))
			}
		}
		for len(want) > 0 {
			l.remove(want[0])
			want = want[1:]
		}
		require.Zero(t, l)
	}
}
