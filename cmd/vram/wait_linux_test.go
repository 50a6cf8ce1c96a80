//go:build amd64 || arm64

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/dynamic"
	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/fakenvml"
	"github.com/go-vram/vram/monitor/gpus"
)

// fakeMachine has fakes of libcuda and of NVML.
type fakeMachine struct {
	driver *dynamic.Driver
	nvml   *fakenvml.Fake
	reader *gpus.Reader
}

func newFakeMachine(t *testing.T) *fakeMachine {
	t.Helper()
	cuda, err := fakecuda.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fakes are C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	ml, err := fakenvml.Build(t.TempDir())
	require.NoError(t, err)
	f, err := fakenvml.Open(ml)
	require.NoError(t, err)
	m := &fakeMachine{dynamic.New(dynamic.Config{Library: cuda}), f, gpus.OnDemand(gpus.Config{Library: ml, Fresh: -1})}
	t.Cleanup(func() { require.NoError(t, m.reader.Close()) })
	return m
}

// wait waits for bytes, and returns the figures of the looks and the error.
func (m *fakeMachine) wait(t *testing.T, bytes int64) (free int64, begun []int64, err error) {
	t.Helper()
	w := waiting{driver: m.driver, reader: m.reader}
	free, err = w.until(t.Context(), bytes, minLook, func(free int64) { begun = append(begun, free) })
	return free, begun, err
}

// NVML's device of the same UUID is looked at until enough is free; the driver makes no context for that.
func TestWaitLooksByNVML(t *testing.T) {
	m := newFakeMachine(t)
	info, err := m.driver.Describe(0)
	require.NoError(t, err)
	m.nvml.SetDevices(
		fakenvml.Device{UUID: "GPU-00000000-0000-0000-0000-000000000000", Total: 8 << 30, Free: 8 << 30},
		fakenvml.Device{UUID: info.UUID.String(), Total: 8 << 30, Used: 7 << 30, Free: 1 << 30},
	)
	m.nvml.SetFreed(1, 1<<30)
	free, begun, err := m.wait(t, 3<<30)
	require.NoError(t, err)
	assert.Equal(t, int64(3<<30), free)
	assert.Equal(t, []int64{1 << 30}, begun, "told once")

	_, _, err = m.wait(t, 9<<30)
	require.EqualError(t, err, "device 0 has 8 GiB in all, less than 9 GiB")
}

// Where NVML does not list the GPU by UUID, as an instance of MIG, the driver has the figures.
func TestWaitLooksByTheDriver(t *testing.T) {
	m := newFakeMachine(t)
	m.nvml.SetDevices(fakenvml.Device{UUID: "GPU-00000000-0000-0000-0000-000000000000", Bus: 1, Total: 1 << 50, Free: 1 << 50})
	free, begun, err := m.wait(t, 1<<30)
	require.NoError(t, err)
	assert.Less(t, free, int64(1<<40))
	assert.Empty(t, begun)
	m.nvml.Fail("nvmlDeviceGetCount_v2", -1, 999)
	_, _, err = m.wait(t, 1<<30)
	require.NoError(t, err)
}

// The exit codes, on the simulated device.
func TestWaitExitCodes(t *testing.T) {
	for args, want := range map[string]int{
		"-free 1GiB":              exitOK,
		"-free 1000TiB":           exitFailed,
		"-free 1GiB -device 1":    exitFailed,
		"-free 0":                 exitUsage,
		"-free much":              exitUsage,
		"-free 1GiB -device x":    exitUsage,
		"-free 1GiB -device=-1":   exitUsage,
		"-free 1GiB -timeout=-1s": exitUsage,
		"-interval 1s":            exitUsage,
	} {
		code, stdout, stderr := vramCommand(t, append([]string{"wait", "-driver", "sim"}, strings.Fields(args)...)...)
		assert.Equal(t, want, code, "%s: %s", args, stderr)
		assert.Equal(t, want == exitOK, stdout != "", args)
	}
}

// The code is 3 when the time is over, and another one when the user interrupts.
func TestWaitIsLate(t *testing.T) {
	m := newFakeMachine(t)
	info, err := m.driver.Describe(0)
	require.NoError(t, err)
	m.nvml.SetDevices(fakenvml.Device{UUID: info.UUID.String(), Total: 8 << 30, Used: 7 << 30, Free: 1 << 30})
	synctest.Test(t, func(t *testing.T) { // where a look takes no time
		reader := gpus.OnDemand(gpus.Config{Library: m.nvml.Path(), Fresh: -1})
		defer func() { require.NoError(t, reader.Close()) }()
		var out, errs bytes.Buffer
		p := &program{ctx: t.Context(), stdout: &out, stderr: &errs, reader: reader}
		c := &waitCmd{Free: 3 << 30, Timeout: 50 * time.Millisecond, Interval: minLook}
		err := c.wait(p, waiting{driver: m.driver, reader: reader})
		require.EqualError(t, err, "device 0 has 1 GiB free after 50ms, want 3 GiB")
		assert.Equal(t, exitLate, codeOf(err))
		assert.Empty(t, out.String())
		assert.Equal(t, "device 0 has 1 GiB free, waiting for 3 GiB\n", errs.String())

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.ctx, c.Timeout = ctx, time.Hour
		err = c.wait(p, waiting{driver: m.driver, reader: reader})
		require.ErrorIs(t, err, context.Canceled)
		assert.Equal(t, exitFailed, codeOf(err))
	})
}

// The report lists the processes on all GPUs.
func TestInfoListsGPUs(t *testing.T) {
	m := newFakeMachine(t)
	m.nvml.SetDevices(fakenvml.Device{Name: "NVIDIA H100", UUID: "GPU-1", Total: 8 << 30, Free: 1 << 30})
	m.nvml.AddProcess(0, fakenvml.Compute, 1<<22, 3<<30, fakenvml.NoInstance)
	info := func(args ...string) string {
		var out, errs bytes.Buffer
		reader := gpus.OnDemand(gpus.Config{Library: m.nvml.Path()})
		code := runWith(t.Context(), append([]string{"info", "-driver", "sim"}, args...), &out, &errs, reader)
		require.Equal(t, exitOK, code, errs.String())
		assert.Zero(t, m.nvml.Started())
		return out.String()
	}
	text := info()
	assert.Contains(t, text, "GPU 0")
	assert.Contains(t, text, "NVIDIA H100, GPU-1, 0000:00:00.0")
	assert.Contains(t, text, "1.0 GiB of 8.0 GiB free")
	assert.Contains(t, text, "3 GiB (PID 4194304)")
	var r report
	require.NoError(t, json.Unmarshal([]byte(info("-json")), &r))
	require.Len(t, r.GPUs, 1)
	assert.Equal(t, 1<<22, r.GPUs[0].Processes[0].PID)
	assert.Empty(t, r.GPUsError)
	var out, errs bytes.Buffer
	code := runWith(t.Context(), []string{"info", "-driver", "sim"}, &out, &errs, gpus.OnDemand(gpus.Config{Library: "/no/such/library"}))
	require.Equal(t, exitOK, code, errs.String())
	assert.Contains(t, out.String(), "no NVML library")
}
