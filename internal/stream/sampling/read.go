package sampling

import (
	"strconv"

	"github.com/go-vram/vram/cudadrv/site"
)

// Totals are of allocations: Sampled as counted, and the others multiplied by their weights, as estimates of
// the totals of all allocations.
type Totals struct {
	Count        int64 `json:"count"`
	Bytes        int64 `json:"bytes"` // requested
	SampledCount int64 `json:"sampled_count"`
	SampledBytes int64 `json:"sampled_bytes"`
}

// Record sums the counts of the sites of a place.
type Record struct {
	Labels
	Stack     site.Stack // nil: of the places that are counted together
	Allocated Totals
	InUse     Totals // of those that were not freed
}

// Read lists the places in no order: sites whose call stacks differ only in the allocator's own calls are
// one. The record of all others is last, if it has any samples.
func (r *Register) Read() []Record {
	all := merged(read(r.tree.Load().all(nil)))
	if last := r.other.record(); last.Allocated.SampledCount > 0 {
		all = append(all, last)
	}
	return all
}

// merged sums the records of one place and the same labels. Names are looked up here rather than at each new
// site, since requests would wait for that.
func merged(all []Record) []Record {
	first := make(map[string]int, len(all)) // in all, by labels and frames
	var key []byte
	kept := all[:0]
	for i := range all {
		x := &all[i]
		key = x.appendKey(key[:0])
		at, found := first[string(key)]
		if !found {
			first[string(key)] = len(kept)
			kept = append(kept, *x)
			continue
		}
		kept[at].Allocated.add(&x.Allocated)
		kept[at].InUse.add(&x.InUse)
	}
	return kept
}

// appendKey appends the key of a record's place: the labels, and the shown frames. Calls without names are
// identified by their counters.
func (x *Record) appendKey(key []byte) []byte {
	key = strconv.AppendUint(key, uint64(x.Stream), 10)
	key = append(append(append(append(key, ' '), x.Tag...), 0), x.Tenant...)
	for _, f := range x.Stack.Frames() {
		if f.Function == "" {
			for _, counter := range x.Stack {
				key = strconv.AppendUint(append(key, 0), uint64(counter), 16)
			}
			continue
		}
		key = append(append(append(append(key, 0), f.Function...), 0), f.File...)
		key = strconv.AppendInt(append(key, ':'), int64(f.Line), 10)
	}
	return key
}

func (t *Totals) add(more *Totals) {
	t.Count += more.Count
	t.Bytes += more.Bytes
	t.SampledCount += more.SampledCount
	t.SampledBytes += more.SampledBytes
}

func read(sites []*Site) []Record {
	all := make([]Record, len(sites))
	for i, s := range sites {
		all[i] = s.record()
	}
	return all
}

// record reads frees first, so that the memory in use is never negative.
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
