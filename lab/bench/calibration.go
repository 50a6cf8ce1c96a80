package bench

import (
	"sync/atomic"
	"time"
)

// calibrationPairs is the length of one look at the calibration: about a millisecond. Not shorter:
// an interrupt would show. Not longer: a look goes before every repetition.
const calibrationPairs = 100_000

// word has cache lines of its own.
type word struct {
	_    [128]byte
	mask atomic.Uint64
	_    [120]byte
}

// atomics does count pairs of an uncontended compare-and-swap, which takes a bit, and an atomic OR,
// which gives it back.
func (w *word) atomics(count int) {
	const bit = 1
	for range count {
		mask := w.mask.Load()
		w.mask.CompareAndSwap(mask, mask&^bit)
		w.mask.Or(bit)
	}
}

// calibrate returns the time in ns of one pair.
func calibrate(count int) float64 {
	w := new(word)
	start := time.Now()
	w.atomics(count)
	return float64(time.Since(start).Nanoseconds()) / float64(count)
}

// calibrationRow returns the median of all looks.
func (m *meter) calibrationRow() Row {
	if len(m.calibration) == 0 {
		m.calibration = append(m.calibration, calibrate(calibrationPairs))
	}
	w := new(word)
	nanos := make([]float64, m.options.Samples)
	for i := range nanos {
		start := time.Now()
		w.atomics(1)
		nanos[i] = max(0, float64(time.Since(start))-m.timerNanos)
	}
	return Row{
		Scenario: ScenarioCalibration, Impl: ImplAtomics, Count: 1, Goroutines: 1,
		NsPerOp:  quantile(m.calibration, 0.5),
		P50Nanos: quantile(nanos, 0.5), P99Nanos: quantile(nanos, 0.99), P999Nanos: quantile(nanos, 0.999),
	}
}
