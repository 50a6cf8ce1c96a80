package futures

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var errTest = errors.New("no memory")

type block struct{ slot, generation, bytes uint64 }

func TestAFutureOfThreeWordsHasFour(t *testing.T) {
	assert.Equal(t, 4*unsafe.Sizeof(uintptr(0)), unsafe.Sizeof(Future[block]{}))
}

func TestDone(t *testing.T) {
	f := Done(7)
	assert.True(t, f.Completed())
	v, completed, err := f.Poll()
	assert.Equal(t, 7, v)
	assert.True(t, completed)
	require.NoError(t, err)
	<-f.Done()
	assert.False(t, f.Cancel(), "an answer that is there cannot be canceled")

	over, cancel := context.WithCancel(t.Context())
	cancel()
	v, err = f.Await(over)
	require.NoError(t, err, "an answer that is there does not ask the context")
	assert.Equal(t, 7, v)
}

func TestFailed(t *testing.T) {
	f := Failed[int](errTest)
	assert.True(t, f.Completed())
	<-f.Done()
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, errTest)
	_, completed, err := f.Poll()
	assert.True(t, completed)
	require.ErrorIs(t, err, errTest)
	assert.False(t, f.Cancel())
}

func TestPendingThenComplete(t *testing.T) {
	var p Promise[int]
	f := p.Future()
	assert.False(t, f.Completed())
	assert.True(t, p.Pending())
	_, completed, err := f.Poll()
	assert.False(t, completed)
	require.NoError(t, err)
	require.True(t, p.Complete(3, nil))
	assert.False(t, p.Pending())
	require.False(t, p.Complete(4, nil))
	require.False(t, p.Cancel(nil))
	v, err := f.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, v)
	<-f.Done()
}

// Property 4 of the package comment.
func TestTheEndOfAContextEndsOnlyThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Promise[int]
		f := p.Future()
		patient := make(chan int, 1)
		go func() {
			v, _ := f.Await(context.Background())
			patient <- v
		}()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.Await(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.True(t, p.Pending())
		require.True(t, p.Complete(5, nil))
		assert.Equal(t, 5, <-patient)
		v, err := f.Await(ctx)
		require.NoError(t, err)
		assert.Equal(t, 5, v)
	})
}

func TestManyWaitersAllWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Promise[int]
		const waiterCount = 100
		values := make(chan int, waiterCount)
		for range waiterCount {
			go func() {
				v, _ := p.Future().Await(t.Context())
				values <- v
			}()
		}
		synctest.Wait()
		p.Complete(9, nil)
		for range waiterCount {
			assert.Equal(t, 9, <-values)
		}
	})
}

func TestWaitsThatAreGivenUpLeaveNothingBehind(t *testing.T) {
	var p Promise[int]
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Future().Await(over)
	require.ErrorIs(t, err, context.Canceled)
	allocs := testing.AllocsPerRun(100, func() { _, _ = p.Future().Await(over) })
	assert.Zero(t, allocs)
	assert.Nil(t, p.observers.Load())
}

func TestCancel(t *testing.T) {
	told := 0
	p := NewPromise[int](func() { told++ })
	f := p.Future()
	require.True(t, f.Cancel())
	require.False(t, f.Cancel())
	assert.Equal(t, 1, told)
	assert.False(t, p.Complete(1, nil), "the producer keeps its value")
	_, err := f.Await(t.Context())
	require.ErrorIs(t, err, ErrCanceled)
	require.ErrorIs(t, err, context.Canceled)
}

func TestCancelWithACause(t *testing.T) {
	var p Promise[int]
	told := false
	p.OnCancel(func() { told = true })
	require.True(t, p.Cancel(errTest))
	assert.True(t, told)
	_, err := p.Future().Await(t.Context())
	require.ErrorIs(t, err, errTest)
}

func TestCancelAfterCompletionTellsNobody(t *testing.T) {
	p := NewPromise[int](func() { t.Error("told of a cancellation that lost") })
	require.True(t, p.Complete(1, nil))
	assert.False(t, p.Future().Cancel())
}

func TestTheFastPathAllocatesNothing(t *testing.T) {
	ctx := t.Context()
	failures := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		f := Done(block{1, 2, 3})
		v, err := f.Await(ctx)
		if err != nil || v.bytes != 3 || !f.Completed() {
			failures++
		}
	}))
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		f := Then(Done(block{1, 2, 3}), func(b block) (uint64, error) { return b.bytes, nil })
		if v, err := f.Await(ctx); err != nil || v != 3 {
			failures++
		}
	}))
	var p Promise[block]
	assert.Zero(t, testing.AllocsPerRun(1000, func() { p.Complete(block{}, nil) }), "a promise without waiters")
	assert.Zero(t, failures)
}

// A producer hears of each Await that waits, and may say more about the end of one; the answer and other waits are as they were.
func TestAProducerDescribesAnAwaitThatIsGivenUp(t *testing.T) {
	p := NewPromise[int](nil)
	var told []error
	p.OnAwait(func(gaveUp error) error {
		told = append(told, gaveUp)
		if gaveUp == nil {
			return nil
		}
		return fmt.Errorf("still asked for: %w", gaveUp)
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := p.Future().Await(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, err, "still asked for: context canceled")
	assert.Equal(t, []error{nil, context.Canceled}, told)

	_, err = Then(p.Future(), func(i int) (int, error) { return i, nil }).Await(ctx)
	assert.Equal(t, context.Canceled, err)
	require.True(t, p.Complete(7, nil))
	v, err := p.Future().Await(ctx)
	require.NoError(t, err)
	assert.Equal(t, 7, v)
	assert.Len(t, told, 2)
}
