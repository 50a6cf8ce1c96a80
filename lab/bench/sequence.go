package bench

import (
	"math"
	"math/rand/v2"
)

// sequenceLength is how many steps go by until a sequence repeats: longer than any allocator
// remembers. Not longer: it is read from memory on the way, and ten bytes a step are still streamed.
const sequenceLength = 1 << 20

// sequence is a fixed pseudo-random series of sizes and victims, made before the clock runs.
type sequence struct {
	sizes   []int64
	victims []uint16
	at      int
}

// next returns the next size, and which of the live buffers makes room for it.
func (s *sequence) next() (sizeBytes int64, victim uint16) {
	i := s.at & (sequenceLength - 1)
	s.at++
	return s.sizes[i], s.victims[i]
}

// newSequence draws sizes by draw and victims below live, from a fixed seed.
func newSequence(live int, draw func(r *rand.Rand) int64) *sequence {
	r := rand.New(rand.NewPCG(1, uint64(live)))
	s := &sequence{sizes: make([]int64, sequenceLength), victims: make([]uint16, sequenceLength)}
	for i := range s.sizes {
		s.sizes[i] = draw(r)
		s.victims[i] = uint16(r.IntN(live))
	}
	return s
}

// logUniform draws sizes whose logarithm is uniform between two sizes: as many between 1 and 2 MiB
// as between 32 and 64 MiB.
func logUniform(leastBytes, mostBytes int64) func(r *rand.Rand) int64 {
	low, high := math.Log(float64(leastBytes)), math.Log(float64(mostBytes))
	return func(r *rand.Rand) int64 {
		return int64(math.Exp(low + r.Float64()*(high-low)))
	}
}
