package bench

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

const (
	// DefaultRepetitions is an odd number, so that the median is one of them. Fewer would let one bad
	// moment of the machine through; more only take time.
	DefaultRepetitions = 7
	// DefaultRepetitionTime is longer than a scheduler's time slice, so that every repetition sees the
	// same mixture, and short enough that the implementations take turns often.
	DefaultRepetitionTime = 20 * time.Millisecond
	// DefaultSamples puts fifty pairs above the 99.9th percentile.
	DefaultSamples = 50_000
)

// Options configures a run. NewDriver must be set; the rest has a useful zero value.
type Options struct {
	NewDriver      func() cudadrv.Driver // called once for each device that is opened
	Config         vram.Config           // of the devices; Driver is set by Run
	Scenarios      []string              // empty, or with "all": every one
	Impls          []string              // empty, or with "all": vram and mutex
	Repetitions    int                   // 0: DefaultRepetitions
	RepetitionTime time.Duration         // 0: DefaultRepetitionTime
	Samples        int                   // of a latency pass; 0: DefaultSamples
	// HoleCounts are the free ranges of the scenario holes. Empty: 1,000 and 1,000,000.
	HoleCounts []int
	// Begin and End, if set, are called right before and after the stretch of each repetition: a profile between them covers
	// the scenarios but not their setup.
	Begin, End func()

	measuring *bool // a repetition runs, not a warm-up; all copies share it
}

// Check says which of the options cannot be, before anything is opened. A missing driver is found by
// Run.
func (o *Options) Check() error {
	if o.Repetitions < 0 || o.RepetitionTime < 0 || o.Samples < 0 {
		return errors.New("bench: repetitions, their time and samples are 0 or more")
	}
	for _, impl := range o.Impls {
		if impl != "all" && impl != ImplVRAM && impl != ImplMutex {
			return fmt.Errorf("unknown implementation %q: want all, %s or %s", impl, ImplVRAM, ImplMutex)
		}
	}
	_, err := choose(o.Scenarios)
	return err
}

func (o *Options) complete() error {
	if o.NewDriver == nil {
		return errors.New("bench: no driver")
	}
	if err := o.Check(); err != nil {
		return err
	}
	o.measuring = new(bool)
	if o.Repetitions == 0 {
		o.Repetitions = DefaultRepetitions
	}
	if o.RepetitionTime == 0 {
		o.RepetitionTime = DefaultRepetitionTime
	}
	if o.Samples == 0 {
		o.Samples = DefaultSamples
	}
	if len(o.HoleCounts) == 0 {
		o.HoleCounts = []int{1_000, 1_000_000}
	}
	return nil
}

// wants reports whether rows of the implementation are asked for.
func (o *Options) wants(impl string) bool {
	return len(o.Impls) == 0 || slices.Contains(o.Impls, impl) || slices.Contains(o.Impls, "all")
}
