package cuda_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Calls of a queue have the effects of the context's calls, and Close frees the buffers that are live.
func TestQueue(t *testing.T) {
	c := computing(t)
	q := c.NewQueue()
	values := []float32{1, 10, 100}
	x, y := cuda.Push(q, values), q.Alloc(12)
	q.Launch(q.Kernel(weigh, "weigh"), cuda.Cover(3, 3), cuda.InOut(x), cuda.Value(uint32(0)))
	q.Copy(cuda.Whole(y), cuda.Whole(x))
	cuda.Write(q, cuda.Elements[float32](y, 1, 1), []float32{5})
	q.Fill32(cuda.Elements[float32](y, 2, 1), 0x3f800000)
	cuda.Read(q, values, cuda.Whole(y))
	require.NoError(t, q.Err())
	assert.Equal(t, []float32{2, 5, 1}, values)

	q.Free(x)
	zeros := q.AllocZeroed(8)
	bytes := make([]byte, 8)
	q.Fill8(cuda.Part(zeros, 0, 1), 1)
	q.Fill16(cuda.Part(zeros, 2, 2), 0x0203)
	q.CopyInAsync(cuda.Part(zeros, 4, 1), []byte{9})
	q.CopyOutAsync(bytes, cuda.Whole(zeros))
	q.Wait(must(cuda.NewContext(must(c.Device().NewStream()))))
	q.Synchronize(t.Context())
	q.Do("nothing", func(*cuda.Context) error { return nil })
	require.NoError(t, q.Err())
	assert.Equal(t, []byte{1, 0, 3, 2, 9, 0, 0, 0}, bytes)
	tagged := q.AllocFor(t.Context(), vram.Request{Bytes: 8, Tag: "a tag"})
	require.NoError(t, q.Err())
	assert.Equal(t, int64(8), tagged.Bytes())
	kept := q.Keep(y)
	require.NoError(t, q.Close())
	assert.False(t, tagged.Live())
	require.NoError(t, q.Close(), "idempotent")
	assert.True(t, kept.Live())
	assert.False(t, zeros.Live())
	require.NoError(t, errors.Join(kept.Free(), c.Close()))
}

// After the first error nothing is submitted, and the error names the call and its place.
func TestQueueStopsAtTheFirstError(t *testing.T) {
	r, c := newFailing(t, sim.Config{Bytes: true})
	q := c.NewQueue()
	x := q.Alloc(64)
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuLaunchKernel", Result: cudadrv.LaunchFailed}))
	q.Launch(r.touch, cuda.Cover(1), cuda.InOut(x))
	r.faults.Clear()
	var first *cuda.QueueError
	require.ErrorAs(t, q.Err(), &first)
	require.ErrorIs(t, first, cudadrv.LaunchFailed)
	assert.Equal(t, "Launch of kernel touch", first.Call)
	assert.Equal(t, 2, first.Number)
	assert.Contains(t, first.Place.String(), "cuda_test.TestQueueStopsAtTheFirstError (queue_test.go:")
	assert.Contains(t, first.Error(), "cuda: call 2 of the queue, Launch of kernel touch, at cuda_test.TestQueueStopsAtTheFirstError (queue_test.go:")

	calls := 0
	r.faults.SetBefore(func(string) { calls++ })
	other, values := r.context(), []float32{1}
	calls = 0
	g := &cuda.Graph{}
	y := cuda.Push(q, values)
	z := q.Alloc(64)
	q.Launch(r.touch, cuda.Cover(1), cuda.InOut(y))
	assert.Nil(t, q.Kernel(ptx, "touch"))
	q.LaunchGraph(g)
	q.Copy(cuda.Whole(x), cuda.Whole(x))
	q.Fill8(cuda.Whole(x), 1)
	q.Fill16(cuda.Whole(x), 1)
	q.Fill32(cuda.Whole(x), 1)
	q.CopyInAsync(cuda.Part(x, 0, 1), []byte{1})
	q.CopyOutAsync([]byte{1}, cuda.Part(x, 0, 1))
	q.Wait(other)
	q.Synchronize(t.Context())
	cuda.Write(q, cuda.Whole(x), values)
	cuda.Read(q, values, cuda.Whole(x))
	q.Free(x)
	q.Do("nothing", func(*cuda.Context) error {
		t.Error("it is called")
		return nil
	})
	assert.Zero(t, calls)
	assert.Equal(t, cuda.Buffer{}, y)
	assert.Equal(t, cuda.Buffer{}, z)
	assert.Equal(t, []float32{1}, values)
	assert.True(t, x.Live(), "the queue's until Close")
	require.Same(t, first, q.Err(), "the first one stays")
	require.Same(t, first, q.Close())
	assert.False(t, x.Live())
	require.Same(t, first, q.Close())
}

// Each call keeps its own error.
func TestErrorsOfEachCallOfAQueue(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, 64)
	r.free(x)
	sentinel := errors.New("the caller's")
	for call, fails := range map[string]struct {
		do   func(q *cuda.Queue)
		want error
	}{
		"Free":                   {func(q *cuda.Queue) { q.Free(x) }, nil},
		"Kernel of nothing":      {func(q *cuda.Queue) { q.Kernel(ptx, "nothing") }, cudadrv.NotFound},
		"Launch of kernel touch": {func(q *cuda.Queue) { q.Launch(r.touch, cuda.Cover(1), cuda.In(x)) }, cuda.ErrNotLive},
		"Launch of no kernel":    {func(q *cuda.Queue) { q.Launch(nil, cuda.Cover(1)) }, cuda.ErrNotOpen},
		"LaunchGraph":            {func(q *cuda.Queue) { q.LaunchGraph(nil) }, cuda.ErrNotOpen},
		"Copy":                   {func(q *cuda.Queue) { q.Copy(cuda.Whole(x), cuda.Whole(x)) }, cuda.ErrNotLive},
		"Fill8":                  {func(q *cuda.Queue) { q.Fill8(cuda.Whole(x), 1) }, cuda.ErrNotLive},
		"Fill16":                 {func(q *cuda.Queue) { q.Fill16(cuda.Whole(x), 1) }, cuda.ErrNotLive},
		"Fill32":                 {func(q *cuda.Queue) { q.Fill32(cuda.Whole(x), 1) }, cuda.ErrNotLive},
		"CopyInAsync":            {func(q *cuda.Queue) { q.CopyInAsync(cuda.Part(x, 0, 1), []byte{1}) }, cuda.ErrNotLive},
		"CopyOutAsync":           {func(q *cuda.Queue) { q.CopyOutAsync([]byte{1}, cuda.Part(x, 0, 1)) }, cuda.ErrNotLive},
		"Wait":                   {func(q *cuda.Queue) { q.Wait(nil) }, cuda.ErrNotOpen},
		"Synchronize":            {func(q *cuda.Queue) { q.Synchronize(nil) }, cuda.ErrNilContext}, //nolint:staticcheck // the mistake
		"Write":                  {func(q *cuda.Queue) { cuda.Write(q, cuda.Whole(x), []byte{1}) }, cuda.ErrNotLive},
		"Read":                   {func(q *cuda.Queue) { cuda.Read(q, []byte{1}, cuda.Whole(x)) }, cuda.ErrNotLive},
		"the caller's work":      {func(q *cuda.Queue) { q.Do("the caller's work", func(*cuda.Context) error { return sentinel }) }, sentinel},
	} {
		q := c.NewQueue()
		fails.do(q)
		var failed *cuda.QueueError
		require.ErrorAs(t, q.Err(), &failed, call)
		if fails.want != nil {
			require.ErrorIs(t, q.Err(), fails.want, call)
			assert.Equal(t, call, failed.Call)
		}
		require.ErrorIs(t, q.Close(), failed.Err)
	}
	q := c.NewQueue()
	require.NoError(t, q.Close())
	q.Alloc(1)
	require.ErrorIs(t, q.Err(), cuda.ErrNotOpen, "after Close")
	none := (*cuda.Context)(nil).NewQueue()
	none.Alloc(1)
	require.ErrorIs(t, none.Close(), cuda.ErrNotOpen)
	require.ErrorIs(t, (*cuda.Queue)(nil).Err(), cuda.ErrNotOpen)
	require.ErrorIs(t, (*cuda.Queue)(nil).Close(), cuda.ErrNotOpen)
	(*cuda.Queue)(nil).Alloc(1)
	assert.Equal(t, x, (*cuda.Queue)(nil).Keep(x))
}

// In a capture a queue's work becomes part of the graph, and its buffers come from the hold.
func TestQueueInACapture(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, 64)
	g, err := c.Capture(func() error {
		q := c.NewQueue()
		tmp := q.AllocZeroed(64)
		q.Fill8(cuda.Part(tmp, 0, 8), 7)
		q.Copy(cuda.Whole(x), cuda.Whole(tmp))
		return q.Close()
	})
	require.NoError(t, err)
	require.NoError(t, g.Launch(c))
	got, err := cuda.Load[byte](c, cuda.Whole(x), 10)
	require.NoError(t, err)
	assert.Equal(t, []byte{7, 7, 7, 7, 7, 7, 7, 7, 0, 0}, got)
	require.NoError(t, g.Close())

	_, err = c.Capture(func() error {
		q := c.NewQueue()
		tmp := q.Alloc(64)
		cuda.Read(q, make([]byte, 1), cuda.Whole(tmp)) // waits
		q.Copy(cuda.Whole(x), cuda.Whole(tmp))
		return q.Close()
	})
	require.ErrorIs(t, err, cuda.ErrCapturing)
	var failed *cuda.QueueError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "Read", failed.Call)

	var late *cuda.Queue // closed after its capture, which made no graph
	_, err = c.Capture(func() error {
		late = c.NewQueue()
		late.Alloc(64)
		return errors.New("no graph")
	})
	require.Error(t, err)
	require.NoError(t, late.Close())
	r.free(x)
}

// The list of a queue's buffers does not grow with the number of calls.
func TestAQueueForgetsFreedBuffers(t *testing.T) {
	r, c := newRig(t)
	q := c.NewQueue()
	stays := q.Alloc(64)
	for n := range 1000 {
		b := q.Alloc(64)
		if n%2 == 0 {
			q.Free(b)
		} else {
			r.free(b)
		}
		assert.LessOrEqual(t, cuda.QueuedBuffers(q), 130)
	}
	many := make([]cuda.Buffer, 1000)
	for n := range many {
		many[n] = q.Alloc(64)
	}
	for range 3 * len(many) { // the bound is twice the live ones'
		q.Free(q.Alloc(64))
		assert.LessOrEqual(t, cuda.QueuedBuffers(q), 2*(len(many)+1)+64)
	}
	require.NoError(t, q.Err())
	q.Alloc(-1)
	var failed *cuda.QueueError
	require.ErrorAs(t, q.Err(), &failed)
	assert.Equal(t, 1+1000+500+1000+2*3*1000+1, failed.Number, "each call counts")
	require.ErrorAs(t, q.Close(), &failed)
	for _, b := range append(many, stays) {
		require.False(t, b.Live())
	}
}

// A launch of a queue costs no allocation more than one of the context.
func TestQueueLaunchAllocatesNothing(t *testing.T) {
	c := computing(t)
	f, err := c.Kernel(ptx, "touch")
	require.NoError(t, err)
	x, err := c.Alloc(64)
	require.NoError(t, err)
	q := c.NewQueue()
	plain := testing.AllocsPerRun(100, func() {
		if err := c.Launch(f, cuda.Cover(1), cuda.InOut(x)); err != nil {
			t.Fatal(err)
		}
	})
	queued := testing.AllocsPerRun(100, func() { q.Launch(f, cuda.Cover(1), cuda.InOut(x)) })
	assert.LessOrEqual(t, queued, plain)
	require.NoError(t, errors.Join(q.Close(), x.Free(), c.Close()))
}
