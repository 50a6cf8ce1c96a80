package cudadrv_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// An address is hexadecimal, and a number where a number is asked for.
func TestAddressesPrintInHexadecimal(t *testing.T) {
	p := cudadrv.Ptr(0x7f0000000200)
	for format, want := range map[string]string{
		"%v": "0x7f0000000200", "%s": "0x7f0000000200", "%+v": "0x7f0000000200", "%#v": "0x7f0000000200", "%x": "7f0000000200",
		"%#x": "0x7f0000000200", "%d": "139637976728064", "%X": "7F0000000200", "%16v": "  0x7f0000000200", "%-16v|": "0x7f0000000200  |",
		"%016x": "00007f0000000200",
	} {
		assert.Equal(t, want, fmt.Sprintf(format, p), format)
	}
	assert.Equal(t, "0x0", fmt.Sprint(cudadrv.Ptr(0)))
	assert.Equal(t, "{0x10}", fmt.Sprintf("%v", struct{ P cudadrv.Ptr }{16}), "inside others, too")
	assert.Equal(t, "0x7f0000000200", p.String())
}

func TestDevicesPrintOnOneLine(t *testing.T) {
	i := cudadrv.Info{
		Driver: "sim", Name: "simulated GPU", Ordinal: 1, DriverVersion: 13020, TotalBytes: 140 << 30, GranularityBytes: 2 << 20,
	}
	for _, format := range []string{"%v", "%+v", "%s"} {
		assert.Equal(t, "device 1, simulated GPU, 140 GiB in pages of 2 MiB, driver sim 13.2", fmt.Sprintf(format, i))
	}
	i.GranularityBytes = 0
	assert.Equal(t, "device 1, simulated GPU, 140 GiB, driver sim 13.2", i.String())
	assert.Equal(t, "device 3 of the driver dynamic, not opened", cudadrv.Info{Driver: "dynamic", Ordinal: 3}.String())
	assert.Equal(t, "virtual memory, capture state", (cudadrv.VirtualMemory | cudadrv.CaptureInformation).String())
	assert.Equal(t, "blocking streams, 0x80000000", (cudadrv.BlockingCreation | 1<<31).String())
	assert.Equal(t, "none", cudadrv.Capability(0).String())
}

// Addresses and handles are text in hexadecimal, and are read back.
func TestHandlesAsText(t *testing.T) {
	text, err := cudadrv.Ptr(0x7f00).MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "0x7f00", string(text))
	var p cudadrv.Ptr
	require.NoError(t, p.UnmarshalText(text))
	assert.Equal(t, cudadrv.Ptr(0x7f00), p)
	require.Error(t, p.UnmarshalText([]byte("x")))
	assert.Equal(t, cudadrv.Ptr(0x7f00), p)
	text, err = cudadrv.Stream(0).MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "0x0", string(text))
	var s cudadrv.Stream
	require.NoError(t, s.UnmarshalText([]byte("18")))
	assert.Equal(t, cudadrv.Stream(18), s)
	for _, wrong := range []string{"", "x", "-1", "0x1ffffffffffffffff"} {
		require.ErrorContains(t, s.UnmarshalText([]byte(wrong)), "is not a handle of a stream")
		require.ErrorContains(t, p.UnmarshalText([]byte(wrong)), "is not an address")
	}
	assert.Equal(t, cudadrv.Stream(18), s)
	assert.Equal(t, cudadrv.Ptr(0x7f00), p)
	for want, handle := range map[string]interface{ MarshalText() ([]byte, error) }{
		"0x1f": cudadrv.Event(31), "0x0": cudadrv.Handle(0), "0xffffffffffffffff": cudadrv.Context(1<<64 - 1), "0x7": cudadrv.Graph(7),
	} {
		text, err = handle.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
