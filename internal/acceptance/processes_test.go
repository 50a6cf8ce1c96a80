package acceptance_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// someProcesses are of which one is this process, and one has unknown bytes.
func someProcesses() []vram.GPUProcess {
	all := []vram.GPUProcess{
		{PID: 1, Command: "small", Bytes: mib, BytesKnown: true},
		{PID: 2, Command: "own", Bytes: 9 * gib, BytesKnown: true, Own: true},
		{PID: 3, Command: "hidden"},
		{PID: 4, Command: "python3", Place: "pod 6f1c", Bytes: 3 * gib, BytesKnown: true},
	}
	for i := range 10 {
		all = append(all, vram.GPUProcess{PID: 10 + i, Bytes: 2, BytesKnown: true})
	}
	return all
}

// occupy takes memory of the GPU as another process does.
func (h *house) occupy(bytes int64) (release func()) {
	h.t.Helper()
	other, err := h.faults.Open(0)
	require.NoError(h.t, err)
	p, err := other.MemAlloc(bytes)
	require.NoError(h.t, err)
	return func() {
		h.t.Helper()
		require.NoError(h.t, other.MemFree(p))
		require.NoError(h.t, other.Close())
	}
}

// ways are the requests that the driver can refuse.
func ways() map[string]func(ctx context.Context, d *vram.Device, s *vram.Stream) error {
	return map[string]func(ctx context.Context, d *vram.Device, s *vram.Stream) error{
		"a buffer": func(_ context.Context, _ *vram.Device, s *vram.Stream) error {
			_, err := s.Alloc(3 * gib)
			return err
		},
		"a future": func(ctx context.Context, _ *vram.Device, s *vram.Stream) error {
			_, err := s.AllocAsync(ctx, vram.Request{Bytes: 3 * gib, Tag: "x"}).Await(ctx)
			return err
		},
		"a batch": func(_ context.Context, _ *vram.Device, s *vram.Stream) error {
			return s.AllocBatch(make([]vram.Buffer, 2), []int64{3 * gib, mib})
		},
		"a reservation": func(ctx context.Context, d *vram.Device, _ *vram.Stream) error {
			_, err := d.Reserve(ctx, 3*gib)
			return err
		},
	}
}

// A refusal of the driver names the largest other processes, in each way in which a request ends, and also where other refusals
// have just listed the largest buffers.
func TestARefusalOfTheDriverNamesOtherProcesses(t *testing.T) {
	for name, ask := range ways() {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			var gpu atomic.Pointer[cudadrv.Info]
			h := openHouse(t, vram.Config{Processes: func(ctx context.Context, of cudadrv.Info) ([]vram.GPUProcess, error) {
				asked.Add(1)
				gpu.Store(&of)
				return someProcesses(), ctx.Err()
			}}, sim.Config{TotalBytes: 4 * gib})
			s := h.stream()
			release := h.occupy(3 * gib)
			assert.Zero(t, asked.Load(), "nothing was refused")
			for range 2 {
				err := ask(t.Context(), h.Device, s)
				short, ok := errors.AsType[*vram.OutOfMemoryError](err)
				require.True(t, ok, "%v", err)
				require.Error(t, short.Cause)
				require.NoError(t, short.ProcessesErr)
				require.Len(t, short.Processes, 10)
				assert.Equal(t, someProcesses()[3], short.Processes[0])
				assert.Equal(t, someProcesses()[0], short.Processes[1])
				assert.ErrorContains(t, err, "; other processes on the GPU: 3 GiB by python3 (PID 4, pod 6f1c) / 1 MiB by small (PID 1) / 2 B (PID 10); what would help: ")
				assert.Contains(t, short.Report(), "other processes on the GPU:\n  3 GiB by python3 (PID 4, pod 6f1c)\n  1 MiB by small (PID 1)\n")
			}
			assert.Equal(t, h.Info(), *gpu.Load())
			release()
		})
	}
}

// A refusal by the limit does not ask: other processes have nothing to do with it.
func TestARefusalByTheLimitNamesNoProcesses(t *testing.T) {
	told := func(e *vram.OutOfMemoryError) { assert.Empty(t, e.Processes) }
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib, Events: vram.Events{OutOfMemory: told}, Processes: func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) {
		t.Error("asked")
		return nil, nil
	}}, sim.Config{})
	s := h.stream()
	kept := must(t, s, 40*mib)
	_, err := s.Alloc(40 * mib)
	short, ok := errors.AsType[*vram.OutOfMemoryError](err)
	require.True(t, ok)
	require.NoError(t, short.Cause)
	assert.NotContains(t, short.Report(), "other processes")
	freeAll(t, kept)
	require.NoError(t, h.Close()) // waits for the event
}

// The handler and the event get the processes, too.
func TestTheHandlerLearnsOfOtherProcesses(t *testing.T) {
	var handled, told []vram.GPUProcess
	h := openHouse(t, vram.Config{
		Processes:     func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) { return someProcesses(), nil },
		OnOutOfMemory: func(e *vram.OutOfMemoryError) bool { handled = e.Processes; return false },
		Events:        vram.Events{OutOfMemory: func(e *vram.OutOfMemoryError) { told = e.Processes }},
	}, sim.Config{TotalBytes: 4 * gib})
	s := h.stream()
	release := h.occupy(3 * gib)
	_, err := s.Alloc(3 * gib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	assert.Len(t, handled, 10)
	release()
	require.NoError(t, h.Close()) // waits for the event
	assert.Len(t, told, 10)
}

// A list that fails, panics, ends its goroutine or does not come leaves the refusal as it is, with the reason, in bounded time.
func TestProcessesThatAreNotKnown(t *testing.T) {
	recoveredtest.Expect(t, "Processes: the function ended its goroutine")
	for name, c := range map[string]struct {
		list func(ctx context.Context, of cudadrv.Info) ([]vram.GPUProcess, error)
		want string
	}{
		"an error": {func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) { return nil, errors.New("no library") }, "no library"},
		"a panic":  {func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) { panic(recoveredtest.Planted("oops")) }, "vram: Processes panicked: planted: oops"},
		"the end of its goroutine": {func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) {
			runtime.Goexit()
			return nil, nil
		}, "vram: Processes panicked: the function ended its goroutine"},
		"no answer": {func(ctx context.Context, _ cudadrv.Info) ([]vram.GPUProcess, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, "context canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, vram.Config{Processes: c.list}, sim.Config{TotalBytes: 4 * gib})
				s := h.stream()
				release := h.occupy(3 * gib)
				begun := time.Now()
				_, err := s.Alloc(3 * gib)
				assert.LessOrEqual(t, time.Since(begun), 300*time.Millisecond, "virtual")
				short, ok := errors.AsType[*vram.OutOfMemoryError](err)
				require.True(t, ok)
				require.EqualError(t, short.ProcessesErr, c.want)
				assert.Contains(t, short.Report(), "other processes on the GPU are not known: "+c.want+"\n")
				assert.NotContains(t, err.Error(), "other processes")
				text, err := json.Marshal(short)
				require.NoError(t, err)
				assert.Contains(t, string(text), `"processes":[],"processes_err":`)
				release()
				if strings.Contains(c.want, "panicked") {
					assert.Equal(t, uint64(1), h.Stats().Panics)
				}
				asking, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err = h.GPUProcesses(asking)
				require.EqualError(t, err, c.want)
			})
		})
	}
}

// While the list of a refusal does not come, other requests of the stream and the device are served.
func TestProcessesHoldUpNoOtherRequest(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	h := openHouse(t, vram.Config{Processes: func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) {
		close(asked)
		<-answer
		return nil, nil
	}}, sim.Config{TotalBytes: 4 * gib})
	s := h.stream()
	release := h.occupy(3 * gib)
	var refused sync.WaitGroup
	refused.Go(func() {
		_, err := s.Alloc(3 * gib)
		assert.ErrorIs(t, err, vram.ErrOutOfMemory)
	})
	<-asked
	freeAll(t, must(t, s, 8*mib), must(t, h.stream(), 8*mib))
	_ = h.Stats()
	close(answer)
	refused.Wait()
	release()
}

func TestGPUProcesses(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	_, err := h.GPUProcesses(t.Context())
	require.ErrorIs(t, err, vram.ErrNoProcesses)
	_, err = (*vram.Device)(nil).GPUProcesses(t.Context())
	require.ErrorIs(t, err, vram.ErrNotOpen)

	h = openHouse(t, vram.Config{Processes: func(context.Context, cudadrv.Info) ([]vram.GPUProcess, error) { return someProcesses(), nil }}, sim.Config{})
	all, err := h.GPUProcesses(t.Context())
	require.NoError(t, err)
	assert.Equal(t, someProcesses(), all)
	require.NoError(t, h.Close())
	_, err = h.GPUProcesses(t.Context())
	require.ErrorIs(t, err, vram.ErrClosed)
}
