package vramtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// A closed device holds no addresses: a test may open any number, also where kernels have failed and where buffers were left.
func TestManyDevicesInOneTest(t *testing.T) {
	const devices = 150 // whose addresses are more than a process has
	for name, use := range map[string]func(c *cuda.Context, f *cuda.Function){
		"after a fault": func(c *cuda.Context, f *cuda.Function) {
			x := buffer(t, c, 4)
			require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(x), cuda.In(x), cuda.Value(uint32(2))))
			require.Error(t, c.Synchronize(t.Context()))
		},
		"with a buffer that was not freed": func(c *cuda.Context, _ *cuda.Function) { buffer(t, c, 4) },
		"after a fault that nobody waited for": func(c *cuda.Context, f *cuda.Function) {
			x := buffer(t, c, 4)
			require.NoError(t, c.Launch(f, cuda.Cover(2, 2), cuda.Out(x), cuda.In(x), cuda.Value(uint32(2))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			log := &sheet{}
			t.Cleanup(log.end)
			for range devices {
				dev := vramtest.Open(log, vramtest.Kernels(), vramtest.Expected())
				c, err := cuda.NewContext(dev.Stream())
				require.NoError(t, err)
				m, err := c.LoadModule([]byte(ptxOfCopy))
				require.NoError(t, err)
				f, err := m.Function("copy")
				require.NoError(t, err)
				use(c, f)
				require.Error(t, dev.Close())
			}
		})
	}
}

// A test may open any number of devices one after the other: a closed one has no addresses, also after a fault of its
// work, and where buffers live.
func TestManyDevicesOfOneTest(t *testing.T) {
	const devices = 100 // the addresses of a process are enough for 60
	for name, spoil := range map[string]func(dev *vramtest.Device, s *vram.Stream){
		"in order":      func(*vramtest.Device, *vram.Stream) {},
		"a live buffer": func(_ *vramtest.Device, s *vram.Stream) { _, _ = s.Alloc(1 << 20) },
		"work whose memory was gone": func(dev *vramtest.Device, s *vram.Stream) {
			p, err := dev.GPU().MemAddressReserve(sim.DefaultGranularityBytes)
			require.NoError(t, err)
			h, err := dev.GPU().MemCreate(sim.DefaultGranularityBytes)
			require.NoError(t, err)
			require.NoError(t, dev.GPU().MemMap(p, sim.DefaultGranularityBytes, h))
			require.NoError(t, dev.GPU().MemSetAccess(p, sim.DefaultGranularityBytes))
			require.NoError(t, dev.GPU().MemsetD8Async(p, 1, sim.DefaultGranularityBytes, s.Handle()))
			require.NoError(t, dev.GPU().MemUnmap(p, sim.DefaultGranularityBytes))
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range devices {
				dev := vramtest.Open(t, vramtest.Machine(sim.Config{Bytes: true, TimedKernels: true}), vramtest.Expected())
				s := dev.Stream()
				_, err := s.Alloc(1 << 20)
				require.NoError(t, err)
				spoil(dev, s)
				err = dev.Close()
				if name == "work whose memory was gone" {
					assert.ErrorIs(t, err, cudadrv.IllegalAddress)
				}
			}
		})
	}
}
