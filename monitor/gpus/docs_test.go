//go:build linux && (amd64 || arm64)

package gpus_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/fakenvml"
	"github.com/go-vram/vram/monitor/gpus"
)

// listed prints the processes of all GPUs, as docs/troubleshooting.md has it.
func listed(ctx context.Context, out io.Writer) (err error) {
	reader, err := gpus.Open(gpus.Config{})
	if err != nil {
		return err
	}
	defer vram.CloseInto(&err, reader)
	devices, err := reader.Devices(ctx)
	if err != nil {
		return err
	}
	for _, d := range devices {
		for _, p := range d.Processes {
			fmt.Fprintln(out, d.PCI, p.PID, p.Command, p.Place, p.Bytes)
		}
	}
	return nil
}

// named configures a device as docs/troubleshooting.md has it.
func named(cfg vram.Config) vram.Config {
	cfg.Processes = gpus.OnDemand(gpus.Config{}).Processes
	return cfg
}

// A device of vram names the other processes in the error of a refusal, as docs/troubleshooting.md shows it. Where there is no
// library, requests fail as ever.
func TestADeviceNamesOtherProcesses(t *testing.T) {
	if err := listed(t.Context(), io.Discard); err != nil { // a machine without the library
		require.ErrorIs(t, err, gpus.ErrNoLibrary)
	}
	f := newFake(t)
	driver := sim.New(sim.Config{TotalBytes: 4 * gib})
	refused := func(cfg vram.Config) *vram.OutOfMemoryError {
		cfg.Driver = driver
		d, err := vram.Open(cfg)
		require.NoError(t, err)
		defer func() { require.NoError(t, d.Close()) }()
		info := d.Info()
		f.SetDevices(fakenvml.Device{}, fakenvml.Device{UUID: info.UUID.String(), Bus: 7, Total: 4 << 30, Used: 4 << 30})
		s, err := d.NewStream()
		require.NoError(t, err)
		other, err := driver.Open(0)
		require.NoError(t, err)
		p, err := other.MemAlloc(3 * gib)
		require.NoError(t, err)
		_, err = s.Alloc(3 * gib)
		short, ok := errors.AsType[*vram.OutOfMemoryError](err)
		require.True(t, ok)
		require.NoError(t, other.MemFree(p))
		require.NoError(t, other.Close())
		return short
	}
	f.AddProcess(1, fakenvml.Compute, 100, 3<<30, fakenvml.NoInstance)
	f.AddProcess(1, fakenvml.Graphics, 200, 1<<30, fakenvml.NoInstance)
	f.AddProcess(1, fakenvml.Compute, uint32(os.Getpid()), 2<<30, fakenvml.NoInstance)
	r := gpus.OnDemand(gpus.Config{Library: f.Path(), Files: machine()})
	short := refused(vram.Config{Processes: r.Processes})
	page, err := os.ReadFile("../../docs/troubleshooting.md")
	require.NoError(t, err)
	var part strings.Builder
	for i, p := range short.Processes {
		part.WriteString([]string{"; other processes on the GPU: ", " / "}[min(i, 1)] + p.String())
	}
	assert.Contains(t, string(page), "\n"+part.String()+"\n")
	assert.Contains(t, short.Error(), part.String())
	require.NoError(t, r.Close())

	assert.Error(t, refused(named(vram.Config{})).ProcessesErr, "no library, or another GPU")
}
