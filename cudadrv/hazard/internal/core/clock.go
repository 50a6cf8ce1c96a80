package core

// Clock is a point in the order of everything: for each place in the clocks how much of its work comes before. The
// zero Clock is the beginning.
type Clock []uint64

// reaches reports whether work comes before the point.
func (c Clock) reaches(place int, count uint64) bool {
	return place < len(c) && c[place] >= count
}

// join moves the point after another one, too. It reports whether the point changed.
func (c *Clock) join(other Clock) (changed bool) {
	for len(*c) < len(other) {
		*c = append(*c, 0)
	}
	for i, count := range other {
		if (*c)[i] < count {
			(*c)[i] = count
			changed = true
		}
	}
	return changed
}

func (c Clock) copied() Clock { return append(Clock(nil), c...) }
