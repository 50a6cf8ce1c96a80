package tune

import (
	"cmp"
	"slices"
	"time"
)

// MarginPercent is by how much of the reference's time a variant must be faster: less is noise from run to run.
const MarginPercent = 2

// Rank orders the rows of variants that are to be taken before the reference, the best first. It is empty where the reference is the best one, or
// was not measured.
func Rank(rows []Row) []Row {
	at := slices.IndexFunc(rows, func(r Row) bool { return r.Reference })
	if at < 0 || !rows[at].timed() {
		return nil
	}
	reference := rows[at]
	var best []Row
	for _, r := range rows {
		if r.timed() && !r.Reference && r.beats(reference) {
			best = append(best, r)
		}
	}
	slices.SortFunc(best, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Median, b.Median), cmp.Compare(a.Variant, b.Variant)) })
	return best
}

func (r Row) timed() bool { return r.State == Verified && r.Rounds > 0 && r.Median > 0 }

// beats reports whether a variant is faster than the reference beyond noise: by the margin, and so that the middle halves of the times
// lie apart.
func (r Row) beats(reference Row) bool {
	gain := reference.Median - r.Median
	return gain > reference.Median*MarginPercent/100 && gain > (r.Spread+reference.Spread)/2
}

// middle is the median of times, and the range of their middle half.
func middle(times []time.Duration) (median, spread time.Duration) {
	if len(times) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(times))
	at := func(quarter int) time.Duration { return sorted[(len(sorted)-1)*quarter/4] }
	return at(2), at(3) - at(1)
}
