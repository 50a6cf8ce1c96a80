package simulation

import (
	"fmt"
	"strings"
)

// Options configure a run.
type Options struct {
	Seed  uint64
	Steps int

	mutation mutation
	replays  int // that shrinking may take; 0: replayLimit
}

// Run plays one run. Its error is a *BreachError: a promise was broken, and the history in it shows how. It waits until all is
// played, a second or so for a million steps, and some more to make the history of a failure short.
func Run(o Options) (Report, error) {
	w := newWorld(o.Seed, o.mutation)
	history := w.record(o.Steps)
	w.report.Digest, w.report.Steps = w.digest, uint64(len(history))
	if w.fault == nil {
		return w.report, nil
	}
	return w.report, shrink(o, w.fault, history)
}

// BreachError is a broken promise with the shortest history that was found for it.
type BreachError struct {
	Seed    uint64
	Steps   int    // that were to be played
	Step    int    // at which it broke in the run as it was drawn
	Class   string // equal for the same kind of breach
	Err     error  // in the short history
	Actions int    // of the short history
	Replays int    // that it took to find it
	Events  []string
}

// Error has the whole history, and the command that plays the run again.
func (f *BreachError) Error() string {
	return fmt.Sprintf("simulation: seed %d, step %d: %s: %v\nthe shortest history found, %d actions after %d replays:\n%s\nagain: make sim SEED=%d SEEDS=1 STEPS=%d",
		f.Seed, f.Step, f.Class, f.Err, f.Actions, f.Replays, strings.Join(f.Events, "\n"), f.Seed, f.Steps)
}

// Unwrap is the broken promise.
func (f *BreachError) Unwrap() error { return f.Err }
