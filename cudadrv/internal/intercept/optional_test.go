package intercept_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/internal/intercept"
	"github.com/go-vram/vram/cudadrv/sim"
)

// full is a device with every optional call; it notes which one it was asked for.
type full struct {
	cudadrv.Device
	asked *string
}

func (f full) note(name string) error { *f.asked = name; return errNoted }

var errNoted = errors.New("noted")

func (f full) MemHostAlloc(int64) ([]byte, error) { return nil, f.note("cuMemHostAlloc") }
func (f full) MemFreeHost([]byte) error           { return f.note("cuMemFreeHost") }
func (f full) MemHostRegister([]byte) error       { return f.note("cuMemHostRegister") }

func (f full) MemHostUnregister([]byte) error { return f.note("cuMemHostUnregister") }

func (f full) LaunchHostFunc(_ cudadrv.Stream, _ func()) error { return f.note("cuLaunchHostFunc") }

func (f full) MemHostGetDevicePointer([]byte) (cudadrv.Ptr, error) {
	return 0, f.note("cuMemHostGetDevicePointer")
}

func (f full) MemcpyHtoDAsync(cudadrv.Ptr, []byte, cudadrv.Stream) error {
	return f.note("cuMemcpyHtoDAsync")
}

func (f full) MemcpyDtoHAsync([]byte, cudadrv.Ptr, cudadrv.Stream) error {
	return f.note("cuMemcpyDtoHAsync")
}

func (f full) MemCreateShareable(int64) (cudadrv.Handle, error) { return 0, f.note("cuMemCreate") }

func (f full) MemExportToShareableHandle(cudadrv.Handle) (int, error) {
	return 0, f.note("cuMemExportToShareableHandle")
}

func (f full) MemImportFromShareableHandle(int) (cudadrv.Handle, error) {
	return 0, f.note("cuMemImportFromShareableHandle")
}

func (f full) StreamIsCapturing(cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	return 0, f.note("cuStreamIsCapturing")
}

func (f full) StreamCreateBlocking() (cudadrv.Stream, error) { return 0, f.note("cuStreamCreate") }

// bare is a wrapper without optional calls of its own.
type bare struct{ cudadrv.Device }

func (b bare) Unwrap() cudadrv.Device { return b.Device }

// only is a device without optional calls.
type only struct{ cudadrv.Device }

// second drops the first result.
func second[T any](_ T, err error) error { return err }

// optionalCall is one of them with the number that the hook is told.
type optionalCall struct {
	call call.Call
	make func() error
}

// optionalCalls returns all of them on one device.
func optionalCalls(dev *intercept.Device) []optionalCall {
	return append([]optionalCall{
		{call.MemHostAlloc, func() error { return second(dev.MemHostAlloc(1)) }},
		{call.MemFreeHost, func() error { return dev.MemFreeHost(nil) }},
		{call.MemHostRegister, func() error { return dev.MemHostRegister(nil) }},
		{call.MemHostUnregister, func() error { return dev.MemHostUnregister(nil) }},
		{call.MemHostGetDevicePointer, func() error { return second(dev.MemHostGetDevicePointer(nil)) }},
		{call.MemcpyHtoDAsync, func() error { return dev.MemcpyHtoDAsync(1, nil, 1) }},
		{call.MemcpyDtoHAsync, func() error { return dev.MemcpyDtoHAsync(nil, 1, 1) }},
		{call.LaunchHostFunc, func() error { return dev.LaunchHostFunc(1, func() {}) }},
		{call.MemExportToShareableHandle, func() error { return second(dev.MemExportToShareableHandle(1)) }},
		{call.MemImportFromShareableHandle, func() error { return second(dev.MemImportFromShareableHandle(1)) }},
		{call.StreamIsCapturing, func() error { return second(dev.StreamIsCapturing(1)) }},
		{call.MemCreate, func() error { return second(dev.MemCreateShareable(1)) }},
		{call.StreamCreate, func() error { return second(dev.StreamCreateBlocking()) }},
	}, computeCalls(dev)...)
}

// Optional calls reach the device under their own names, also past a wrapper without them, and tell the hook.
func TestOptionalCallsReachTheDevice(t *testing.T) {
	var asked string
	inner, err := sim.New(sim.Config{}).Open(0)
	require.NoError(t, err)
	r := &recorder{refuse: call.Count}
	dev := intercept.Wrap(bare{full{inner, &asked}}, r)
	calls := optionalCalls(&dev)
	for c := call.Optional; c < call.Count; c++ {
		require.True(t, slices.ContainsFunc(calls, func(o optionalCall) bool { return o.call == c }), "%v", c)
	}
	for _, o := range calls {
		*r, asked = recorder{refuse: call.Count}, ""
		require.ErrorIs(t, o.make(), errNoted, "%v", o.call)
		assert.Equal(t, o.call.String(), asked)
		assert.Equal(t, []call.Call{o.call}, r.before)
		assert.Equal(t, []call.Call{o.call}, r.after)
	}
	assert.EqualValues(t, 77, dev.Context())
}

// Where the device lacks an optional call it is refused by name, after the hook was asked.
func TestOptionalCallsThatTheDeviceLacks(t *testing.T) {
	inner, err := sim.New(sim.Config{}).Open(0)
	require.NoError(t, err)
	r := &recorder{refuse: call.Count}
	dev := intercept.Wrap(only{inner}, r)
	for _, o := range optionalCalls(&dev) {
		*r = recorder{refuse: call.Count}
		err := o.make()
		require.ErrorIs(t, err, cudadrv.NotSupported)
		require.ErrorContains(t, err, o.call.String()+":")
		assert.Equal(t, []call.Call{o.call}, r.after)
	}
	assert.Zero(t, dev.Context())
}

// checked is a device whose owner declares sleep.
type checked struct {
	cudadrv.Device
	declared *[]cudadrv.Stream
}

func (c checked) SleepBegins(s cudadrv.Stream) { *c.declared = append(*c.declared, s) }
func (c checked) SleepEnds(s cudadrv.Stream)   { *c.declared = append(*c.declared, -s) }

// A declaration of sleep reaches a device that checks it, and no other, without the hook: it is no call.
func TestDeclarationsOfSleep(t *testing.T) {
	inner, err := sim.New(sim.Config{}).Open(0)
	require.NoError(t, err)
	var declared []cudadrv.Stream
	for _, device := range []cudadrv.Device{only{inner}, bare{checked{inner, &declared}}} {
		r := &recorder{refuse: call.Count}
		dev := intercept.Wrap(device, r)
		dev.SleepBegins(7)
		dev.SleepEnds(9)
		assert.Empty(t, r.before)
	}
	minus9 := cudadrv.Stream(9)
	assert.Equal(t, []cudadrv.Stream{7, -minus9}, declared)
}

// Where the device has no context, nothing runs in it.
func TestNoContextToRunIn(t *testing.T) {
	inner, err := sim.New(sim.Config{}).Open(0)
	require.NoError(t, err)
	dev := intercept.Wrap(only{inner}, quiet{})
	ran := false
	err = dev.WithContext(func() error {
		ran = true
		return nil
	})
	require.ErrorIs(t, err, cudadrv.NotSupported)
	assert.False(t, ran)
}
