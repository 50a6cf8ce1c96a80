package tensor_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// allocated makes a tensor with memory.
func allocated(t *testing.T, at tensor.Context, of tensor.Type, shape ...int) *tensor.Tensor {
	t.Helper()
	x := must(tensor.New(at, of, shape...))(t)
	require.NoError(t, x.Allocate())
	return x
}

func TestAScopeFreesItsTensors(t *testing.T) {
	r, c := newRig(t)
	outside := allocated(t, c, tensor.Int8, 100)
	var kept, gone, lazy, view *tensor.Tensor
	err := tensor.Scoped(c, func(s *tensor.Scope) error {
		gone, kept = allocated(t, s, tensor.Int8, 100), allocated(t, s, tensor.Int8, 100)
		lazy = must(tensor.New(s, tensor.Int8, 100))(t)
		view = must(gone.Narrow(0, 1, 2))(t)
		early := allocated(t, s, tensor.Int8, 100)
		require.NoError(t, early.Free(), "by hand")
		clone := must(tensor.Clone(s, gone))(t)
		assert.Same(t, c, clone.Context())
		assert.Same(t, c, s.Context())
		assert.Equal(t, fmt.Sprintf("scope of 4 tensors in the %v", c), s.String())
		require.NoError(t, s.Keep(must(kept.Narrow(0, 1, 2))(t), outside), "a view keeps its storage, and tensors of others stay")
		return nil
	})
	require.NoError(t, err)
	for _, x := range []*tensor.Tensor{gone, lazy, view} {
		require.ErrorIs(t, x.Allocate(), tensor.ErrFreed)
	}
	require.True(t, kept.Live())
	require.True(t, outside.Live())
	assert.Equal(t, int64(2*unit), r.liveBytes())
	require.NoError(t, kept.Free())
	require.NoError(t, outside.Free())
}

// A scope ends, too, where its function fails or panics.
func TestAScopeThatFailsFreesItsTensors(t *testing.T) {
	r, c := newRig(t)
	mine := errors.New("mine")
	var x *tensor.Tensor
	err := tensor.Scoped(c, func(s *tensor.Scope) error {
		x = allocated(t, s, tensor.Int8, 100)
		return mine
	})
	require.ErrorIs(t, err, mine)
	assert.False(t, x.Live())
	assert.PanicsWithValue(t, "mine", func() {
		_ = tensor.Scoped(c, func(s *tensor.Scope) error {
			x = allocated(t, s, tensor.Int8, 100)
			panic("mine")
		})
	})
	assert.False(t, x.Live())
	assert.Zero(t, r.liveBytes())
}

// The newest tensor of a scope is freed first. The error of a function does not hide the errors of the frees.
func TestTheEndOfAScope(t *testing.T) {
	var freed []int64
	_, c := newRig(t, vramtest.Config(vram.Config{Observer: vram.Observer{Freed: func(e vram.BufferEvent) { freed = append(freed, e.Bytes) }}}))
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		late := must(tensor.New(s, tensor.Int8, 1))(t)
		for n := range 4 {
			allocated(t, s, tensor.Int8, n+2)
		}
		return late.Allocate() // its place is where it was made
	}))
	assert.Equal(t, []int64{5, 4, 3, 2, 1}, freed)

	var first *tensor.Tensor
	r, c := newRig(t, vramtest.Config(vram.Config{Observer: vram.Observer{Freed: func(vram.BufferEvent) {
		if first.Live() { // another one frees it while the scope ends
			assert.NoError(t, first.Free())
		}
	}}}))
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		first = allocated(t, s, tensor.Int8, 1)
		allocated(t, s, tensor.Int8, 2)
		return nil
	}), "it is freed, as the scope wants")
	assert.Zero(t, r.liveBytes())

	mine := errors.New("mine")
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))(t)
	closed := must(cuda.NewContext(must(dev.NewStream())(t)))(t)
	err := tensor.Scoped(closed, func(s *tensor.Scope) error {
		allocated(t, s, tensor.Int8, 1)
		require.Error(t, dev.Close(), "a buffer lives")
		return mine
	})
	require.ErrorIs(t, err, mine)
	require.ErrorIs(t, err, vram.ErrClosed)
	require.NoError(t, closed.Close())
}

// A function that fails to make a tensor leaves none in the scope.
func TestAScopeHasNoTensorThatFailed(t *testing.T) {
	set := must(vram.OpenAll(vram.Config{Driver: sim.New(sim.Config{Bytes: true, Devices: 2, TotalBytes: 32 << 20})}))(t)
	c := must(cuda.NewContext(must(set.Devices()[0].NewStream())(t)))(t)
	other := must(cuda.NewContext(must(set.Devices()[1].NewStream())(t)))(t)
	const large = 64 << 20
	one, far := must(tensor.Scalar(c, int8(1)))(t), must(tensor.Scalar(other, int8(1)))(t)
	wide := must(one.Broadcast(large))(t)
	s := must(tensor.NewScope(c))(t)
	for name, f := range map[string]func() (*tensor.Tensor, error){
		"from":       func() (*tensor.Tensor, error) { return tensor.From(s, make([]int8, large)) },
		"full":       func() (*tensor.Tensor, error) { return tensor.Full(s, int8(1), large) },
		"clone":      func() (*tensor.Tensor, error) { return tensor.Clone(s, wide) },
		"contiguous": func() (*tensor.Tensor, error) { return tensor.Contiguous(s, wide) },
		"to":         func() (*tensor.Tensor, error) { return tensor.To(s, wide) },
		"to another": func() (*tensor.Tensor, error) { return tensor.To(s, must(far.Broadcast(large))(t)) },
	} {
		x, err := f()
		require.ErrorIs(t, err, vram.ErrTooLarge, name)
		assert.Nil(t, x, name)
		assert.Empty(t, s.Live(), name)
	}
	double, remote := must(tensor.Scalar(c, 1.0))(t), must(tensor.Scalar(other, 1.0))(t)
	for _, x := range []*tensor.Tensor{double, remote} { // of more bytes than can be counted
		huge := must(x.Broadcast(1 << 61))(t)
		for name, f := range map[string]func(tensor.Context, *tensor.Tensor) (*tensor.Tensor, error){
			"clone": tensor.Clone, "contiguous": tensor.Contiguous, "to": tensor.To,
		} {
			made, err := f(s, huge)
			require.ErrorIs(t, err, tensor.ErrTooLarge, name)
			assert.Nil(t, made, name)
		}
	}
	require.NoError(t, errors.Join(s.Close(), one.Free(), far.Free(), double.Free(), remote.Free(), c.Close(), other.Close(), set.Close()))
}

// Tensors of an inner scope that are kept belong to the one around it.
func TestNestedScopes(t *testing.T) {
	r, c := newRig(t)
	var result *tensor.Tensor
	require.NoError(t, tensor.Scoped(c, func(outer *tensor.Scope) error {
		var sum *tensor.Tensor
		for range 3 {
			require.NoError(t, tensor.Scoped(outer, func(inner *tensor.Scope) error {
				allocated(t, inner, tensor.Int8, 100)
				sum = allocated(t, inner, tensor.Int8, 10)
				allocated(t, outer, tensor.Int8, 1)
				require.NoError(t, inner.Keep(sum))
				return inner.Keep(sum, sum)
			}))
			require.True(t, sum.Live())
		}
		assert.Equal(t, int64(6*unit), r.liveBytes())
		assert.Len(t, outer.Live(), 6)
		require.NoError(t, tensor.Scoped(outer, func(inner *tensor.Scope) error {
			require.NoError(t, inner.Keep(sum), "of the outer one: it stays there")
			result = allocated(t, inner, tensor.Int8, 5)
			return inner.Keep(result)
		}))
		return outer.Keep(result)
	}))
	assert.Equal(t, int64(unit), r.liveBytes())
	require.NoError(t, result.Free())
}

// A struct with a scope in it is a context, too.
type environment struct {
	*tensor.Scope
}

func TestScopesThatHaveEnded(t *testing.T) {
	r, c := newRig(t)
	outer := must(tensor.NewScope(c))(t)
	inner := must(tensor.NewScope(environment{outer}))(t)
	x, y := allocated(t, inner, tensor.Int8, 5), allocated(t, inner, tensor.Int8, 5)
	require.NoError(t, y.Free())
	require.ErrorIs(t, inner.Keep(x, y), tensor.ErrFreed)
	require.ErrorIs(t, inner.Keep(nil), tensor.ErrNoTensor)
	assert.Len(t, inner.Live(), 1, "none was moved")
	require.NoError(t, outer.Close())
	require.NoError(t, outer.Close())
	for _, err := range []error{
		func() error { _, err := tensor.New(outer, tensor.Int8); return err }(),
		func() error { _, err := tensor.NewScope(outer); return err }(),
		func() error { _, err := tensor.ContextOf(outer); return err }(),
		tensor.Fill(outer, x, int8(1)),
		tensor.Copy(outer, x, x),
	} {
		require.ErrorIs(t, err, tensor.ErrScopeEnded)
	}
	require.NoError(t, inner.Keep(x), "to the caller, since the scope around has ended")
	require.NoError(t, inner.Close())
	assert.Equal(t, int64(unit), r.liveBytes())
	require.NoError(t, x.Free())

	var none *tensor.Scope
	require.ErrorIs(t, none.Close(), tensor.ErrNotOpen)
	require.ErrorIs(t, none.Keep(), tensor.ErrNotOpen)
	require.ErrorIs(t, none.Launch(nil, cuda.Cover(1, 1)), tensor.ErrNotOpen)
	assert.Nil(t, none.Live())
	assert.Nil(t, none.Context())
	assert.Equal(t, "no scope", none.String())
}

// A report of a leak names type, shape and site.
func TestLiveTensorsAreReported(t *testing.T) {
	_, c := newRig(t)
	s := must(tensor.NewScope(c, tensor.Sites()))(t)
	require.NoError(t, s.Check())
	x := must(tensor.Zeros(s, tensor.Float32, 2, 3))(t)
	var site string // with the line
	require.NoError(t, tensor.Scoped(s, func(inner *tensor.Scope) error {
		y := must(tensor.From(inner, []half16{1, 2}))(t)
		require.Len(t, inner.Live(), 1)
		require.True(t, inner.Live()[0].Site.Known(), "the option holds for scopes inside")
		site = inner.Live()[0].Site.String()
		return inner.Keep(y)
	}))
	err := s.Check()
	var leak *tensor.LeakError
	require.ErrorAs(t, err, &leak)
	require.Len(t, leak.Live, 2)
	assert.Equal(t, []int{2, 3}, leak.Live[0].Shape)
	assert.Equal(t, int64(24), leak.Live[0].Bytes)
	assert.Equal(t, site, leak.Live[1].Site.String(), "the place of Keep is none")
	assert.Regexp(t, `^tensor: 2 not freed
	float32\[2 3\], 24 bytes, made in tensor_test.TestLiveTensorsAreReported \(scope_test.go:\d+\)
	int16\[2\], 4 bytes, made in tensor_test.TestLiveTensorsAreReported.* \(scope_test.go:\d+\)$`, err.Error())
	require.NoError(t, x.Free())
	assert.Len(t, s.Live(), 1)
	require.NoError(t, s.Close())
	require.NoError(t, s.Check())
}

type half16 = int16

// The list of a scope stays short where tensors are freed by hand, and whichever is kept then is the right one.
func TestAScopeForgetsFreedTensors(t *testing.T) {
	r, c := newRig(t)
	s := must(tensor.NewScope(c))(t)
	var every []*tensor.Tensor
	for i := range 5000 {
		x := must(tensor.New(s, tensor.Int8, i+1))(t)
		if i%100 == 0 {
			require.NoError(t, x.Allocate())
			every = append(every, x)
		} else {
			require.NoError(t, x.Free())
		}
	}
	assert.Less(t, tensor.ListLen(s), 300)
	assert.Len(t, s.Live(), 50)
	require.NoError(t, s.Keep(every[20], every[49]))
	require.NoError(t, s.Close())
	for i, x := range every {
		assert.Equal(t, i == 20 || i == 49, x.Live(), "%d", i)
	}
	assert.Equal(t, int64((4+10)*unit), r.liveBytes())
	require.NoError(t, every[20].Free())
	require.NoError(t, every[49].Free())
}

// A capture that fails or panics leaves no tensor of the scopes in it, and the context stays usable.
func TestScopesInCapturesThatFail(t *testing.T) {
	r, c := newRig(t)
	mine := errors.New("mine")
	fails := func(how func() error) func() error {
		return func() error {
			return tensor.Scoped(c, func(s *tensor.Scope) error {
				return tensor.Scoped(s, func(inner *tensor.Scope) error {
					require.NoError(t, must(tensor.Zeros(inner, tensor.Int8, 100))(t).Allocate())
					allocated(t, s, tensor.Int8, 100)
					return how()
				})
			})
		}
	}
	_, err := c.Capture(fails(func() error { return mine }))
	require.ErrorIs(t, err, mine)
	assert.PanicsWithValue(t, "mine", func() { _, _ = c.Capture(fails(func() error { panic("mine") })) })
	x := must(tensor.From(c, count[int8](3)))(t)
	sees[int8](t, x, 0, 1, 2)
	require.NoError(t, x.Free())
	assert.Zero(t, r.liveBytes())
	_, err = r.dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	assert.Zero(t, r.dev.Stats().ReservedBytes)
}

// A scope inside of a capture takes its memory from the graph, and gives it back there: at each launch the
// same work is done.
func TestScopesInCaptures(t *testing.T) {
	r, c := newRig(t)
	in := must(tensor.From(c, count[float32](6), 2, 3))(t)
	out := allocated(t, c, tensor.Float32, 3, 2)
	sum := must(tensor.Zeros(c, tensor.Float32, 6))(t)
	require.NoError(t, sum.Allocate(), "before the capture: it outlives the graph")
	before := r.liveBytes()
	g, err := c.Capture(func() error {
		return tensor.Scoped(c, func(s *tensor.Scope) error {
			x := must(tensor.Clone(s, must(in.Transpose(0, 1))(t)))(t)
			zeros := must(tensor.Zeros(s, tensor.Float32, 3, 2))(t)
			require.NoError(t, tensor.Copy(s, must(zeros.Index(1, 0))(t), must(x.Index(1, 0))(t)))
			require.NoError(t, tensor.Fill(s, must(zeros.Index(0, 2))(t), float32(7)))
			for _, err := range []error{
				func() error { _, err := tensor.Read[float32](x); return err }(),
				func() error { _, err := tensor.Read[float32](must(x.Index(1, 0))(t)); return err }(),
				tensor.Write(x, make([]float32, 6)),
				func() error { _, err := tensor.From(s, []float32{1}); return err }(),
				func() error { _, err := tensor.Sprint(x); return err }(),
			} {
				require.ErrorIs(t, err, cuda.ErrCapturing)
			}
			return tensor.Copy(s, out, zeros)
		})
	})
	require.NoError(t, err)
	assert.LessOrEqual(t, r.liveBytes(), before, "tensors of the capture are freed")
	for i := range 3 {
		values := count[float32](6)
		values[1] = float32(10 * i)
		require.NoError(t, tensor.Write(in, values))
		require.NoError(t, g.Launch(c))
		sees(t, out, 0, 0, float32(10*i), 0, 7, 7)
	}
	require.NoError(t, g.Close())

	// A scope around a capture frees the result of the graph when it ends.
	var result *tensor.Tensor
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		g, err := c.Capture(func() error {
			result = must(tensor.Full(s, int32(4), 3))(t)
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, g.Launch(c))
		sees[int32](t, result, 4, 4, 4)
		return g.Close()
	}))
	assert.False(t, result.Live())
	for _, x := range []*tensor.Tensor{in, out, sum} {
		require.NoError(t, x.Free())
	}
}

// Close of a scope whose device was closed before returns one error for each tensor that was live, once.
func TestAScopeOfAClosedDevice(t *testing.T) {
	dev := must(vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true})}))(t)
	c := must(cuda.NewContext(must(dev.NewStream())(t)))(t)
	s := must(tensor.NewScope(c))(t)
	var all []*tensor.Tensor
	for range 4 {
		all = append(all, allocated(t, s, tensor.Int8, 100))
	}
	require.NoError(t, all[1].Free())
	assert.Len(t, s.Live(), 3)
	var leaked *vram.InUseError
	require.ErrorAs(t, dev.Close(), &leaked)
	err := s.Close()
	require.ErrorIs(t, err, vram.ErrClosed)
	assert.Equal(t, 3, strings.Count(err.Error(), "\n")+1, "an error of each tensor: %v", err)
	for _, x := range all {
		assert.False(t, x.Live())
	}
	assert.Empty(t, s.Live())
	require.NoError(t, s.Close())
	require.NoError(t, c.Close())
}

// Memory has the tag that the scope had when the tensor was made: also of tensors that are allocated later, of operations' temporary ones,
// and in a scope inside.
func TestTagsOfAScope(t *testing.T) {
	c := must(cuda.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true}), SampleBytes: 1}))(t)
	defer func() { require.NoError(t, c.Close()) }()
	s := must(tensor.NewScope(c))(t)
	plain := allocated(t, s, tensor.Int8, 100)
	s.SetTag("a")
	late := must(tensor.Zeros(s, tensor.Int8, 200))(t)
	inner := must(tensor.NewScope(s))(t)
	dirty := must(tensor.Full(inner, int8(7), 200))(t)
	allocated(t, inner, tensor.Int8, 300)
	require.NoError(t, dirty.Free(), "its memory is not zero")
	s.SetTag("b")
	require.NoError(t, late.Allocate())
	assert.Equal(t, make([]int8, 200), must(tensor.Read[int8](late))(t))
	var slot tensor.Slot
	temporary := must(slot.New(s, tensor.Int8, must(layout.Of(400))(t)))(t)
	s.SetTag("")
	allocated(t, s, tensor.Int8, 500)
	bytes := map[string]int64{}
	for _, r := range c.Device().Profile().Records {
		bytes[r.Tag] += r.InUse.Bytes
	}
	assert.Equal(t, map[string]int64{"": 600, "a": 500, "b": 400}, bytes)
	require.NoError(t, errors.Join(temporary.Free(), plain.Free(), inner.Close(), s.Close()))
}

// A tensor that is kept goes to the nearest scope around that has not ended, and from there to the caller: for scopes in each other of
// which any have ended.
func TestKeptTensorsGoToTheNearestScope(t *testing.T) {
	r, c := newRig(t)
	const depth = 4
	for ended := range 1 << (depth - 1) {
		var scopes [depth]*tensor.Scope
		var at tensor.Context = c
		for i := range scopes {
			scopes[i] = must(tensor.NewScope(at))(t)
			at = scopes[i]
		}
		for i := range depth - 1 {
			if ended>>i&1 != 0 {
				require.NoError(t, scopes[i].Close())
			}
		}
		inner := scopes[depth-1]
		x := allocated(t, inner, tensor.Int8, 100)
		require.NoError(t, inner.Keep(must(x.Narrow(0, 1, 2))(t)))
		require.NoError(t, inner.Close())
		nearest := depth - 2
		for nearest >= 0 && ended>>nearest&1 != 0 {
			nearest--
		}
		for i := depth - 2; i >= 0; i-- {
			require.Equal(t, i >= nearest, x.Live(), "ended %b, scope %d", ended, i)
			if i == nearest {
				require.Len(t, scopes[i].Live(), 1)
			}
			require.NoError(t, scopes[i].Close())
		}
		if nearest < 0 {
			require.True(t, x.Live(), "it is the caller's")
			require.NoError(t, x.Free())
		}
		require.False(t, x.Live(), "ended %b", ended)
		require.Zero(t, r.liveBytes())
	}
}

// Of first uses and frees of a tensor at the same time each use has the one memory of the tensor or is refused, one free succeeds, and no
// memory is lost.
func TestManyGoroutinesFreeATensor(t *testing.T) {
	r, c := newRig(t)
	live := r.liveBytes()
	for range 200 {
		x := must(tensor.New(c, tensor.Int8, 100))(t)
		var all sync.WaitGroup
		var freed atomic.Int32
		begin := make(chan struct{})
		for i := range 4 {
			all.Go(func() {
				<-begin
				call := x.Allocate
				if i%2 == 0 {
					call = x.Free
				}
				switch err := call(); {
				case err != nil:
					assert.ErrorIs(t, err, tensor.ErrFreed)
				case i%2 == 0:
					freed.Add(1)
				}
			})
		}
		close(begin)
		all.Wait()
		require.EqualValues(t, 1, freed.Load())
		require.ErrorIs(t, x.Allocate(), tensor.ErrFreed)
		require.Equal(t, live, r.liveBytes())
	}
}
