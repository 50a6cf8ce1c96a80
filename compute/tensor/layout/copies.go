package layout

import (
	"cmp"
	"iter"
	"slices"
)

// Rows is a copy of so many rows of so many neighbouring elements. Places and pitches are in elements; a pitch is the distance
// from the start of one row to the start of the next.
type Rows struct {
	Dst, Src           int
	Width, Count       int
	DstPitch, SrcPitch int
	Again              bool // the source is in the destination's storage: elements that a copy before this one has written
}

// Copies returns the row copies that copy the elements of one layout to another one of the same shape, in an order in which
// they can be made. The destination must not overlap itself, and the storages are two, or the layouts do not overlap. No pitch
// is above the limit. A dimension that the source repeats is copied once, and then from the destination, twice as much each
// time.
//
// The number of copies is the product of the lengths that neither rows nor their elements cover: one for a
// matrix within a larger one, one for each row of a matrix that is transposed.
func Copies(dst, src Layout, maxPitch int) iter.Seq[Rows] {
	return func(yield func(Rows) bool) {
		if SameShape(dst, src) && dst.Len() > 0 {
			p := plan{maxPitch: maxPitch, yield: yield}
			p.copy(dst, src, false)
		}
	}
}

// plan makes copies until yield has enough of them.
type plan struct {
	maxPitch int
	yield    func(Rows) bool
}

func (p *plan) copy(dst, src Layout, again bool) bool {
	both := ordered(dst, src)
	dst, src = both[0], both[1]
	for d := range dst.rank {
		if src.strides[d] == 0 {
			return p.repeat(dst, src, d, again)
		}
	}
	r := Rows{Dst: dst.offset, Src: src.offset, Width: 1, Count: 1, Again: again}
	last := dst.rank - 1
	if last >= 0 && dst.strides[last] == 1 && src.strides[last] == 1 {
		r.Width = dst.shape[last]
		last--
	}
	rows := -1 // the dimension whose elements are the rows of a copy
	for d := range last + 1 {
		fits := min(dst.strides[d], src.strides[d]) >= r.Width && max(dst.strides[d], src.strides[d]) <= p.maxPitch
		if fits && (rows < 0 || dst.shape[d] > dst.shape[rows]) {
			rows = d
		}
	}
	if rows >= 0 {
		r.Count, r.DstPitch, r.SrcPitch = dst.shape[rows], dst.strides[rows], src.strides[rows]
	}
	return p.each(&dst, &src, 0, last, rows, r)
}

// each goes over the dimensions that are neither the rows of a copy nor their elements.
func (p *plan) each(dst, src *Layout, dim, last, rows int, r Rows) bool {
	if dim == rows {
		dim++
	}
	if dim > last {
		return p.yield(r)
	}
	for range dst.shape[dim] {
		if !p.each(dst, src, dim+1, last, rows, r) {
			return false
		}
		r.Dst += dst.strides[dim]
		r.Src += src.strides[dim]
	}
	return true
}

// repeat copies one index of a dimension that the source repeats, and the others from there.
func (p *plan) repeat(dst, src Layout, dim int, again bool) bool {
	n := dst.shape[dim]
	one := dst.resized(dim, 1)
	if !p.copy(one, src.resized(dim, 1), again) {
		return false
	}
	for done := 1; done < n; {
		more := min(done, n-done)
		to := dst.resized(dim, more)
		to.offset += done * dst.strides[dim]
		if !p.copy(to, dst.resized(dim, more), true) {
			return false
		}
		done += more
	}
	return true
}

// ordered returns the layouts with their dimensions in the order of the destination's strides, which are made
// positive, and merged.
func ordered(dst, src Layout) [2]Layout {
	for d := range dst.rank {
		if dst.strides[d] < 0 {
			dst, src = dst.reversed(d), src.reversed(d)
		}
	}
	var dims [MaxRank]int
	for d := range dst.rank {
		dims[d] = d
	}
	slices.SortStableFunc(dims[:dst.rank], func(a, b int) int { return cmp.Compare(dst.strides[b], dst.strides[a]) })
	to := [2]Layout{dst, src}
	for i, d := range dims[:dst.rank] {
		to[0].shape[i], to[0].strides[i] = dst.shape[d], dst.strides[d]
		to[1].shape[i], to[1].strides[i] = src.shape[d], src.strides[d]
	}
	coalesce(to[:])
	return to
}

// reversed goes over a dimension from its other end.
func (l Layout) reversed(dim int) Layout {
	l.offset += max(l.shape[dim]-1, 0) * l.strides[dim]
	l.strides[dim] = -l.strides[dim]
	return l
}
