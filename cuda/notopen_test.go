package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each method of a value that is nil or zero refuses the call.
func TestValuesThatAreNotOpenRefuse(t *testing.T) {
	eachcall.NotOpen(t, cuda.ErrNotOpen, nil,
		(*cuda.Context)(nil), new(cuda.Context), (*cuda.Event)(nil), new(cuda.Event), (*cuda.Function)(nil), new(cuda.Function),
		(*cuda.Module)(nil), new(cuda.Module), (*cuda.Graph)(nil), new(cuda.Graph), (*cuda.Pool)(nil), new(cuda.Pool),
		(*cuda.Profile)(nil), new(cuda.Profile), (*cuda.Queue)(nil), new(cuda.Queue))
}

// An event that is not open is refused as an argument, too, and the other one stays usable.
func TestEventsThatAreNotOpenAreNoArguments(t *testing.T) {
	r, c := newRig(t)
	e, err := c.Record()
	require.NoError(t, err)
	closed, err := c.Record()
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	for name, none := range map[string]*cuda.Event{"nil": nil, "zero": {}, "closed": closed} {
		_, err := e.Since(none)
		require.ErrorIs(t, err, cuda.ErrNotOpen, name)
		_, err = none.Since(e)
		require.ErrorIs(t, err, cuda.ErrNotOpen, name)
		require.ErrorIs(t, c.WaitEvent(none), cuda.ErrNotOpen, name)
	}
	r.sync(c)
	_, err = e.Since(e)
	require.NoError(t, err)
	require.NoError(t, e.Close())
}
