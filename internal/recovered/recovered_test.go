package recovered_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recovered"
)

// A log counts each panic and tells of it once. Note does not tell, and a planted panic does not reach the watcher of the process.
func TestAPanicIsCountedAndTold(t *testing.T) {
	var watched, told []recovered.Panic
	recovered.Watch(func(p recovered.Panic) { watched = append(watched, p) })
	t.Cleanup(func() { recovered.Watch(func(recovered.Panic) {}) })
	var l recovered.Log
	before := recovered.UnplantedCount()
	one := recovered.Panic{Place: "turn", Value: "one"}
	l.Report(one)
	assert.EqualValues(t, 1, l.Count(), "without a function")
	l.Tell(func(p recovered.Panic) { told = append(told, p) })
	l.Report(one)
	l.Note(one)
	(*recovered.Log)(nil).Report(one)
	assert.EqualValues(t, 3, l.Count())
	assert.Equal(t, []recovered.Panic{one}, told)
	assert.Equal(t, []recovered.Panic{one, one, one, one}, watched)
	assert.EqualValues(t, 4, recovered.UnplantedCount()-before)
	assert.Equal(t, "turn: one", one.String())

	planted := recovered.Panic{Place: "turn", Value: fmt.Errorf("wrapped: %w", recovered.Planted("two"))}
	l.Report(planted)
	assert.EqualValues(t, 4, l.Count(), "a planted panic counts for its log")
	assert.Len(t, told, 2)
	assert.Len(t, watched, 4)
	assert.EqualValues(t, 4, recovered.UnplantedCount()-before)

	func() {
		defer func() { assert.Equal(t, "three", l.Here("defer", recover())) }()
		panic("three")
	}()
	require.Len(t, told, 3)
	assert.Equal(t, "three", told[2].Value)
	assert.Contains(t, string(told[2].Stack), "TestAPanicIsCountedAndTold")

	var ended sync.WaitGroup
	ended.Go(func() {
		defer func() { l.Here("defer", recover()) }()
		runtime.Goexit()
	})
	ended.Wait()
	require.Len(t, told, 4)
	assert.Equal(t, "defer: the function ended its goroutine", told[3].String())
}

// Only errors with the method are planted.
func TestIsPlanted(t *testing.T) {
	assert.True(t, recovered.IsPlanted(recovered.Planted("a")))
	assert.True(t, recovered.IsPlanted(errors.Join(errors.New("b"), recovered.Planted("a"))))
	for _, value := range []any{nil, "planted", 3, errors.New("planted: a")} {
		assert.False(t, recovered.IsPlanted(value), "%v", value)
	}
	assert.EqualError(t, recovered.Planted("a"), "planted: a")
}
