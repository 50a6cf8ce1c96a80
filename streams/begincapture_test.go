package streams

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/core"
)

// adoptAmong adopts a handle among the streams of the rig.
func (r *rig) adoptAmong(h cudadrv.Stream) *Stream {
	r.t.Helper()
	s, _, err := Open(Config{
		ID: uint32(len(r.streams) + 1), Pool: r.pool, Device: r.device, Fences: r.fences, Handle: h, Adopted: true, //nolint:gosec // a count
		Limit: &r.limit, Peers: &r.peers,
	})
	require.NoError(r.t, err)
	r.streams = append(r.streams, s)
	return s
}

// While a capture of a stream that may be blocking begins, no call enters the legacy default stream, under either of its handles,
// those that have entered have left, and no other capture of it begins. Once it has begun, calls enter again. A stream that the
// device made does not block, and holds up nobody.
func TestTheDefaultStreamWhileACaptureBegins(t *testing.T) {
	t.Parallel()
	nothing := func() {}
	for name, c := range map[string]struct {
		handle  cudadrv.Stream
		adopted bool
		enter   func(*testing.T, Submitter) (leave func())
		held    bool
	}{
		"handle 0":    {0, true, nil, true},
		"handle 1":    {1, true, nil, true},
		"not adopted": {0, false, nil, false},
		"a call on the default stream": {0, true, func(t *testing.T, x Submitter) func() {
			t.Helper()
			require.NoError(t, x.Enter(false))
			return x.Leave
		}, true},
		"a capture of the default stream is about to begin": {1, true, func(t *testing.T, x Submitter) func() {
			t.Helper()
			require.True(t, x.s.cuda.announcement.announce())
			return x.EndCapture
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 16*mib)
				legacy := submitter(t, r.adoptAmong(c.handle))
				s := r.stream(core.Budget{})
				if c.adopted {
					h, err := r.gpu.StreamCreateBlocking()
					require.NoError(t, err)
					s = r.adoptAmong(h)
				}
				leave := nothing
				if c.enter != nil {
					leave = c.enter(t, legacy)
				}
				left, begun := false, make(chan error, 1)
				if legacy.s.cuda.announcement.announced() { // a capture waits for another without a clock
					s.host = &leavingHost{place: "yield", leave: func() bool { left = true; leave(); leave = nothing; return true }}
				}
				go func() {
					begun <- Submitter{s}.BeginCapture(func() error {
						assert.Equal(t, c.enter != nil, left, "what had begun on the default stream has ended")
						if !c.held {
							begin(t, legacy, false)
							return nil
						}
						forbidden(t, legacy.Enter(false), legacy.s, "work that is submitted as the capture begins or ends")
						forbidden(t, legacy.BeginCapture(func() error { return nil }), legacy.s, "cuStreamBeginCapture")
						return nil
					})
				}()
				synctest.Wait()
				left = left || c.enter != nil
				leave()
				require.NoError(t, <-begun)
				begin(t, legacy, false)
				Submitter{s}.EndCapture()
			})
		})
	}
}

// The end of a capture waits for work that must be part of it, and for ten seconds at most. A wait that is over leaves nothing that
// would end a later one.
func TestTheEndOfACaptureWaitsForItsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 16*mib)
		x := submitter(t, r.stream(core.Budget{}))
		for _, takes := range []time.Duration{captureTimeout - time.Second, captureTimeout - time.Second, captureTimeout + time.Second} {
			require.NoError(t, x.BeginCapture(func() error { return nil }))
			require.NoError(t, x.Enter(true))
			start := time.Now()
			left := make(chan struct{})
			time.AfterFunc(takes, func() {
				x.Leave()
				close(left)
			})
			x.SettleCapture()
			assert.Equal(t, min(takes, captureTimeout), time.Since(start))
			<-left
			x.EndCapture()
			begin(t, x, false)
		}
	})
}

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
					all = append(all, submitter(t, r.adoptAmong(h)))
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

// The default stream is captured, for the allocator, while a blocking stream is, also by a capture that nobody has announced.
func TestTheDefaultStreamDuringAnUnannouncedCapture(t *testing.T) {
	t.Parallel()
	r := newRig(t, 16*mib)
	legacy := r.adoptAmong(0)
	blocking, err := r.gpu.StreamCreateBlocking()
	require.NoError(t, err)
	require.NoError(t, r.gpu.BeginCapture(blocking))
	_, err = r.gpu.StreamIsCapturing(0)
	require.ErrorIs(t, err, cudadrv.CaptureImplicit)
	forbidden(t, submitter(t, legacy).Outside("call"), legacy, "call")
	forbidden(t, legacy.Close(), legacy, "cuStreamSynchronize")
	_, err = r.gpu.EndCapture(blocking)
	require.NoError(t, err)
	require.NoError(t, submitter(t, legacy).Outside("call"))
	submitter(t, legacy).Leave()
}
