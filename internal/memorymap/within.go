package memorymap

// Within adds a run that was lent to a stream: the ranges that the stream has reported, and the rest of the
// run as lent. The runs of a stream rise, and so do its reported ranges; it returns those for the next run.
func Within(run Range, reported []Range, add func(Range)) (left []Range) {
	at, end := run.Start, run.End()
	for len(reported) > 0 && reported[0].End() <= at {
		reported = reported[1:]
	}
	for ; len(reported) > 0 && reported[0].Start < end; reported = reported[1:] {
		r := &reported[0]
		if r.Start > at {
			add(run.part(at, r.Start))
		}
		add(r.within(run))
		if at = r.End(); at > end { // the rest is part of the next run, if that is the stream's, too
			return reported
		}
	}
	if at < end {
		add(run.part(at, end))
	}
	return reported
}

// part returns the run between two addresses.
func (r *Range) part(from, to int64) Range {
	p := *r
	p.Start, p.Bytes = from, to-from
	return p
}

// within returns the part of a reported range in a run. The positions of the states in a mixed range are
// unknown: one that extends beyond the run counts as lent within it.
func (r *Range) within(run Range) Range {
	p := r.part(max(r.Start, run.Start), min(r.End(), run.End()))
	p.Asleep = run.Asleep
	if r.Start < run.Start {
		p.Buffers = 0 // counted in the previous run
	}
	switch {
	case r.State != Mixed:
	case p.Bytes < r.Bytes:
		p.State, p.Sums = run.State, nil
	case run.Asleep:
		sums := *r.Sums
		sums.AsleepBytes = p.Bytes
		p.Asleep, p.Sums = false, &sums
	}
	return p
}
