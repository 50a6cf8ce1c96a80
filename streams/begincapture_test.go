package streams

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
)

// A capture that does not begin, for any reason, leaves no announcement: neither of its stream nor of the default stream, which
// it holds where it is to capture a blocking stream.
func TestACaptureThatDoesNotBeginLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		busy  int // the stream with a call that does not end in time; -1: none
		begin func() error
		err   error
	}{
		"a call of its own does not end":            {1, nil, ErrBusy},
		"a call on the default stream does not end": {0, nil, ErrBusy},
		"the driver refuses":                        {-1, func() error { return cudadrv.Unknown }, cudadrv.Unknown},
		"the driver panics":                         {-1, func() error { panic("driver") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 16*mib)
				blocking, err := r.gpu.StreamCreateBlocking()
				require.NoError(t, err)
				var all []Submitter
				for _, h := range []cudadrv.Stream{0, blocking} {
					s, _, err := Open(Config{
						ID: uint32(len(r.streams) + 1), Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h, Adopted: true, //nolint:gosec // a count
						Limit: &r.limit, Peers: &r.peers,
					})
					require.NoError(t, err)
					r.streams = append(r.streams, s)
					all = append(all, submitter(t, s))
				}
				all = append(all, submitter(t, r.stream(core.Budget{})))
				if c.busy >= 0 {
					require.NoError(t, all[c.busy].Enter(false))
				}
				func() {
					defer func() { assert.Equal(t, c.err == nil, recover() != nil) }()
					require.ErrorIs(t, all[1].BeginCapture(c.begin), c.err)
				}()
				for i, x := range all {
					assert.False(t, x.s.cuda.announcement.announced(), "stream %d", i)
				}
				if c.busy >= 0 {
					all[c.busy].Leave()
				}
				for _, x := range all {
					begin(t, x, false)
				}
				require.NoError(t, all[1].BeginCapture(func() error { return nil }))
				all[1].EndCapture()
			})
		})
	}
}
