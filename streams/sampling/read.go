package sampling

import "github.com/go-vram/vram/cudadrv/site"

// Totals are of allocations: Sampled as they were counted, and the others multiplied by their weights,
// which are estimates of the totals of all allocations.
type Totals struct {
	Count        int64
	Bytes        int64 // requested
	SampledCount int64
	SampledBytes int64
}

// Record is what a site has counted.
type Record struct {
	Labels
	Stack     site.Stack // nil: of the places that are counted together
	Allocated Totals
	InUse     Totals // of those that were not freed
}

// Read lists the sites in no order; the one of all others comes last, if it has any samples.
func (r *Register) Read() []Record {
	all := r.root.read(nil)
	if last := r.other.record(); last.Allocated.SampledCount > 0 {
		all = append(all, last)
	}
	return all
}

func (s *Site) read(all []Record) []Record {
	for i := range s.below {
		if below := s.below[i].Load(); below != nil {
			all = below.read(append(all, below.record()))
		}
	}
	return all
}

// record reads what was freed first: what is in use is never negative.
func (s *Site) record() Record {
	freed := s.sums(totalCount)
	allocated := s.sums(0)
	var inUse [totalCount]int64
	for i := range inUse {
		inUse[i] = allocated[i] - freed[i]
	}
	return Record{s.labels, s.stack, totalsOf(allocated), totalsOf(inUse)}
}

func (s *Site) sums(first int) (n [totalCount]int64) {
	for i := range n {
		n[i] = s.totals[first+i].Load()
	}
	return n
}

func totalsOf(n [totalCount]int64) Totals {
	return Totals{SampledCount: n[0], SampledBytes: n[1], Count: (n[2] + weightOne/2) / weightOne, Bytes: n[3]}
}
