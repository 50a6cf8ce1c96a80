package cuda

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// plainReuse is the reference: it keeps all events, and for each stream the set of those before its position.
type plainReuse struct {
	events []memorySpan // of the uses
	known  []map[int]bool
}

func (p *plainReuse) add() { p.known = append(p.known, map[int]bool{}) }

func (p *plainReuse) wait(stream, behind int) {
	for e := range p.known[behind] {
		p.known[stream][e] = true
	}
}

func (p *plainReuse) use(stream int, m memorySpan) {
	p.events = append(p.events, m)
	p.known[stream][len(p.events)-1] = true
}

func (p *plainReuse) free(stream int, m memorySpan) bool {
	for i, e := range p.events {
		if shareByte(e, m) && !p.known[stream][i] {
			return false
		}
	}
	return true
}

// shareByte looks at each byte.
func shareByte(a, b memorySpan) bool {
	for p := a.first; p < a.end; p++ {
		if b.first <= p && p < b.end {
			return true
		}
	}
	return false
}

// usesOfBytes returns the uses of each byte that has any.
func (r *reuse) usesOfBytes() map[cudadrv.Ptr][]memoryUse {
	all := map[cudadrv.Ptr][]memoryUse{}
	for _, u := range r.uses {
		for p := u.memory.first; p < u.memory.end; p++ {
			all[p] = append(all[p], memoryUse{memorySpan{p, p + 1}, u.by, u.count})
		}
	}
	return all
}

// A stream may reuse memory exactly after every use of it. Taking memory that is not free may not occur: takes happen where
// both agree. A take replaces the uses of its bytes and no others, and each further use of the same bytes replaces the stream's last.
func TestReuseIsThatOfAllUses(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		r, want := &reuse{}, &plainReuse{}
		span := func() memorySpan {
			first := cudadrv.Ptr(random.IntN(12))
			return memorySpan{first, first + 1 + cudadrv.Ptr(random.IntN(5))}
		}
		taken := 0
		for range 120 {
			switch n := random.IntN(10); {
			case len(r.positions) == 0 || n == 0 && len(r.positions) < 4:
				if random.IntN(3) == 0 { // a stream that does not join after all
					r.add()
					r.remove()
				}
				r.add()
				want.add()
				for _, p := range r.positions {
					require.Len(t, p, len(want.known))
				}
				require.Len(t, r.positions, len(want.known))
			case n < 4:
				a, b := random.IntN(len(r.positions)), random.IntN(len(r.positions))
				r.wait(a, b)
				want.wait(a, b)
			case n < 6:
				s, m := random.IntN(len(r.positions)), span()
				before := len(r.uses)
				known := slices.ContainsFunc(r.uses, func(u memoryUse) bool { return u.by == s && u.memory == m })
				r.use(s, m)
				want.use(s, m)
				if !known {
					before++
				}
				require.Len(t, r.uses, before, "seed %d, stream %d, %v", seed, s, m)
			default:
				s, m := random.IntN(len(r.positions)), span()
				free := want.free(s, m)
				require.Equal(t, free, r.free(s, m), "seed %d, stream %d, %v", seed, s, m)
				if free {
					taken++
					of := r.usesOfBytes()
					count := r.take(s, m)
					want.use(s, m)
					for p := m.first; p < m.end; p++ {
						of[p] = []memoryUse{{memorySpan{p, p + 1}, s, count}}
					}
					require.Equal(t, of, r.usesOfBytes(), "seed %d, stream %d takes %v", seed, s, m)
				}
			}
		}
		require.Positive(t, taken, "seed %d", seed)
	}
}

// A take stands for the uses before it, of which none is kept.
func TestReuseKeepsNoUsesBeforeATake(t *testing.T) {
	r := &reuse{}
	r.add()
	r.add()
	m := memorySpan{100, 200}
	for range 50 {
		require.True(t, r.free(0, m))
		r.take(0, m)
		r.wait(1, 0)
		r.use(1, m)
		assert.False(t, r.free(0, m))
		r.wait(0, 1)
	}
	assert.Len(t, r.uses, 2)
	r.take(0, memorySpan{120, 130})
	assert.Len(t, r.uses, 5, "the rest on both sides stays")
}
