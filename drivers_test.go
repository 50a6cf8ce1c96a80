package vram

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// counted is a driver that answers DeviceCount only.
type counted struct {
	cudadrv.Driver
	count int
	err   error
}

func (c counted) DeviceCount() (int, error) { return c.count, c.err }
func (counted) Name() string                { return "dynamic" }

// auto takes the GPU where there is one, the simulator where there is none, and neither where the
// driver is broken.
func TestAutoSimulatesOnlyWithoutAGPU(t *testing.T) {
	call := &cudadrv.CallError{Func: "cuInit", Result: cudadrv.Unknown}
	for name, c := range map[string]struct {
		counted
		want string // "": an error
	}{
		"a device":            {counted{count: 1}, "dynamic"},
		"no devices":          {counted{}, "sim"},
		"no library":          {counted{err: &dynamic.LibraryError{Tried: []string{"libcuda.so.1"}}}, "sim"},
		"no device":           {counted{err: &dynamic.InitError{Call: &cudadrv.CallError{Func: "cuInit", Result: cudadrv.NoDevice}}}, "sim"},
		"an old driver":       {counted{err: &dynamic.VersionError{Have: 10020, Needed: 11080}}, ""},
		"another library":     {counted{err: &dynamic.SymbolError{Symbols: []string{"cuMemAlloc_v2"}}}, ""},
		"a driver that fails": {counted{err: &dynamic.InitError{Call: call}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := automatic(c.counted)
			if c.want == "" {
				require.ErrorIs(t, err, ErrNoDriver)
				assert.True(t, errors.Is(err, c.err))
				assert.Nil(t, d)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, d.Name())
		})
	}
}
