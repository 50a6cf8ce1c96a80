package analysis

import (
	"cmp"
	"math/bits"
	"slices"
)

// Sizes are the lengths that were asked for.
type Sizes struct {
	DistinctCount int `json:"distinct"`
	// Buckets hold the sizes from a power of two on up to the next; those without any are absent.
	Buckets []Bucket `json:"buckets"`
	// ByBytes and ByCount are the sizes that make up most bytes, and most allocations, the most first.
	ByBytes []Size `json:"by_bytes"`
	ByCount []Size `json:"by_count"`
}

// Bucket is a range of sizes.
type Bucket struct {
	FromBytes int64 `json:"from_bytes"` // a power of two; up to twice as much, without that
	Share
}

// Size is one length.
type Size struct {
	EachBytes int64 `json:"each_bytes"`
	Share
}

func sizesOf(all []life, allocatedBytes int64) Sizes {
	var buckets [64]Share
	bySize := map[int64]*Share{}
	for i := range buckets {
		buckets[i] = of(len(all), allocatedBytes)
	}
	for i := range all {
		b := all[i].bytes
		buckets[bits.Len64(uint64(b))-1].add(1, b) //nolint:gosec // at least 1
		share := bySize[b]
		if share == nil {
			empty := of(len(all), allocatedBytes)
			share = &empty
			bySize[b] = share
		}
		share.add(1, b)
	}
	s := Sizes{DistinctCount: len(bySize)}
	for i := range buckets {
		if buckets[i].Count > 0 {
			s.Buckets = append(s.Buckets, Bucket{FromBytes: 1 << i, Share: buckets[i]})
		}
	}
	sizes := make([]Size, 0, len(bySize))
	for bytes, share := range bySize {
		sizes = append(sizes, Size{bytes, *share})
	}
	slices.SortFunc(sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(b.EachBytes, a.EachBytes))
	})
	s.ByBytes = slices.Clone(sizes[:min(dominantCount, len(sizes))])
	slices.SortFunc(sizes, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(b.EachBytes, a.EachBytes))
	})
	s.ByCount = sizes[:min(dominantCount, len(sizes))]
	return s
}
