package tensor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// work uses each way to the driver once.
func work(at tensor.Context, source []float64) error {
	return tensor.Scoped(at, func(s *tensor.Scope) error {
		x, err := tensor.From(s, source, 64, 256)
		if err != nil {
			return err
		}
		y, err := tensor.Zeros(s, tensor.Float64, 256, 64)
		if err != nil {
			return err
		}
		columns, err := x.Transpose(0, 1)
		if err != nil {
			return err
		}
		some, err := columns.Slice(0, 0, 256, 64)
		if err != nil {
			return err
		}
		part, err := y.Narrow(0, 0, 4)
		if err != nil {
			return err
		}
		if err := tensor.Copy(s, part, some); err != nil {
			return err
		}
		reversed, err := part.Slice(0, 3, -1, -1)
		if err != nil {
			return err
		}
		if err := tensor.Copy(s, part, reversed); err != nil { // staged
			return err
		}
		if err := tensor.Fill(s, some, 1.5); err != nil {
			return err
		}
		if _, err := tensor.Full(s, 2.5, 3); err != nil {
			return err
		}
		if err := tensor.Write(some, make([]float64, some.Len())); err != nil {
			return err
		}
		if _, err := tensor.Clone(s, some); err != nil {
			return err
		}
		if _, err := tensor.Read[float64](part); err != nil {
			return err
		}
		wide, err := x.Index(1, 3)
		if err != nil {
			return err
		}
		if _, err := tensor.Sprint(y); err != nil {
			return err
		}
		_, err = tensor.Read[float64](wide) // packed
		return err
	})
}

// fills fills elements of each size, next to each other and apart.
func fills(s *tensor.Scope) error {
	var err error
	for _, fill := range []func(t *tensor.Tensor) error{
		func(t *tensor.Tensor) error { return tensor.Fill(s, t, int8(5)) },
		func(t *tensor.Tensor) error { return tensor.Fill(s, t, int16(5)) },
		func(t *tensor.Tensor) error { return tensor.Fill(s, t, int32(5)) },
		func(t *tensor.Tensor) error { return tensor.Fill(s, t, int64(5)) },
	} {
		for _, of := range []tensor.Type{tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64} {
			t, newErr := tensor.New(s, of, 4, 6)
			if newErr != nil {
				return newErr
			}
			var refused *tensor.TypeError
			if err = fill(t); errors.As(err, &refused) { // for another size
				continue
			}
			apart, narrowErr := t.Narrow(1, 1, 3)
			if err = errors.Join(err, narrowErr); err != nil {
				return err
			}
			if err = fill(apart); err != nil {
				return err
			}
		}
	}
	return nil
}

// Whichever driver call fails, the error is the driver's, nothing stays allocated, and the same work succeeds
// afterwards.
func TestDriverCallsThatFail(t *testing.T) {
	var faults *fault.Driver
	r, c := newRig(t, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	source := count[float64](64 * 256)
	require.NoError(t, work(c, source))
	refused := 0
	for call := uint64(1); ; call++ {
		before := faults.Injected()
		require.NoError(t, faults.Add(fault.Rule{First: call, Result: cudadrv.Unknown}))
		err := work(c, source)
		injected := faults.Injected() > before
		faults.Clear()
		if !injected {
			require.NoError(t, err)
			break
		}
		if err != nil {
			refused++
			require.ErrorIs(t, err, cudadrv.Unknown, "call %d", call)
		}
		assert.Zero(t, r.liveBytes(), "call %d", call)
		require.NoError(t, work(c, source), "call %d", call)
	}
	assert.Greater(t, refused, 30)
}

// A copy or a fill that fails is an error of the work: none is passed over.
func TestEachCopyThatFailsIsAnError(t *testing.T) {
	var faults *fault.Driver
	r, c := newRig(t, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	source := count[float64](64 * 256)
	for name, work := range map[string]func() error{
		"work": func() error { return work(c, source) }, "fills": func() error { return tensor.Scoped(c, fills) },
	} {
		functions := map[string]int{}
		faults.SetBefore(func(function string) {
			if strings.HasPrefix(function, "cuMemcpy") || strings.HasPrefix(function, "cuMemset") {
				functions[function]++
			}
		})
		require.NoError(t, work(), name)
		faults.SetBefore(nil)
		assert.GreaterOrEqual(t, len(functions), 4, "%s: %v", name, functions)
		for function, calls := range functions {
			for call := range calls {
				require.NoError(t, faults.Add(fault.Rule{Func: function, First: uint64(call + 1), Result: cudadrv.Unknown})) //nolint:gosec // not negative
				require.ErrorIs(t, work(), cudadrv.Unknown, "%s: %s, call %d", name, function, call+1)
				faults.Clear()
				assert.Zero(t, r.liveBytes(), "%s: %s, call %d", name, function, call+1)
			}
		}
	}
}

// A copy between devices that fails is an error, and leaves nothing on either of them; names of operations are those that were called.
func TestCopiesBetweenDevicesThatFail(t *testing.T) {
	faults := fault.Wrap(sim.New(sim.Config{Bytes: true, Devices: 2}))
	set, err := vram.OpenAll(vram.Config{Driver: faults})
	require.NoError(t, err)
	var all []*cuda.Context
	for _, dev := range set.Devices() {
		all = append(all, must(cuda.NewContext(must(dev.NewStream())(t)))(t))
	}
	x := must(tensor.From(all[0], count[float32](6), 2, 3))(t)
	turned := must(x.Transpose(0, 1))(t)
	live := func() (all []int64) {
		for _, dev := range set.Devices() {
			all = append(all, dev.Stats().LiveBytes)
		}
		return all
	}
	before := live()
	for _, of := range []*tensor.Tensor{x, turned} {
		require.NoError(t, faults.Add(fault.Rule{Func: "cuMemcpyPeerAsync", Result: cudadrv.Unknown}))
		y, err := tensor.To(all[1], of)
		require.ErrorIs(t, err, cudadrv.Unknown, of)
		assert.Nil(t, y)
		faults.Clear()
		assert.Equal(t, before, live())
		y, err = tensor.To(all[1], of)
		require.NoError(t, err)
		require.NoError(t, y.Free())
	}
	require.NoError(t, x.Free())
	to := must(tensor.New(all[0], tensor.Float32, 2, 3))(t)
	for name, call := range map[string]func(*tensor.Tensor) error{
		"clone":      func(t *tensor.Tensor) error { _, err := tensor.Clone(all[0], t); return err },
		"contiguous": func(t *tensor.Tensor) error { _, err := tensor.Contiguous(all[0], t); return err },
		"copy of":    func(t *tensor.Tensor) error { return tensor.Copy(all[0], to, t) },
	} {
		require.ErrorIs(t, call(x), tensor.ErrFreed, name)
		require.ErrorContains(t, call(x), "tensor: "+name+" ")
		require.ErrorIs(t, call(nil), tensor.ErrNoTensor, name)
	}
	for _, c := range all {
		require.NoError(t, c.Close())
	}
	require.NoError(t, set.Close())
}

// After the end of its device a tensor cannot be freed, and its scope says so.
func TestAFreeThatFails(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Machine(sim.Config{Bytes: true}))
	c := must(cuda.NewContext(dev.Stream()))(t)
	own := must(tensor.Zeros(c, tensor.Int8, 100))(t)
	require.NoError(t, own.Allocate())
	err := tensor.Scoped(c, func(s *tensor.Scope) error {
		require.NoError(t, must(tensor.Zeros(s, tensor.Int8, 100))(t).Allocate())
		require.Error(t, dev.Close(), "a buffer lives")
		return nil
	})
	require.ErrorIs(t, err, vram.ErrClosed)
	require.NotErrorIs(t, err, tensor.ErrFreed)
	err = own.Free()
	require.ErrorIs(t, err, vram.ErrClosed)
	require.NotErrorIs(t, err, tensor.ErrFreed)
	require.ErrorContains(t, err, "tensor: free int8[100]")
}

// While one first use fills its memory another one comes first, or the tensor is freed: memory that is not used goes back.
func TestAFirstUseThatIsLate(t *testing.T) {
	var faults *fault.Driver
	r, c := newRig(t, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	during := func(f func()) {
		faults.SetBefore(func(function string) {
			if function == "cuMemsetD8Async" {
				faults.SetBefore(nil)
				f()
			}
		})
	}
	x := must(tensor.Zeros(c, tensor.Int32, 100))(t)
	var first cuda.Buffer
	during(func() { first = must(x.Buffer())(t) })
	assert.Equal(t, must(x.Buffer())(t), first)
	assert.NotZero(t, first)
	assert.Equal(t, int64(unit), r.liveBytes())
	require.NoError(t, x.Free())

	y := must(tensor.Zeros(c, tensor.Int32, 100))(t)
	during(func() { require.NoError(t, y.Free()) })
	require.ErrorIs(t, y.Allocate(), tensor.ErrFreed)
	assert.Zero(t, r.liveBytes())
}

// A tensor that could not be filled is freed.
func TestATensorThatCouldNotBeFilled(t *testing.T) {
	var faults *fault.Driver
	r, c := newRig(t, vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
		faults = fault.Wrap(inner)
		return faults
	}))
	x := must(tensor.From(c, count[int32](4), 2, 2))(t)
	before := r.liveBytes()
	for _, function := range []string{"cuMemcpyHtoDAsync", "cuMemcpyDtoDAsync", "cuMemsetD32Async"} {
		require.NoError(t, faults.Add(fault.Rule{Func: function, Result: cudadrv.Unknown}))
	}
	for _, made := range []func() (*tensor.Tensor, error){
		func() (*tensor.Tensor, error) { return tensor.From(c, count[int32](4)) },
		func() (*tensor.Tensor, error) { return tensor.Full(c, int32(4), 3) },
		func() (*tensor.Tensor, error) { return tensor.Clone(c, x) },
	} {
		y, err := made()
		require.ErrorIs(t, err, cudadrv.Unknown)
		assert.Nil(t, y)
		assert.Equal(t, before, r.liveBytes())
	}
	faults.Clear()
	require.NoError(t, x.Free())
}

// A device that is full refuses the first use; the tensor is as it was, and can be used once there is room.
func TestADeviceThatIsFull(t *testing.T) {
	r, c := newRig(t, vramtest.Machine(sim.Config{Bytes: true, TotalBytes: 64 << 20}))
	big := must(tensor.New(c, tensor.Uint8, 48<<20))(t)
	require.NoError(t, big.Allocate())
	x := must(tensor.Zeros(c, tensor.Uint8, 48<<20))(t)
	require.Error(t, x.Allocate())
	require.Error(t, tensor.Fill(c, x, uint8(1)))
	_, err := tensor.Clone(c, big)
	require.Error(t, err)
	require.True(t, x.Live())
	require.NoError(t, big.Free())
	require.NoError(t, c.Synchronize(t.Context()))
	require.NoError(t, x.Allocate())
	require.NoError(t, x.Free())
	assert.Zero(t, r.liveBytes())
}

// A tensor whose stream was closed is refused with an error of vram, and is as it was.
func TestAClosedStream(t *testing.T) {
	_, c := newRig(t)
	x := must(tensor.New(c, tensor.Uint8, 8))(t)
	require.NoError(t, c.Stream().Close())
	for range 2 {
		err := x.Allocate()
		require.ErrorIs(t, err, vram.ErrClosed)
		require.NotErrorIs(t, err, tensor.ErrFreed)
	}
	require.NoError(t, x.Free())
}
