package simulation

// replayLimit bounds the search for a short history. Fewer leave histories that nobody reads; more take minutes.
const replayLimit = 4000

// shrink looks for a short history that breaks the same promise: it removes parts, first halves, then smaller ones, while the
// rest still breaks it (delta debugging).
func shrink(o Options, first *breach, history []action) *BreachError {
	f := &BreachError{Seed: o.Seed, Steps: o.Steps, Step: len(history), Class: first.class, Err: first.err}
	limit := o.replays
	if limit == 0 {
		limit = replayLimit
	}
	breaks := func(h []action) bool {
		f.Replays++
		w := newWorld(o.Seed, o.mutation)
		w.replay(h)
		return w.fault != nil && w.fault.class == first.class
	}
	if breaks(history) {
		goOn := func() bool { return f.Replays < limit }
		for before := len(history) + 1; len(history) < before && goOn(); {
			before = len(history)
			for _, parts := range []int{8, 64, before} { // coarse first: the rest is then cheap to search
				finest := max(len(history)/max(parts, 1), 1)
				history = straightened(history, finest, breaks, goOn)
				history = reduced(history, finest, breaks, goOn)
			}
		}
	}
	w := newWorld(o.Seed, o.mutation)
	w.verbose = true
	w.replay(history)
	if w.fault != nil {
		f.Err = w.fault.err
	}
	f.Actions, f.Events = len(history), w.events
	return f
}

// reduced removes actions, in parts of finest or more, until every part is needed or it takes too long.
func reduced(history []action, finest int, breaks func([]action) bool, goOn func() bool) []action {
	for chunk := max(len(history)/2, 1); goOn() && len(history) > 0; {
		removed := false
		for at := 0; at < len(history) && goOn(); {
			end := min(at+chunk, len(history))
			shorter := append(append([]action(nil), history[:at]...), history[end:]...)
			if breaks(shorter) {
				history, removed = shorter, true
			} else {
				at = end
			}
		}
		if chunk <= finest && !removed {
			break
		}
		if !removed || chunk > len(history) {
			chunk = max(chunk/2, finest)
		}
	}
	return history
}

// straight is how many places a task passes that nobody interrupts.
const straight = 255

// straightened lets tasks run as far as they can while the promise still breaks: later actions that resumed them are then
// useless. It tries parts of finest actions or more.
func straightened(history []action, finest int, breaks func([]action) bool, goOn func() bool) []action {
	for chunk := max(len(history), 1); goOn() && len(history) > 0; chunk /= 2 {
		for at := 0; at < len(history) && goOn(); at += chunk {
			end := min(at+chunk, len(history))
			other := append([]action(nil), history...)
			changed := false
			for i := at; i < end; i++ {
				changed = changed || other[i].passing != straight
				other[i].passing = straight
			}
			if changed && breaks(other) {
				history = other
			}
		}
		if chunk <= finest {
			break
		}
	}
	return history
}
