package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/internal/stream/core"
)

// With Debug a tick finds books that do not balance, and quarantines the stream with that cause.
// Without it no tick checks.
func TestATickFindsBrokenBooks(t *testing.T) {
	recoveredtest.Expect(t, "its slot says 6145")
	for _, debug := range []bool{true, false} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		s.turn.debug = debug
		kept := must(t, s, 3*mib)
		require.NoError(t, control(s).Failure())
		leave := r.occupy(s)
		kept.slot.Units++ // in the turn
		leave()
		r.tick(s)
		if !debug {
			require.NoError(t, control(s).Failure())
			leave := r.occupy(s)
			kept.slot.Units--
			leave()
			require.NoError(t, kept.Free())
			continue
		}
		<-s.ref.Done()
		require.ErrorIs(t, control(s).Failure(), ErrQuarantined)
		_, err := s.Alloc(mib)
		require.ErrorIs(t, err, ErrQuarantined)
		kept.slot.Units-- // for the end of the test
	}
}

// A stream that was closed has not failed.
func TestAClosedStreamHasNotFailed(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, mib).Free())
	require.NoError(t, s.Close())
	r.until(control(s).Gone)
	require.NoError(t, control(s).Failure())
	require.ErrorIs(t, control(s).Reconfigure(t.Context(), core.Settings{}), ErrClosed)
}

// The used bytes can be read while no goroutine is in the turn, and the read never waits. The turn
// that has answered the request may not be over yet.
func TestUsedBytesWaitForNobody(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	read := func() (used int64) {
		r.until(func() (ok bool) {
			used, ok = control(s).UsedBytes()
			return ok
		})
		return used
	}
	b := must(t, s, 5*mib)
	assert.Equal(t, 5*mib, read())
	require.NoError(t, b.Free())
	leave := r.occupy(s)
	_, ok := control(s).UsedBytes()
	assert.False(t, ok)
	leave()
	assert.Zero(t, read())
}
