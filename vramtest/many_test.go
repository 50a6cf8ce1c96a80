package vramtest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
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
