package streams

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/actors"
)

// yieldHost is the Go scheduler as a host that reports yields.
type yieldHost struct {
	yielded chan struct{} // has a token after a yield
	mu      sync.Mutex
	last    map[string]chan struct{} // is closed after the last function given under a name
}

var _ actors.Host = (*yieldHost)(nil)

func newYieldHost() *yieldHost {
	return &yieldHost{yielded: make(chan struct{}, 1), last: make(map[string]chan struct{})}
}

// Go implements actors.Host.
func (h *yieldHost) Go(name string, f func()) {
	if name == "" {
		go f()
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	before, done := h.last[name], make(chan struct{})
	h.last[name] = done
	go func() {
		defer close(done)
		if before != nil {
			<-before
		}
		f()
	}()
}

// Wait implements actors.Host for one channel.
func (h *yieldHost) Wait(closed ...<-chan struct{}) {
	for _, c := range closed {
		<-c
	}
}

// Reach implements actors.Host.
func (h *yieldHost) Reach(place string) {
	if place != "yield" {
		return
	}
	select {
	case h.yielded <- struct{}{}:
	default:
	}
	runtime.Gosched()
}

// Behavior implements actors.Host.
func (h *yieldHost) Behavior(_ string, b actors.Behavior) actors.Behavior { return b }

// A Close does not return while another one queries the driver about the handle, which the program
// may destroy or adopt again after it. The other one has the same result, also if the stream is
// captured by then; a later one has none.
func TestACloseThatAnotherOvertakesHasItsResult(t *testing.T) {
	for name, meanwhile := range map[string]func(*rig, *Stream) (fails bool){
		"without an error": func(*rig, *Stream) bool { return false },
		"synchronisation fails": func(r *rig, _ *Stream) bool {
			r.fail("cuStreamSynchronize")
			return true
		},
		"a capture begins": func(r *rig, s *Stream) bool {
			require.NoError(r.t, r.gpu.BeginCapture(s.Handle()))
			r.t.Cleanup(func() { _, _ = r.gpu.EndCapture(s.Handle()) }) // before the rig closes
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, host := newRig(t, 64*mib), newYieldHost()
			handle, err := r.device.StreamCreate()
			require.NoError(t, err)
			s, _, err := Open(Config{
				ID: 1, Pool: r.pool, Device: r.device, Fences: r.fences, Handle: handle, Adopted: true,
				Limit: &r.limit, Peers: &r.peers, Host: host,
			})
			require.NoError(t, err)
			r.streams = append(r.streams, s)
			var work sync.WaitGroup
			var overtakenErr, firstErr error
			entered, release := r.holdUp("cuStreamIsCapturing")
			work.Go(func() { overtakenErr = s.Close() })
			<-entered
			returned := make(chan struct{})
			work.Go(func() {
				defer close(returned)
				firstErr = s.Close()
			})
			select {
			case <-returned:
				t.Error("a Close returned while another one queries the driver about the handle")
			case <-host.yielded: // it waits for the query
			}
			fails := meanwhile(r, s)
			release()
			work.Wait()
			if fails {
				require.Error(t, firstErr)
			} else {
				require.NoError(t, firstErr)
			}
			assert.Equal(t, firstErr, overtakenErr)
			require.NoError(t, s.Close(), "a later one")
			assert.EqualValues(t, 1, r.faults.Calls("cuStreamSynchronize"))
		})
	}
}
