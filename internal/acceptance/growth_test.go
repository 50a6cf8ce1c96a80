//go:build unix

package acceptance_test

import (
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// growthRounds is how many objects a growth test opens and closes. The short form finds growth without the race detector.
func growthRounds() int {
	if raceDetector && testing.Short() {
		return 1000
	}
	return 10000
}

// Of the Go heap after the last round and after a tenth of them.
const (
	// heapSlack is for memory that the runtime keeps: 50 bytes a round would show.
	heapSlack = 512 << 10
	// actorSlack is for streams, whose actors have names: the framework keeps these in 32,768 maps, each of which takes 200
	// bytes at its first name and gives them back never.
	actorSlack = 3 << 20
)

// holdsFlat runs step growthRounds() times. From a tenth of them on the Go heap may grow by no more than that many bytes, the
// goroutines and the processor time of a step not at all. It runs in a bubble, so that the ticker runs between the steps.
func holdsFlat(t *testing.T, slackBytes int64, step func(i int)) {
	t.Helper()
	var heapBytes int64
	var goroutines int
	var took []time.Duration // of each hundred steps
	rounds := growthRounds()
	for i := range rounds {
		if i == rounds/10 {
			heapBytes, goroutines = settled()
		}
		if i%100 == 0 {
			time.Sleep(300 * time.Millisecond) //nolint:forbidigo // time of the bubble
			took = append(took, -processorTime(t))
		}
		step(i)
		if i%100 == 99 {
			took[len(took)-1] += processorTime(t)
		}
	}
	heapAfter, goroutinesAfter := settled()
	assert.Less(t, heapAfter-heapBytes, slackBytes, "the Go heap grew by %d bytes a step", (heapAfter-heapBytes)/int64(rounds*9/10))
	assert.LessOrEqual(t, goroutinesAfter, goroutines)
	if len(took) < 100 {
		return // medians of few vary
	}
	first, last := median(took[len(took)/10:len(took)/5]), median(took[len(took)*9/10:])
	assert.Less(t, last, 3*first, "the processor time of a hundred steps")
}

// settled reads the Go heap and the number of goroutines once nothing is in progress.
func settled() (heapBytes int64, goroutines int) {
	time.Sleep(3 * time.Second) //nolint:forbidigo // time of the bubble
	synctest.Wait()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), runtime.NumGoroutine()
}

// processorTime returns the process's CPU time: a bubble has no other real clock, and other processes do not count.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Streams that used long-lived buffers leave nothing after their Close, however they used them.
func TestClosedStreamsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
		home := h.stream()
		ended, open, recorded, moved := must(t, home, mib), must(t, home, mib), must(t, home, mib), must(t, home, mib)
		holdsFlat(t, actorSlack, func(i int) {
			s, err := h.NewStream()
			require.NoError(t, err)
			use, err := ended.Use(s)
			require.NoError(t, err)
			require.NoError(t, use.Done())
			_, err = open.Use(s)
			require.NoError(t, err)
			require.NoError(t, recorded.RecordStream(s))
			if i%250 == 0 { // a handle moves 255 times at most
				freeAll(t, moved)
				moved = must(t, home, mib)
			}
			moved, err = moved.Transfer(s)
			require.NoError(t, err)
			freeAll(t, must(t, s, mib))
			require.NoError(t, s.Close())
		})
		freeAll(t, ended, open, recorded, moved)
		h.addsUp()
	})
}

// So do streams that have no number of their own, since 63 others are open.
func TestClosedStreamsWithoutNumbersLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
		home := h.stream()
		for range 63 {
			h.stream()
		}
		b := must(t, home, mib)
		holdsFlat(t, actorSlack, func(int) {
			s, err := h.NewStream()
			require.NoError(t, err)
			require.NoError(t, b.RecordStream(s))
			require.NoError(t, s.Close())
		})
		freeAll(t, b)
		h.addsUp()
	})
}
