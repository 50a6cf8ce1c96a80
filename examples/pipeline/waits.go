package main

import (
	"context"
	"slices"
	"time"

	"github.com/go-vram/vram/futures"
)

// waits are the times that one goroutine has spent on futures.
type waits struct {
	took       []time.Duration
	readyCount int           // futures that were complete when they were awaited
	clockCost  time.Duration // of reading the clock once, subtracted
}

// await calls the future's Await and measures its time.
func await[T any](ctx context.Context, w *waits, f futures.Future[T]) (T, error) {
	if f.Completed() {
		w.readyCount++
	}
	start := time.Now()
	v, err := f.Await(ctx)
	w.took = append(w.took, max(0, time.Since(start)-w.clockCost))
	return v, err
}

// merged returns several goroutines' waits in ascending order. The goroutines must have ended.
func merged(all ...*waits) waits {
	var sum waits
	for _, w := range all {
		sum.took = append(sum.took, w.took...)
		sum.readyCount += w.readyCount
	}
	slices.Sort(sum.took)
	return sum
}

// longest returns the last of the sorted times; zero if there are none.
func (w waits) longest() time.Duration { return quantile(w.took, 1) }

// quantile returns the value below which that share of the sorted values lies; zero if there are none.
func quantile[T any](sorted []T, share float64) (value T) {
	if len(sorted) == 0 {
		return value
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
