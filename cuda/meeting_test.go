package cuda_test

import (
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
)

// Close of a graph, and new arguments, wait for a launch that is in its driver call, and no longer.
func TestCallsThatWaitForALaunch(t *testing.T) {
	for name, call := range map[string]func(s *state) error{
		"Close":   func(s *state) error { return s.graph.Close() },
		"SetArgs": func(s *state) error { return s.graph.SetArgs(0, oneThread, cuda.InOut(s.own)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newState(t, nil)
			require.NoError(t, s.graph.SetArgs(0, oneThread, cuda.InOut(s.own))) // the nodes are known
			entered, resume := make(chan struct{}), make(chan struct{})
			s.faults.SetBefore(func(function string) {
				if function == "cuGraphLaunch" {
					s.faults.SetBefore(nil)
					close(entered)
					<-resume
				}
			})
			launched, done := make(chan error, 1), make(chan error, 1)
			go func() { launched <- s.graph.Launch(s.c) }()
			<-entered
			go func() { done <- call(s) }()
			if name == "Close" {
				for s.graph.Upload(s.d) == nil { // Close has begun once calls are refused
					runtime.Gosched()
				}
				require.ErrorIs(t, s.graph.Upload(s.d), cuda.ErrGraphClosed)
			}
			select {
			case err := <-done:
				t.Fatalf("the call did not wait: %v", err)
			default:
			}
			close(resume)
			require.NoError(t, <-launched)
			require.NoError(t, <-done)
		})
	}
}

// A profile whose events the driver refuses has each launch, with a duration below 0, and says why; the launch itself succeeds.
func TestAProfileWithoutTimes(t *testing.T) {
	for _, function := range []string{"cuEventCreate", "cuEventRecord", "cuEventSynchronize", "cuEventElapsedTime"} {
		s := newState(t, nil)
		profile, err := s.c.StartProfile()
		require.NoError(t, err)
		require.NoError(t, s.c.Launch(s.touch, oneThread, cuda.InOut(s.own)))
		if function == "cuEventCreate" || function == "cuEventRecord" {
			require.NoError(t, s.faults.Add(fault.Rule{Func: function, First: 1, Result: cudadrv.Unknown}))
		}
		require.NoError(t, s.c.Launch(s.touch, oneThread, cuda.InOut(s.own)), function)
		s.faults.Clear()
		if function == "cuEventSynchronize" || function == "cuEventElapsedTime" {
			require.NoError(t, s.faults.Add(fault.Rule{Func: function, First: 2, Result: cudadrv.Unknown}))
		}
		all, err := profile.Stop()
		require.ErrorIs(t, err, cudadrv.Unknown, function)
		require.Len(t, all, 2, function)
		assert.Positive(t, all[0].Duration, function)
		assert.Negative(t, all[1].Duration, function)
		for _, one := range all {
			assert.Equal(t, "touch", one.Kernel)
			assert.Equal(t, oneThread, one.Geometry)
		}
		again, err := profile.Stop()
		assert.Empty(t, again)
		require.ErrorIs(t, err, cudadrv.Unknown, "the same")
	}
}

// A batch that is refused leaves no buffer of the caller in the slice, in a capture or outside of one.
func TestARefusedBatchClearsTheSlice(t *testing.T) {
	s := newState(t, nil)
	refused := func() error {
		for _, bytes := range [][]int64{nil, {1}, {1, -1}, {1, 1, 1}, {1, 1 << 50}} {
			all := []cuda.Buffer{s.own, s.shared}
			require.Error(t, s.c.AllocBatch(all, bytes))
			assert.Equal(t, make([]cuda.Buffer, 2), all, "%v", bytes)
		}
		var batch *vram.BatchError
		require.ErrorAs(t, s.c.AllocBatch(make([]cuda.Buffer, 3), []int64{1, 1, -1}), &batch)
		assert.Equal(t, 2, batch.Index)
		return nil
	}
	require.NoError(t, refused())
	g, err := s.c.Capture(refused)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	assert.True(t, s.own.Live() && s.shared.Live())
}

// A call that waits while the context closes finds it closed, and leaves no buffer.
func TestAWorkspaceDuringClose(t *testing.T) {
	s := newState(t, nil)
	live := s.dev.Stats().LiveBytes
	refused := make(chan error, 1)
	_, err := s.c.Lazily("key", func() (io.Closer, error) {
		return closer(func() error {
			go func() { refused <- second(s.c.Workspace(mib)) }()
			for range 100 { // the goroutine waits for Close
				runtime.Gosched()
			}
			return nil
		}), nil
	})
	require.NoError(t, err)
	require.NoError(t, s.c.Close())
	require.ErrorIs(t, <-refused, cuda.ErrNotOpen)
	assert.Equal(t, live, s.dev.Stats().LiveBytes)
	_, err = s.c.Lazily("key", func() (io.Closer, error) { return nil, nil })
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}

type closer func() error

func (c closer) Close() error { return c() }
