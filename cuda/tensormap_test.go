package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// copiesBox copies a box of a tensor of 16 columns to shared memory, and from there to its result.
const copiesBox = `.version 8.0
.target sm_90
.address_size 64
.visible .entry box(.param .align 64 .b8 map[128], .param .u64 from, .param .u64 to, .param .u32 row)
{
	.reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<4>;
	.shared .align 128 .b8 tile[256]; .shared .align 8 .b64 bar;
	mov.b64 %d0, map; cvta.param.u64 %d0, %d0; ld.param.u64 %d1, [to]; ld.param.u32 %r0, [row];
	mov.u32 %r1, tile; mov.u32 %r2, bar;
	mbarrier.init.shared::cta.b64 [%r2], 1;
	fence.proxy.async.shared::cta;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 256;
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d0, {0, %r0}], [%r2];
$WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %p, [%r2], 0;
	@!%p bra $WAIT;
	mov.u32 %r3, 0;
$COPY:
	add.u32 %r4, %r1, %r3; ld.shared.u32 %r5, [%r4];
	cvt.u64.u32 %d2, %r3; add.u64 %d2, %d1, %d2; st.global.u32 [%d2], %r5;
	add.u32 %r3, %r3, 4; setp.lt.u32 %p, %r3, 256;
	@%p bra $COPY;
	ret;
}
`

// contextOn is a context of a simulated device.
func contextOn(t *testing.T, config sim.Config) *cuda.Context {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: sim.New(config)})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Close())
		assert.NoError(t, dev.Close())
	})
	return c
}

// A kernel takes a tensor map by value, and copies a box of the tensor that it describes.
func TestATensorMapOfABuffer(t *testing.T) {
	c := contextOn(t, sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
	from, err := c.Alloc(6 * 64)
	require.NoError(t, err)
	to, err := c.Alloc(4 * 64)
	require.NoError(t, err)
	host := make([]float32, 6*16)
	for n := range host {
		host[n] = float32(n)
	}
	require.NoError(t, cuda.CopyIn(c, from, host))
	encoded, err := c.EncodeTensorMap(cudadrv.TensorMap{
		Ptr: from.Ptr(), Type: cudadrv.TensorFloat32, Rank: 2, Dims: [cudadrv.MaxTensorRank]int64{16, 6},
		Strides: [cudadrv.MaxTensorRank - 1]int64{64}, Box: [cudadrv.MaxTensorRank]int32{16, 4},
	})
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(copiesBox))
	require.NoError(t, err)
	f, err := m.Function("box")
	require.NoError(t, err)
	one := cuda.Geometry{Grid: cuda.Dim3{X: 1, Y: 1, Z: 1}, Block: cuda.Dim3{X: 1, Y: 1, Z: 1}}
	require.NoError(t, c.Launch(f, one, cuda.Value(encoded), cuda.In(from), cuda.Out(to), cuda.Value(uint32(3))))
	got := make([]float32, 4*16)
	require.NoError(t, cuda.CopyOut(c, got, to))
	assert.Equal(t, append(host[3*16:], make([]float32, 16)...), got, "the row beyond the last one is zeros")
	_, err = c.EncodeTensorMap(cudadrv.TensorMap{})
	require.ErrorIs(t, err, cudadrv.InvalidValue)
	require.NoError(t, m.Unload())
	require.NoError(t, from.Free())
	require.NoError(t, to.Free())
	_, err = (*cuda.Context)(nil).EncodeTensorMap(cudadrv.TensorMap{})
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}

// A device without bulk copies refuses to encode.
func TestTensorMapsOfADeviceWithoutBulkCopies(t *testing.T) {
	c := contextOn(t, sim.Config{Without: cudadrv.BulkTensors})
	_, err := c.EncodeTensorMap(cudadrv.TensorMap{})
	require.ErrorIs(t, err, cudadrv.NotSupported)
}

// Each call needs one capability, and is refused without it alone.
func TestCallsNeedTheirCapability(t *testing.T) {
	for name, x := range map[string]struct {
		needs cudadrv.Capability
		call  func(c *cuda.Context) error
	}{
		"capture": {cudadrv.GraphLaunches, func(c *cuda.Context) error {
			g, err := c.Capture(func() error { return nil })
			if err == nil {
				err = g.Close()
			}
			return err
		}},
		"profile": {cudadrv.EventTiming, func(c *cuda.Context) error {
			p, err := c.StartProfile()
			if err == nil {
				_, err = p.Stop()
			}
			return err
		}},
	} {
		for one := cudadrv.VirtualMemory; one <= cudadrv.BulkTensors; one <<= 1 {
			err := x.call(contextOn(t, sim.Config{Without: one}))
			if one == x.needs {
				require.ErrorIs(t, err, cudadrv.NotSupported, name)
			} else {
				require.NoError(t, err, "%s without %v", name, one)
			}
		}
	}
}
