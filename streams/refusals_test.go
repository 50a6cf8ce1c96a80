package streams

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// inspections are the calls that run in a turn of a stream and return an error.
func inspections(c *Control) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Stats":       func(ctx context.Context) error { _, err := c.Stats(ctx); return err },
		"Trim":        c.Trim,
		"Check":       c.Check,
		"Coalesce":    c.Coalesce,
		"Sweep":       c.Sweep,
		"ResetPeak":   c.ResetPeak,
		"BeginScope":  func(ctx context.Context) error { return c.BeginScope(ctx, 1) },
		"Reconfigure": func(ctx context.Context) error { return c.Reconfigure(ctx, core.Settings{}) },
		"Watch":       func(ctx context.Context) error { return c.Watch(ctx, core.Settings{}, nil) },
		"Sampled":     func(ctx context.Context) error { _, err := c.Sampled(ctx); return err },
		"Live":        func(ctx context.Context) error { _, err := c.Live(ctx); return err },
		"Waiting":     func(ctx context.Context) error { _, err := c.Waiting(ctx); return err },
		"Map":         func(ctx context.Context) error { _, err := c.Map(ctx, mib); return err },
	}
}

// Each call that needs a turn says why it had none: the stream is not open, or has ended, its context is nil, or ended while another
// goroutine was in the turn.
func TestEveryCallInATurnSaysWhyItHadNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	busy, closed := r.stream(core.Budget{}), r.stream(core.Budget{})
	require.NoError(t, closed.Close())
	<-closed.ref.Done()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, call := range inspections(control(busy)) {
		require.NoError(t, call(t.Context()), name)
		require.ErrorIs(t, call(nil), futures.ErrNilContext, name)
	}
	leave := r.occupy(busy)
	for name, call := range inspections(control(busy)) {
		require.ErrorIs(t, call(ended), context.Canceled, name)
	}
	leave()
	for name, call := range inspections(control(closed)) {
		require.ErrorIs(t, call(t.Context()), ErrClosed, name)
	}
	for name, call := range inspections(control(new(Stream))) {
		require.ErrorIs(t, call(t.Context()), ErrNotOpen, name)
	}
}

// A buffer is freed once: in each way a second free is refused, and changes nothing.
func TestEveryWayToFreeReportsASecondFree(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	for name, free := range map[string]func(Buffer) error{
		"Buffer.Free":      Buffer.Free,
		"Batch.Free":       func(b Buffer) error { return Batch{[]Buffer{b}}.Free() },
		"Stream.FreeBatch": func(b Buffer) error { return s.FreeBatch([]Buffer{b}) },
	} {
		for _, bytes := range []int64{kib, 3 * mib} {
			b := must(t, s, bytes)
			require.NoError(t, free(b), name)
			frees := r.stats(s).FreeCount
			require.ErrorIs(t, free(b), ErrDoubleFree, name)
			assert.Equal(t, frees, r.stats(s).FreeCount, name)
		}
	}
}

// A fence that reaches a stream after its end is released.
func TestAFenceForAStreamThatHasEndedIsReleased(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.adopt()
	mark, err := r.fences.Record(s.Handle())
	require.NoError(t, err)
	require.NotEqual(t, fence.Mark{}, mark)
	require.NoError(t, s.Close())
	<-s.ref.Done()
	s.ref.Call(&recorded{stream: &s.wiring, fence: 1, mark: mark})
	for r.gpu.Objects()["event"] > 0 {
		require.NoError(t, r.fences.Close())
		runtime.Gosched()
	}
	require.NoError(t, r.gpu.StreamDestroy(s.Handle()))
}

// The devices that a device reaches are all that were noted, also by many goroutines at once, and no other.
func TestADeviceReachesThoseThatWereNoted(t *testing.T) {
	t.Parallel()
	for range 100 {
		var device, never Peers
		others := make([]Peers, 8)
		var group sync.WaitGroup
		for i := range others {
			group.Go(func() { device.Reach(&others[i]) })
			group.Go(func() { device.Reach(&others[0]) }) // again
		}
		group.Wait()
		for i := range others {
			require.True(t, device.reaches(&others[i]))
			require.False(t, others[i].reaches(&device), "the other direction was not noted")
		}
		require.False(t, device.reaches(&never))
		require.Len(t, *device.reached.Load(), len(others))
	}
}

// The list of those who free a stream's memory does not grow with streams that have ended.
func TestFreersThatHaveEndedAreForgotten(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	const open = 12
	for range open {
		s.suspensions.addFreer(r.stream(core.Budget{}).id)
	}
	for range 4 * open {
		other := r.stream(core.Budget{})
		s.suspensions.addFreer(other.id)
		require.NoError(t, other.Close())
		<-other.ref.Done()
		freers := s.suspensions.progress.Load().freedBy
		require.LessOrEqual(t, len(freers), 2*open+1)
		for id := poolcore.Client(2); id < 2+open; id++ {
			require.Contains(t, freers, id, "it is open")
		}
	}
}

// A launch that is not recorded is not counted.
func TestLaunchesAreCountedWhereTheyAreRecorded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	assert.Zero(t, Submitter{r.stream(core.Budget{})}.LaunchCount())
}

// Work that waits for a stream is refused while that one is being closed, and follows nothing once it has finished. The error names
// the stream that is closed, of the two.
func TestAWaitForAStreamThatIsBeingClosed(t *testing.T) {
	t.Parallel()
	r, s, other := pair(t, 64*mib)
	b := must(t, other, mib)
	entered, release := r.holdUp("cuStreamSynchronize")
	closed := make(chan error, 1)
	go func() { closed <- other.Close() }()
	<-entered
	waits := map[string]func() error{
		"waitFor":    func() error { return s.cuda.waitFor(&other.cuda) },
		"WaitStream": func() error { return s.WaitStream(other) },
		"Between": func() error {
			return Submitter{s}.Between(Submitter{other}, func() error { assert.Fail(t, "submitted"); return nil })
		},
		"Transfer": func() error { _, err := b.Transfer(s); return err },
	}
	for name, wait := range waits {
		closedNames(t, wait(), other, name)
	}
	release()
	require.NoError(t, <-closed)
	require.NoError(t, s.cuda.waitFor(&other.cuda))
	require.NoError(t, s.WaitStream(other))
	require.NoError(t, b.Free())
	require.NoError(t, s.Close())
	delete(waits, "Transfer")
	for name, wait := range waits {
		closedNames(t, wait(), s, name)
	}
}

// closedNames checks that an error names a stream as the closed one.
func closedNames(t *testing.T, err error, s *Stream, what string) {
	t.Helper()
	var closed *ClosedError
	require.ErrorAs(t, err, &closed, what)
	assert.Equal(t, s.ID(), closed.Stream, what)
}

// No goroutine watches fences for a stream that has ended.
func TestNobodyWatchesAStreamThatHasEnded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, s.Close())
	<-s.ref.Done()
	s.peer.waits.Store(true) // as its last turn may have left it
	assert.False(t, r.peers.watch(&s.peer, nil))
}

// interrupting is a context that has ended, and calls a function as it is asked why.
type interrupting struct {
	context.Context
	asked func()
}

func (c *interrupting) Err() error {
	c.asked()
	return context.Canceled
}

// A reading whose context ends has no result, also where the turn runs its function just then: before the call returns, or at the same
// time, which is no race.
func TestAReadingWhoseContextEndsHasNoResult(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s, _ := r.profiled(magazine.Everything)
	c := control(s)
	b := must(t, s, 40*mib)
	waits := s.AllocAsync(t.Context(), Request{Bytes: 40 * mib, Wait: true})
	ended, end := context.WithCancel(t.Context())
	end()
	for name, read := range map[string]func(context.Context) (any, error){
		"Stats":   func(ctx context.Context) (any, error) { return c.Stats(ctx) },
		"Sampled": func(ctx context.Context) (any, error) { return c.Sampled(ctx) },
		"Live":    func(ctx context.Context) (any, error) { return c.Live(ctx) },
		"Waiting": func(ctx context.Context) (any, error) { return c.Waiting(ctx) },
		"Map":     func(ctx context.Context) (any, error) { return c.Map(ctx, 0) },
	} {
		all, err := read(t.Context())
		require.NoError(t, err, name)
		require.NotEmpty(t, all, name)
		for _, first := range []bool{true, false} {
			leave, left := r.occupy(s), make(chan struct{})
			all, err = read(&interrupting{ended, func() {
				go func() {
					leave()
					close(left)
				}()
				if first {
					<-left
				}
			}})
			require.ErrorIs(t, err, context.Canceled, name)
			assert.Empty(t, all, name)
			<-left
		}
	}
	waits.Cancel()
	require.NoError(t, b.Free())
}
