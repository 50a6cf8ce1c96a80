//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/eachcall"
)

func ruleFor(function string, number uint64) fault.Rule {
	return fault.Rule{Func: function, First: number, Result: cudadrv.Unknown}
}

// Each driver call of either side fails, once or for good: the caller is told, and after another Close nothing is left, of
// addresses, handles, events, goroutines and descriptors.
func TestNothingLeaksWhereACallFails(t *testing.T) {
	for _, failing := range []int{0, 1} {
		t.Run(fmt.Sprint("side ", failing), func(t *testing.T) {
			fakes := [2]*fake{newFake(t), newFake(t)}
			a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
			faults := [2]*side{a, b}[failing].faults
			bench := &eachcall.Bench{
				Faults: faults,
				Left: func() map[string]int {
					all := map[string]int{"goroutine": runtime.NumGoroutine()}
					for kind, count := range descriptors(t) {
						all["descriptor of "+kind] = count
					}
					for _, f := range fakes {
						all["memory handle"] += int(f.live(kindHandles))
						all["address range"] += int(f.live(kindReservations))
						all["mapping"] += int(f.live(kindMappings))
						all["event"] += int(f.live(kindEvents))
					}
					return all
				},
				NoPanics: true, // Export has a goroutine of the test's
			}
			bench.Run(t, func() (undo func() error, told error) {
				injected := faults.Injected()
				told = play(t, a, b, faults)
				if faults.Injected() > injected {
					require.Error(t, told)
				}
				return nil, told
			})
			assert.Greater(t, faults.Injected(), uint64(12))
		})
	}
}

func TestEachOperationIsTried(t *testing.T) {
	eachcall.Operations(t, "../../api/vram.txt", "share", "failure_test.go", nil)
}

// play shares memory, copies, publishes and awaits, and closes it: twice where that fails, the second time without faults. It returns
// the error.
func play(t *testing.T, a, b *side, faults *fault.Driver) (failed error) {
	t.Helper()
	const part = 64 << 10 // of the memory: hundreds of plays copy, and each page that is new costs the kernel microseconds
	m, err := New(a.c, bytes)
	if err != nil {
		return err
	}
	x, y := connection(t)
	exported := inBackground(func() error { return m.Export(x) })
	theirs, err := Import(b.c, y)
	failed = errors.Join(err, <-exported)
	if failed == nil {
		failed = errors.Join(m.CopyFrom(a.c, 0, cuda.Part(a.x, 0, part)), theirs.CopyTo(b.c, 0, cuda.Part(b.x, 0, part)))
	}
	if failed == nil {
		failed = errors.Join(m.Publish(a.c), theirs.Publish(b.c))
	}
	if failed == nil {
		failed = errors.Join(m.Await(t.Context(), a.c), theirs.Await(t.Context(), b.c))
	}
	for _, end := range []*Memory{theirs, m} {
		if end == nil {
			continue
		}
		if err := end.Close(); err != nil {
			failed = errors.Join(failed, err)
			faults.Clear()
			require.NoError(t, end.Close(), "%v", err)
		}
	}
	if m.Stats().Retried > 0 && failed == nil {
		failed = errRetried
	}
	return failed
}

// errRetried marks a Close that succeeded after a failure.
var errRetried = errors.New("retried")

// Memory that may be in use stays mapped: Close fails where the wait for a context fails, the peer is told the worst,
// and Close may be called again.
func TestCloseThatCannotWait(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	a.fill(m, 'w')
	require.NoError(t, a.faults.Add(ruleFor("cuStreamSynchronize", 1)))
	unmaps := a.faults.Calls("cuMemUnmap")
	require.ErrorIs(t, m.Close(), cudadrv.Unknown)
	assert.Equal(t, unmaps, a.faults.Calls("cuMemUnmap"))
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), ErrPeerDied)
	require.NoError(t, m.Close())
	assert.Equal(t, unmaps+1, a.faults.Calls("cuMemUnmap"))
}

// Memory whose Close has failed is closed to all calls, whether it is linked or not.
func TestCallsAfterACloseThatFailed(t *testing.T) {
	a, b := newPair(t)
	linked, _ := linkSides(t, a, b)
	for name, m := range map[string]*Memory{"linked": linked, "alone": a.make()} {
		a.fill(m, 'w')
		require.NoError(t, a.faults.Add(ruleFor("cuStreamSynchronize", 1)))
		require.ErrorIs(t, m.Close(), cudadrv.Unknown, name)
		a.faults.Clear()
		require.ErrorIs(t, m.Publish(a.c), ErrClosed, name)
		require.ErrorIs(t, m.Await(t.Context(), a.c), ErrClosed, name)
		require.ErrorIs(t, m.CopyFrom(a.c, 0, cuda.Whole(a.x)), ErrClosed, name)
		require.ErrorIs(t, m.CopyTo(a.c, 0, cuda.Whole(a.x)), ErrClosed, name)
		conn, _ := connection(t)
		require.ErrorIs(t, m.Export(conn), ErrClosed, name)
		assert.Zero(t, m.Ptr(), name)
		require.NoError(t, m.Close(), name)
	}
}

// A name of the peer's event that the driver keeps is counted, and destroyed by Close.
func TestARefusedNameOfAnEventIsCounted(t *testing.T) {
	fakes := [2]*fake{newFake(t), newFake(t)}
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	m, theirs := linkSides(t, a, b)
	events := fakes[1].live(kindEvents)
	require.NoError(t, b.faults.Add(ruleFor("cuEventDestroy", 1)))
	require.NoError(t, m.Close())
	b.faults.Clear()
	assert.Equal(t, Stats{Retried: 1}, theirs.Stats())
	assert.Zero(t, m.Stats())
	assert.Equal(t, events, fakes[1].live(kindEvents))
	require.NoError(t, theirs.Close())
	assert.Equal(t, events-2, fakes[1].live(kindEvents), "of each side one")
}

// A fence that cannot be ordered after the last one, of another context, is not made.
func TestAFenceThatCannotFollowTheLast(t *testing.T) {
	a, b := newPair(t)
	m, theirs := linkSides(t, a, b)
	other := a.context()
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, a.faults.Add(ruleFor("cuStreamWaitEvent", 1)))
	require.ErrorIs(t, m.Publish(other), cudadrv.Unknown)
	a.faults.Clear()
	assert.Equal(t, Stats{Published: 1}, m.Stats())
	require.NoError(t, m.Publish(other))
	for range 2 {
		require.NoError(t, theirs.Await(t.Context(), b.c))
	}
	require.NoError(t, other.Close())
	require.NoError(t, m.Close())
}

// Events of waits that the memory keeps no longer are destroyed. Where the driver refuses, the call says so, and a later one does it.
func TestManyWaitsAtATime(t *testing.T) {
	fakes := [2]*fake{newFake(t), newFake(t)}
	fakes[1].hold(1)
	a, b := newSide(t, fakes[0].driver()), newSide(t, fakes[1].driver())
	t.Cleanup(func() { fakes[1].hold(0) })
	mine, theirs := linkSides(t, a, b)
	before := fakes[1].live(kindEvents)
	for range spareWaits + 3 {
		require.NoError(t, mine.Publish(a.c))
		require.NoError(t, theirs.Await(t.Context(), b.c))
	}
	fakes[1].hold(0)
	require.NoError(t, b.c.Synchronize(t.Context()))
	require.NoError(t, mine.Publish(a.c))
	require.NoError(t, b.faults.Add(ruleFor("cuEventDestroy", 1)))
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), cudadrv.Unknown)
	b.faults.Clear()
	require.NoError(t, theirs.Await(t.Context(), b.c), "no fence was taken")
	assert.LessOrEqual(t, fakes[1].live(kindEvents)-before, int64(2*(spareWaits+2)))
	require.NoError(t, theirs.Close())
	require.NoError(t, mine.Close())
}
