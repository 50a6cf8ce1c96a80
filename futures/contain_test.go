package futures

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recovered"
)

// ways in which a foreign function does not return.
func waysNotToReturn() map[string]func() {
	return map[string]func(){
		"panics":         func() { panic("foreign") },
		"ends goroutine": func() { runtime.Goexit() },
	}
}

// A panic of the producer's function hurts neither the canceling goroutine nor any that waits.
func TestAPanicInOnCancelIsSwallowed(t *testing.T) {
	p := NewPromise[int](func() { panic("foreign") })
	require.True(t, p.Future().Cancel())
	_, err := p.Future().Await(t.Context())
	require.ErrorIs(t, err, ErrCanceled)
}

// One part of All, or of First, whose OnCancel does not return keeps no other from being canceled,
// also on a goroutine of its own.
func TestPartsAreCanceledWhateverTheirProducersDo(t *testing.T) {
	for name, misbehave := range waysNotToReturn() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fails, bad, good := new(Promise[int]), NewPromise[int](misbehave), new(Promise[int])
				All(func(int) { t.Error("nothing to release") }, fails.Future(), bad.Future(), good.Future())
				fails.Complete(0, errTest)
				synctest.Wait()
				assert.False(t, bad.Pending())
				assert.False(t, good.Pending(), "the part behind it")
			})
			synctest.Test(t, func(t *testing.T) {
				wins, bad, good := new(Promise[int]), NewPromise[int](misbehave), new(Promise[int])
				First(func(int) { t.Error("nothing to release") }, wins.Future(), bad.Future(), good.Future())
				wins.Complete(1, nil)
				synctest.Wait()
				assert.False(t, bad.Pending())
				assert.False(t, good.Pending(), "the part behind it")
			})
		})
	}
}

// A release that does not return for one value still gets the others.
func TestEveryValueIsReleasedWhateverReleaseDoes(t *testing.T) {
	for name, misbehave := range waysNotToReturn() {
		for _, late := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var books sync.Mutex
					var released []int
					p := new(Promise[int])
					parts := []Future[int]{Done(1), Done(2), p.Future(), Done(4)}
					if !late {
						p.Complete(0, errTest)
					}
					go All(func(v int) {
						books.Lock()
						released = append(released, v)
						books.Unlock()
						misbehave()
					}, parts...)
					synctest.Wait()
					if late {
						assert.Empty(t, released)
						p.Complete(0, errTest)
						synctest.Wait()
					}
					slices.Sort(released)
					assert.Equal(t, []int{1, 2, 4}, released)
				})
			})
		}
	}
}

// A race whose loser's release panics has its winner, and cancels the parts that are still pending.
func TestARaceIsWonWhateverReleaseDoes(t *testing.T) {
	var released []int
	pending := new(Promise[int])
	race := First(func(v int) { released = append(released, v); panic("foreign") }, Done(1), pending.Future(), Done(3), Done(4))
	v, completed, err := race.Poll()
	require.NoError(t, err)
	assert.True(t, completed)
	assert.Equal(t, 1, v)
	assert.Equal(t, []int{3, 4}, released)
	assert.False(t, pending.Pending())
}

// A panic in a callback does not hurt other callbacks and waits of the same promise.
func TestAPanicHurtsNobodyElse(t *testing.T) {
	var p Promise[int]
	bad := Then(p.Future(), func(int) (int, error) { panic("foreign") })
	good := Then(p.Future(), double)
	behind := Then(bad, double)
	together := All(nil, bad, good)
	first := First(nil, bad, good)
	require.True(t, p.Complete(4, nil))

	v, err := good.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 8, v)
	for _, f := range []Future[int]{bad, behind} {
		_, err = f.Await(t.Context())
		var panicked *PanicError
		require.ErrorAs(t, err, &panicked)
		assert.Equal(t, "foreign", panicked.Value)
		assert.Contains(t, string(panicked.Stack), "contain_test.go")
	}
	_, err = together.Await(t.Context())
	require.ErrorAs(t, err, new(*PanicError))
	v, err = first.Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 8, v)
	v, err = p.Future().Await(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 4, v)
}

// A panic that ends here is reported with its value, and the end of a goroutine with a reason.
func TestWhatIsReportedOfAForeignFunction(t *testing.T) {
	for name, want := range map[string]any{"panics": "foreign", "ends goroutine": errExit} {
		var reported []any
		recovered.Watch(func(p recovered.Panic) { reported = append(reported, p.Value) })
		var caller sync.WaitGroup
		caller.Go(func() { containPanic(waysNotToReturn()[name]) })
		caller.Wait()
		recovered.Watch(func(recovered.Panic) {})
		assert.Equal(t, []any{want}, reported, name)
	}
}
