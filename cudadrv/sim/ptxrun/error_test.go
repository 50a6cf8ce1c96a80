package ptxrun

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Each kind of fault has the result that a GPU would give, and an unknown mistake is a failed launch.
func TestResultsOfFaults(t *testing.T) {
	t.Parallel()
	want := map[interp.Kind]cudadrv.Result{
		interp.OutOfBounds: cudadrv.IllegalAddress, interp.NotLive: cudadrv.IllegalAddress, interp.Misaligned: cudadrv.MisalignedAddress,
		interp.Assertion: cudadrv.AssertionFailed, interp.Unsupported: cudadrv.NotSupported,
	}
	for kind := range interp.Kind(64) {
		result, known := want[kind]
		if !known {
			result = cudadrv.LaunchFailed
		}
		assert.Equal(t, result, (&Error{Err: &interp.Fault{Kind: kind}}).Result(), "%v", kind)
	}
	assert.Equal(t, cudadrv.LaunchFailed, (&Error{Err: errors.ErrUnsupported}).Result())
	assert.Equal(t, cudadrv.LaunchFailed, (*Error)(nil).Result())
}

func TestTheTextOfAFailedLaunch(t *testing.T) {
	t.Parallel()
	a := &Argument{Index: 1, Name: "x", Buffer: Buffer{Ptr: 512, Bytes: 64, Tag: "weights"}}
	kernel, _, argument := (&Error{Kernel: "add", Argument: a}).FailedLaunch()
	assert.Equal(t, "add", kernel)
	assert.Equal(t, a.String()+": "+a.Buffer.String(), argument)
	_, _, argument = (&Error{Kernel: "add"}).FailedLaunch()
	assert.Empty(t, argument)
}

// The argument of a fault is the closest one that is not above its address, first of arguments whose buffer has the address, in any
// order of the arguments.
func TestTheArgumentOfAnAddress(t *testing.T) {
	t.Parallel()
	m, err := ptx.Parse(".version 7.0\n.target sm_70\n.address_size 64\n" +
		".visible .entry k(.param .u32 n, .param .u64 a, .param .u64 b, .param .u64 c, .param .u64 d) { ret; }")
	require.NoError(t, err)
	buffers := []Buffer{{Ptr: 1000, Bytes: 100}, {Ptr: 2000, Bytes: 100}}
	l := &launched{entry: m.Functions[0], buffer: func(p cudadrv.Ptr) (Buffer, bool) {
		for _, b := range buffers {
			if p >= b.Ptr && p < b.Ptr+cudadrv.Ptr(b.Bytes) {
				return b, true
			}
		}
		return Buffer{}, false
	}}
	of := func(addresses ...uint64) {
		l.KernelLaunch = sim.KernelLaunch{Params: make([]byte, 8)}
		for _, p := range addresses {
			l.Params = binary.LittleEndian.AppendUint64(l.Params, p)
		}
	}
	for _, c := range []struct {
		at     cudadrv.Ptr
		want   int // from 1; 0: none
		inside bool
	}{
		{999, 0, false},
		{1000, 1, true},
		{1009, 1, true},
		{1010, 2, true},
		{1059, 2, true},
		{1060, 3, true},
		{1099, 3, true},
		{1100, 1, false}, // its buffer ends closest
		{2005, 4, true},
		{2099, 4, true},
		{2100, 4, false},
		{9999, 4, false},
	} {
		for _, turned := range []bool{false, true} {
			want := c.want
			if of(1000, 1010, 1060, 2000); turned {
				of(2000, 1060, 1010, 1000)
				want = (5 - want) % 5
			}
			best, inside := l.argumentAt(c.at)
			assert.Equal(t, c.inside, inside, "%d", c.at)
			switch {
			case c.want == 0:
				assert.Nil(t, best, "%d", c.at)
			case assert.NotNil(t, best, "%d", c.at):
				if c.inside {
					assert.Equal(t, want, best.Index, "%d, turned: %v", c.at, turned)
				}
				assert.Equal(t, buffers[c.want/4], best.Buffer, "%d", c.at)
			}
		}
	}
}

func TestZerosAtTheEndOfAnImage(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{"": "", "\x00": "", "a": "a", "a\x00\x00": "a", "a\x00b\x00": "a\x00b", "a\x01": "a\x01"} {
		assert.Equal(t, want, text([]byte(image)), "%q", image)
	}
}

// A tensor map keeps its numbers, and is of the short floats of 32 bits only where its type is.
func TestTensorMapsOfKernels(t *testing.T) {
	t.Parallel()
	dev, err := sim.New(sim.Config{Bytes: true, TimedKernels: true}).Open(0)
	require.NoError(t, err)
	for of := range cudadrv.TensorType(64) {
		if of.Bytes() == 0 {
			continue
		}
		want := cudadrv.TensorMap{
			Ptr: 0x1000, Type: of, Swizzle: cudadrv.Swizzle128, Rank: 2, Dims: [cudadrv.MaxTensorRank]int64{64, 7},
			Strides: [cudadrv.MaxTensorRank - 1]int64{1024}, Box: [cudadrv.MaxTensorRank]int32{16, 3},
		}
		encoded, err := dev.(cudadrv.TensorMaps).TensorMapEncodeTiled(want)
		require.NoError(t, err, "%v", of)
		got, ok := tensor(encoded[:])
		require.True(t, ok)
		assert.Equal(t, interp.Tensor{
			Start: 0x1000, ElementBytes: int(of.Bytes()), Rank: 2, Dims: want.Dims, Strides: want.Strides,
			Box: [cudadrv.MaxTensorRank]int64{16, 3}, Swizzle: 8, TF32: of == cudadrv.TensorTFloat32,
		}, got, "%v", of)
	}
	require.NoError(t, dev.Close())
}
