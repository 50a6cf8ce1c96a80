//go:build linux

package sim_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

func TestConformanceWithBytes(t *testing.T) {
	for name, config := range map[string]sim.Config{
		"stepped":           {Bytes: true, TimedKernels: true},
		"running":           {Bytes: true, TimedKernels: true, Clock: sim.Running},
		"no virtual memory": {Bytes: true, TimedKernels: true, NoVirtualMemory: true},
		"small granules":    {Bytes: true, TimedKernels: true, GranularityBytes: 64 << 10, TotalBytes: 1 << 30, Devices: 2},
	} {
		conform(t, name, config)
	}
}

// rig is a device with bytes, some memory that the host reads into, and the expected contents.
type rig struct {
	t    *testing.T
	dev  *sim.Device
	host []byte
}

func newRig(t *testing.T, config sim.Config) *rig {
	t.Helper()
	config.Bytes = true
	_, dev := start(t, config)
	host, err := dev.MemHostAlloc(granule)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, dev.Audit())
		assert.NoError(t, dev.Close())
		assert.NoError(t, dev.Audit())
	})
	return &rig{t, dev, host}
}

func (r *rig) plain(bytes int64) cudadrv.Ptr {
	r.t.Helper()
	p, err := r.dev.MemAlloc(bytes)
	require.NoError(r.t, err)
	return p
}

// read returns the byte at p, read on a stream of its own that waits for nobody.
func (r *rig) read(p cudadrv.Ptr) byte {
	r.t.Helper()
	s := newStream(r.t, r.dev)
	require.NoError(r.t, r.dev.MemcpyDtoHAsync(r.host[:1], p, s))
	require.NoError(r.t, r.dev.StreamSynchronize(s))
	return r.host[0]
}

// Work changes bytes when it runs, not when it is submitted.
func TestWorkRunsInItsTime(t *testing.T) {
	r := newRig(t, sim.Config{})
	const last = cudadrv.Ptr(granule - 1)
	p, s := r.plain(granule), newStream(t, r.dev)
	require.NoError(t, r.dev.Launch(s, ms))
	require.NoError(t, r.dev.MemsetD8Async(p, 7, granule, s))
	r.dev.Advance(ms)
	assert.Zero(t, r.read(p+last), "the memset has begun")
	r.dev.Advance(ms)
	assert.EqualValues(t, 7, r.read(p+last))
	require.NoError(t, r.dev.StreamDestroy(s))

	// The host memory changes when the copy runs.
	late := newStream(t, r.dev)
	require.NoError(t, r.dev.Launch(late, ms))
	require.NoError(t, r.dev.MemcpyDtoHAsync(r.host[1:3], p, late))
	r.dev.Advance(ms)
	assert.Zero(t, r.host[1])
	r.dev.Advance(ms)
	assert.Equal(t, []byte{7, 7, 0}, r.host[1:4])

	// Page-locked host memory is read when the copy runs.
	require.NoError(t, r.dev.Launch(late, ms))
	require.NoError(t, r.dev.MemcpyHtoDAsync(p, r.host[:2], late))
	r.host[0] = 9
	require.NoError(t, r.dev.StreamSynchronize(late))
	assert.EqualValues(t, 9, r.read(p))
	own := []byte{5}
	now := r.dev.Now()
	require.NoError(t, r.dev.Launch(late, ms))
	require.NoError(t, r.dev.MemcpyHtoDAsync(p, own, late))
	own[0] = 6
	assert.Greater(t, r.dev.Now(), now+ms, "the call waited for the copy")
	assert.EqualValues(t, 5, r.read(p))
}

// Memory that is handed to another stream too early is overwritten by the work that was still to come.
func TestEarlyReuseCorrupts(t *testing.T) {
	for name, order := range map[string]bool{"ordered": true, "not ordered": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, sim.Config{})
			p := r.plain(granule)
			first, second := newStream(t, r.dev), newStream(t, r.dev)
			require.NoError(t, r.dev.Launch(first, ms))
			require.NoError(t, r.dev.MemsetD8Async(p, 1, granule, first))
			if order {
				e, err := r.dev.EventCreate()
				require.NoError(t, err)
				require.NoError(t, r.dev.EventRecord(e, first))
				require.NoError(t, r.dev.StreamWaitEvent(second, e))
			}
			require.NoError(t, r.dev.MemsetD8Async(p, 2, granule, second))
			require.NoError(t, r.dev.CtxSynchronize())
			want := byte(1)
			if order {
				want = 2
			}
			assert.Equal(t, want, r.read(p))
		})
	}
}

// Work whose memory was unmapped before it ran ends the context, as on hardware; Close gives everything back.
func TestWorkOnMemoryThatIsGone(t *testing.T) {
	before := holdings(t)
	_, dev := start(t, sim.Config{Bytes: true})
	p, err := dev.MemAddressReserve(granule)
	require.NoError(t, err)
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemMap(p, granule, h))
	require.NoError(t, dev.MemSetAccess(p, granule))
	s := newStream(t, dev)
	host, err := dev.MemHostAlloc(1)
	require.NoError(t, err)
	q, err := dev.MemAlloc(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemsetD8Async(q, 7, granule, s))
	require.NoError(t, dev.StreamSynchronize(s))
	require.NoError(t, dev.MemsetD8Async(p, 1, granule, s))
	require.NoError(t, dev.MemcpyDtoHAsync(host, q, s))
	require.NoError(t, dev.MemUnmap(p, granule))
	ready, err := dev.StreamQuery(s)
	require.NoError(t, err)
	require.False(t, ready, "nothing is wrong yet")
	err = dev.StreamSynchronize(s)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.ErrorContains(t, err, "cuMemsetD8Async")
	assert.Zero(t, host[0], "later work does not run")
	_, err = dev.StreamQuery(s)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.ErrorIs(t, dev.MemRelease(h), cudadrv.IllegalAddress)
	_, err = dev.MemHostAlloc(1)
	require.ErrorIs(t, err, cudadrv.IllegalAddress)
	require.NoError(t, dev.Close())
	assert.Equal(t, before, holdings(t))
}

// A call that finds the end of work on freed memory reports its failure: no query returns success.
func TestAQueryTellsOfWorkOnMemoryThatIsGone(t *testing.T) {
	for name, query := range map[string]func(dev *sim.Device, s cudadrv.Stream, e cudadrv.Event) (bool, error){
		"of the stream": func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Event) (bool, error) { return dev.StreamQuery(s) },
		"of an event":   func(dev *sim.Device, _ cudadrv.Stream, e cudadrv.Event) (bool, error) { return dev.EventQuery(e) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, dev := start(t, sim.Config{Bytes: true, Clock: sim.Running})
				p, err := dev.MemAddressReserve(granule)
				require.NoError(t, err)
				h, err := dev.MemCreate(granule)
				require.NoError(t, err)
				require.NoError(t, dev.MemMap(p, granule, h))
				require.NoError(t, dev.MemSetAccess(p, granule))
				s := newStream(t, dev)
				e, err := dev.EventCreate()
				require.NoError(t, err)
				require.NoError(t, dev.Launch(s, time.Second))
				require.NoError(t, dev.MemsetD8Async(p, 1, granule, s))
				require.NoError(t, dev.EventRecord(e, s))
				require.NoError(t, dev.MemUnmap(p, granule))
				passed, err := query(dev, s, e)
				require.NoError(t, err)
				require.False(t, passed)
				time.Sleep(time.Minute) //nolint:forbidigo // In a bubble of synctest it takes no time.
				_, err = query(dev, s, e)
				require.ErrorIs(t, err, cudadrv.IllegalAddress)
				require.NoError(t, dev.Close())
			})
		})
	}
}

// A call after the end of work that failed reports the failure, and does nothing; so does a call that waits for that end.
func TestEachCallTellsOfWorkThatFailed(t *testing.T) {
	type device struct {
		*sim.Device
		s           cudadrv.Stream
		e           cudadrv.Event
		plain       cudadrv.Ptr
		owned, own  []byte
		reservation cudadrv.Ptr
	}
	for name, c := range map[string]struct {
		waits bool
		call  func(d *device) error
	}{
		"cuMemGetInfo":        {false, func(d *device) error { _, _, err := d.MemGetInfo(); return err }},
		"cuMemAlloc":          {false, func(d *device) error { _, err := d.MemAlloc(granule); return err }},
		"cuMemFree":           {true, func(d *device) error { return d.MemFree(d.plain) }},
		"cuMemHostAlloc":      {false, func(d *device) error { _, err := d.MemHostAlloc(granule); return err }},
		"cuMemFreeHost":       {true, func(d *device) error { return d.MemFreeHost(d.owned) }},
		"cuMemHostRegister":   {false, func(d *device) error { return d.MemHostRegister(make([]byte, 8)) }},
		"cuMemHostUnregister": {true, func(d *device) error { return d.MemHostUnregister(d.own) }},
		"cuMemAddressReserve": {false, func(d *device) error { _, err := d.MemAddressReserve(granule); return err }},
		"cuMemAddressFree":    {false, func(d *device) error { return d.MemAddressFree(d.reservation, granule) }},
		"cuMemCreate":         {false, func(d *device) error { _, err := d.MemCreate(granule); return err }},
		"cuStreamCreate":      {false, func(d *device) error { _, err := d.StreamCreate(); return err }},
		"cuStreamDestroy":     {false, func(d *device) error { return d.StreamDestroy(d.s) }},
		"cuStreamQuery":       {false, func(d *device) error { _, err := d.StreamQuery(0); return err }},
		"cuStreamSynchronize": {true, func(d *device) error { return d.StreamSynchronize(d.s) }},
		"cuStreamWaitEvent":   {false, func(d *device) error { return d.StreamWaitEvent(0, d.e) }},
		"cuCtxSynchronize":    {true, func(d *device) error { return d.CtxSynchronize() }},
		"cuEventCreate":       {false, func(d *device) error { _, err := d.EventCreate(); return err }},
		"cuEventDestroy":      {false, func(d *device) error { return d.EventDestroy(d.e) }},
		"cuEventQuery":        {false, func(d *device) error { _, err := d.EventQuery(d.e); return err }},
		"cuEventRecord":       {false, func(d *device) error { return d.EventRecord(d.e, 0) }},
		"cuEventSynchronize":  {true, func(d *device) error { return d.EventSynchronize(d.e) }},
		"cuMemsetD8Async":     {false, func(d *device) error { return d.MemsetD8Async(d.plain, 1, 8, 0) }},
		"cuMemcpyDtoHAsync":   {true, func(d *device) error { return d.MemcpyDtoHAsync(make([]byte, 8), d.plain, d.s) }}, // the memory is pageable
		"cuModuleLoadData":    {false, func(d *device) error { _, err := d.ModuleLoadData([]byte(addText)); return err }},
	} {
		for _, waits := range []bool{false, true} {
			if waits && !c.waits {
				continue
			}
			for _, clock := range []sim.Clock{sim.Stepped, sim.Running} {
				synctest.Test(t, func(t *testing.T) {
					_, dev := start(t, sim.Config{Bytes: true, TimedKernels: true, Clock: clock})
					d := &device{Device: dev, s: newStream(t, dev), own: make([]byte, 64)}
					d.e, d.plain = recorded(t, dev, 0), 0
					require.NoError(t, dev.MemHostRegister(d.own))
					p, err := dev.MemAddressReserve(granule)
					h, err2 := dev.MemCreate(granule)
					require.NoError(t, errors.Join(err, err2, dev.MemMap(p, granule, h), dev.MemSetAccess(p, granule)))
					d.plain, err = dev.MemAlloc(granule)
					require.NoError(t, err)
					d.owned, err = dev.MemHostAlloc(granule)
					require.NoError(t, err)
					d.reservation, err = dev.MemAddressReserve(granule)
					require.NoError(t, err)
					require.NoError(t, dev.Launch(d.s, time.Second))
					require.NoError(t, dev.MemsetD8Async(p, 1, granule, d.s))
					require.NoError(t, dev.EventRecord(d.e, d.s))
					require.NoError(t, dev.MemUnmap(p, granule))
					objects := dev.Objects()
					if !waits {
						dev.Advance(time.Minute)
						time.Sleep(time.Minute) //nolint:forbidigo // In a bubble of synctest it takes no time.
					}
					var failed *cudadrv.CallError
					require.ErrorAs(t, c.call(d), &failed, name)
					assert.Equal(t, cudadrv.IllegalAddress, failed.Result, name)
					assert.True(t, strings.HasPrefix(failed.Func, name), "%s: %s", name, failed.Func)
					assert.Equal(t, objects, dev.Objects(), "%s did something", name)
					require.NoError(t, dev.Audit(), name)
					require.NoError(t, dev.Close())
				})
			}
		}
	}
}

func TestPageLockedMemoryInTheBooks(t *testing.T) {
	r := newRig(t, sim.Config{})
	own := make([]byte, 1000)
	require.NoError(t, r.dev.MemHostRegister(own[100:300]))
	for _, part := range [][]byte{own[:101], own[299:], own, own[100:300], own[150:160]} {
		require.ErrorIs(t, r.dev.MemHostRegister(part), cudadrv.HostMemoryAlreadyRegistered)
	}
	require.NoError(t, r.dev.MemHostRegister(own[300:]))
	require.NoError(t, r.dev.MemHostRegister(own[:100]))
	p, err := r.dev.MemHostGetDevicePointer(own[150:])
	require.NoError(t, err)
	require.NoError(t, r.dev.MemsetD8Async(p, 3, 150, 0))
	require.ErrorIs(t, r.dev.MemsetD8Async(p, 3, 151, 0), cudadrv.IllegalAddress, "what is side by side here need not be there")
	require.NoError(t, r.dev.CtxSynchronize())
	assert.Equal(t, bytes.Repeat([]byte{3}, 150), own[150:300])
	assert.Zero(t, own[149])
	assert.Zero(t, own[300])

	require.ErrorIs(t, r.dev.MemFreeHost(own[100:]), cudadrv.InvalidValue, "it is the caller's")
	require.ErrorIs(t, r.dev.MemHostRegister(r.host), cudadrv.InvalidValue)
	for _, known := range [][]byte{own[101:], own[101:101], r.host, r.host[1:]} {
		require.ErrorIs(t, r.dev.MemHostUnregister(known), cudadrv.InvalidValue)
	}
	require.ErrorIs(t, r.dev.MemHostUnregister(make([]byte, 1)), cudadrv.HostMemoryNotRegistered)
	require.ErrorIs(t, r.dev.MemHostUnregister(nil), cudadrv.InvalidValue)
	require.NoError(t, r.dev.MemHostUnregister(own[100:101]))
	require.ErrorIs(t, r.dev.MemHostUnregister(own[100:]), cudadrv.HostMemoryNotRegistered)
	for _, gone := range [][]byte{own[150:], nil, make([]byte, 1)} {
		_, err = r.dev.MemHostGetDevicePointer(gone)
		require.ErrorIs(t, err, cudadrv.InvalidValue)
	}
	require.NoError(t, r.dev.MemHostRegister(own[100:200]))
	require.NoError(t, r.dev.Audit())
}

func TestPageLockedMemoryWithoutEnd(t *testing.T) {
	r := newRig(t, sim.Config{})
	_, err := r.dev.MemHostAlloc(1 << 50)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	_, err = r.dev.MemHostAlloc(1 << 36)
	require.NoError(t, err, "what nobody writes to costs nothing")
	// How much address space a process has free side by side is the machine's: one has no room for the first, one for three.
	for range 16 {
		if _, err = r.dev.MemHostAlloc(1 << 46); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, cudadrv.OperatingSystem, "no process has 2^50 bytes of addresses")
	require.NoError(t, r.dev.Audit())
}

// holdings returns the descriptors and mappings of the simulator's memory that the process has.
func holdings(t *testing.T) string {
	t.Helper()
	open, mapped := 0, 0
	links, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.Contains(name, "memfd:vram-sim") {
			open++
		}
	}
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "memfd:vram-sim") {
			mapped++
		}
	}
	return fmt.Sprintf("%d files, %d mappings", open, mapped)
}

func TestCloseGivesTheBytesBack(t *testing.T) {
	before := holdings(t)
	drv, dev := start(t, sim.Config{Bytes: true, Devices: 2})
	p, err := dev.MemAddressReserve(1 << 40)
	require.NoError(t, err)
	for i := range int64(3) {
		h, err := dev.MemCreate(granule)
		require.NoError(t, err)
		require.NoError(t, dev.MemMap(p+cudadrv.Ptr(2*i*granule), granule, h))
		require.NoError(t, dev.MemSetAccess(p+cudadrv.Ptr(2*i*granule), granule))
		require.NoError(t, dev.MemsetD8Async(p+cudadrv.Ptr(2*i*granule), 1, granule, 0))
	}
	_, err = dev.MemHostAlloc(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemHostRegister(make([]byte, 10)))
	assert.NotEqual(t, before, holdings(t))
	second, err := drv.Open(0)
	require.NoError(t, err)
	require.NoError(t, second.Close())
	assert.NotEqual(t, before, holdings(t), "another view is open")
	require.NoError(t, dev.Close())
	assert.Equal(t, before, holdings(t))

	third, err := drv.Open(0)
	require.NoError(t, err)
	require.NoError(t, drv.Device(0).Audit())
	require.NoError(t, third.Close())
	assert.Equal(t, before, holdings(t))
}

func TestBytesWantWholePages(t *testing.T) {
	_, err := sim.New(sim.Config{Bytes: true, GranularityBytes: 512}).Open(0)
	require.ErrorIs(t, err, cudadrv.ErrNoDriver)
	require.ErrorContains(t, err, "want a multiple")
}

// Without bytes there is no host memory, and work leaves no bytes.
func TestWithoutBytes(t *testing.T) {
	_, dev := start(t, sim.Config{})
	assert.False(t, dev.Info().Capabilities.Has(cudadrv.PinnedHost))
	_, err := dev.MemHostAlloc(1)
	require.ErrorIs(t, err, cudadrv.NotSupported)
	require.ErrorIs(t, dev.MemcpyDtoHAsync(make([]byte, 1), 1, 0), cudadrv.NotSupported)
	p, err := dev.MemAlloc(granule)
	require.NoError(t, err)
	require.ErrorIs(t, dev.MemcpyDtoHAsync(make([]byte, 1), p, 0), cudadrv.NotSupported)
	require.ErrorIs(t, dev.MemcpyHtoDAsync(p, make([]byte, 1), 0), cudadrv.NotSupported)
	before := holdings(t)
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = dev.MemsetD8Async(p, 1, granule, 0) }))
	assert.Equal(t, before, holdings(t))
}

// Works that end at the same time change bytes in the order of their submission, on whichever streams they are.
func TestWorksThatEndTogetherAreInOrder(t *testing.T) {
	r := newRig(t, sim.Config{})
	p := r.plain(granule)
	var all []cudadrv.Stream
	for range 16 {
		all = append(all, newStream(t, r.dev))
	}
	for round := range 16 {
		for i := range all {
			s := all[(i*7+round)%16]
			require.NoError(t, r.dev.MemsetD8Async(p, byte(16*round+i), granule, s))
		}
		require.NoError(t, r.dev.CtxSynchronize())
		assert.EqualValues(t, 16*round+15, r.read(p))
	}
}

// Close drops the unfinished work of its own device alone.
func TestCloseKeepsTheWorkOfOtherDevices(t *testing.T) {
	driver := sim.New(sim.Config{Devices: 2, Bytes: true})
	var devices [2]*sim.Device
	var at [2]cudadrv.Ptr
	var streams [2]cudadrv.Stream
	for i := range devices {
		opened, err := driver.Open(i)
		require.NoError(t, err)
		devices[i] = opened.(*sim.Device)
		at[i], err = devices[i].MemAlloc(granule)
		require.NoError(t, err)
		streams[i] = newStream(t, devices[i])
		require.NoError(t, devices[i].MemsetD8Async(at[i], 7, granule, streams[i]))
	}
	require.NoError(t, devices[0].Close())
	require.NoError(t, devices[1].StreamSynchronize(streams[1]))
	host := make([]byte, 1)
	require.NoError(t, devices[1].MemcpyDtoHAsync(host, at[1], streams[1]))
	assert.EqualValues(t, 7, host[0])
	require.NoError(t, devices[1].Close())
}
