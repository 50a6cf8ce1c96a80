package analysis

import "slices"

// Share is some of the allocations, with their part of all.
type Share struct {
	Count      int     `json:"count"`
	Bytes      int64   `json:"bytes"`
	OfCount    float64 `json:"of_count"` // from 0 to 1
	OfBytes    float64 `json:"of_bytes"`
	totalCount int
	totalBytes int64
}

// of returns a share of so much.
func of(totalCount int, totalBytes int64) Share {
	return Share{totalCount: totalCount, totalBytes: totalBytes}
}

func (s *Share) add(count int, bytes int64) {
	s.Count += count
	s.Bytes = addUpTo(s.Bytes, bytes)
	s.OfCount = ratio(float64(s.Count), float64(s.totalCount))
	s.OfBytes = ratio(float64(s.Bytes), float64(s.totalBytes))
}

// ratio returns 0 where there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// addUpTo returns the sum, or the largest number.
func addUpTo(a, b int64) int64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return maxBytes
}

const maxBytes = 1<<63 - 1

// median returns the middle value, the lower one of two, which sorts them; 0 of none.
func median(values []int) int {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
