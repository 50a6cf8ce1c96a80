package layout

import (
	"cmp"
	"math"
	"slices"
)

// Coalesce returns the layout with the fewest dimensions over the same places in the same order: it merges neighbouring ones
// where the strides allow it, and drops dimensions of length 1. Without elements it has one dimension of length 0.
func (l Layout) Coalesce() Layout {
	all := [1]Layout{l}
	coalesce(all[:])
	return all[0]
}

// coalesce merges dimensions of layouts of the same shape where the strides of all of them allow it, in place.
func coalesce(all []Layout) {
	first := &all[0]
	if first.Len() == 0 {
		for i := range all {
			all[i] = Layout{shape: [MaxRank]int{0}, strides: [MaxRank]int{1}, offset: all[i].offset, count: -1, rank: 1}
		}
		return
	}
	last := -1 // the last dimension that stays
	for d := range first.rank {
		n := first.shape[d]
		if n == 1 {
			continue
		}
		merges := last >= 0
		for i := range all {
			merges = merges && all[i].strides[last] == all[i].strides[d]*n
		}
		if !merges {
			last++
		}
		for i := range all {
			at := &all[i]
			if merges {
				at.shape[last] *= n
			} else {
				at.shape[last] = n
			}
			at.strides[last] = at.strides[d]
		}
	}
	for i := range all {
		at := &all[i]
		at.rank = last + 1
		clear(at.shape[at.rank:])
		clear(at.strides[at.rank:])
	}
}

// MayOverlap reports whether two indices may have the same place. false is certain. true is, too, for all
// layouts that views of a contiguous one have; for other strides it may be wrong.
func (l Layout) MayOverlap() bool {
	if l.Len() <= 1 {
		return false
	}
	type axis struct{ length, stride int }
	var axes [MaxRank]axis
	count := 0
	for i := range l.rank {
		if l.shape[i] > 1 {
			axes[count] = axis{l.shape[i], max(l.strides[i], -l.strides[i])}
			count++
		}
	}
	slices.SortFunc(axes[:count], func(a, b axis) int { return cmp.Compare(a.stride, b.stride) })
	reach := 0 // the largest distance of two elements that differ in the dimensions before
	for _, a := range axes[:count] {
		if a.stride <= reach {
			return true
		}
		reach += (a.length - 1) * a.stride
	}
	return false
}

// Meet reports whether the bounds of two layouts of one storage have a place in common. false is certain:
// they share no element.
func Meet(a, b Layout) bool {
	aFirst, aEnd := a.Bounds()
	bFirst, bEnd := b.Bounds()
	return a.Len() > 0 && b.Len() > 0 && aFirst < bEnd && bFirst < aEnd
}

// Fits32 reports whether each place fits in 31 bits, so that a kernel may compute indices in 32.
func (l Layout) Fits32() bool {
	first, end := l.Bounds()
	return first >= 0 && end <= math.MaxInt32 && l.count < math.MaxInt32
}
