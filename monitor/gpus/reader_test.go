//go:build linux && (amd64 || arm64)

package gpus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fakenvml"
	"github.com/go-vram/vram/monitor/gpus"
)

func TestDevices(t *testing.T) {
	f := newFake(t)
	f.AddProcess(0, fakenvml.Compute, 100, 12<<30, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.Compute, 200, 1<<30, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.Compute, uint32(os.Getpid()), 2<<30, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.Compute, 300, fakenvml.NotAvailable, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.Graphics, 200, 3<<30, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.MPS, 400, 5, 7)
	all := devices(t, open(t, f))
	require.Len(t, all, 2)
	pod := gpus.Place{Runtime: "containerd", Container: containerID, Pod: podUID}
	assert.Equal(t, gpus.Device{
		Index: 0, Name: "NVIDIA H100", UUID: firstUUID, PCI: "0000:3b:00.0",
		TotalBytes: 80 * gib, UsedBytes: 30 * gib, FreeBytes: 49 * gib, ReservedBytes: gib, MemoryKnown: true, ProcessesKnown: true,
		Processes: []gpus.Process{
			{PID: 100, Command: "python3", Place: pod, Bytes: 12 * gib, BytesKnown: true, Kinds: gpus.Compute, Instance: gpus.NoInstance},
			{
				PID: 200, Command: "Xorg", Place: gpus.Place{Unit: "gdm.service"}, Bytes: 3 * gib, BytesKnown: true, Kinds: gpus.Compute | gpus.Graphics,
				Instance: gpus.NoInstance,
			},
			{
				PID: os.Getpid(), Command: "gpus.test", Place: gpus.Place{Unit: "session-3.scope"}, Bytes: 2 * gib, BytesKnown: true, Kinds: gpus.Compute,
				Instance: gpus.NoInstance, Own: true,
			},
			{PID: 400, Bytes: 5, BytesKnown: true, Kinds: gpus.MPS, Instance: 7},
			{PID: 300, Kinds: gpus.Compute, Instance: gpus.NoInstance},
		},
	}, all[0])
	assert.Equal(t, "0001:5e:02.0", all[1].PCI)
	assert.Empty(t, all[1].Processes)
	assert.Equal(t, "M+C+G", (gpus.Compute | gpus.Graphics | gpus.MPS).String())
	for k := range gpus.MPS << 1 {
		var read gpus.Kind
		require.NoError(t, read.UnmarshalText([]byte(k.String())))
		assert.Equal(t, k, read)
	}
	require.EqualError(t, new(gpus.Kind).UnmarshalText([]byte("G+C")), `gpus: "G+C" is no kind of process`)
	assert.Equal(t, "pod "+podUID+", containerd 0123456789ab", pod.String())

	text, err := json.Marshal(all[1])
	require.NoError(t, err)
	assert.Contains(t, string(text), `"processes":[]`)
	assert.Contains(t, string(text), `"problems":[]`)
}

// The library is opened by Open or the first question, and closed by Close alone.
func TestStates(t *testing.T) {
	f := newFake(t)
	r := gpus.OnDemand(gpus.Config{Library: f.Path()})
	assert.Zero(t, f.Calls("nvmlInit_v2"), "nothing was asked")
	assert.Len(t, devices(t, r), 2)
	assert.Equal(t, 1, f.Started())
	require.NoError(t, r.Close())
	assert.Zero(t, f.Started())
	require.NoError(t, r.Close())
	assert.Equal(t, 1, f.Calls("nvmlShutdown"))
	_, err := r.Devices(t.Context())
	require.ErrorIs(t, err, gpus.ErrClosed)

	require.NoError(t, gpus.OnDemand(gpus.Config{}).Close(), "never opened")
	_, err = (*gpus.Reader)(nil).Devices(t.Context())
	require.ErrorIs(t, err, gpus.ErrNotOpen)
	require.ErrorIs(t, new(gpus.Reader).Close(), gpus.ErrNotOpen)
	_, err = open(t, f).Devices(nil) //nolint:staticcheck // a mistake
	require.ErrorIs(t, err, vram.ErrNilContext)
}

// Without the library there is a typed error; a Reader on demand finds a library that comes later.
func TestNoLibrary(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	_, err := gpus.Open(gpus.Config{Library: missing})
	require.ErrorIs(t, err, gpus.ErrNoLibrary)
	library, ok := errors.AsType[*gpus.LibraryError](err)
	require.True(t, ok)
	assert.Equal(t, []string{missing}, library.Tried)
	assert.ErrorContains(t, err, "cannot open shared object file")

	r := gpus.OnDemand(gpus.Config{Library: missing, Fresh: -1})
	_, err = r.Devices(t.Context())
	require.ErrorIs(t, err, gpus.ErrNoLibrary)
	f := newFake(t)
	require.NoError(t, os.Rename(f.Path(), missing))
	_, err = r.Devices(t.Context())
	require.NoError(t, err)
	require.NoError(t, r.Close())
	for _, closed := range []func() error{
		func() error { _, err := r.Devices(t.Context()); return err },
		func() error { _, err := r.Processes(t.Context(), cudadrv.Info{PCI: "0000:3b:00.0"}); return err },
	} {
		require.ErrorIs(t, closed(), gpus.ErrClosed)
	}
}

func TestOpenFails(t *testing.T) {
	required := []string{"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2"}
	f := newFake(t, required...)
	_, err := gpus.Open(gpus.Config{Library: f.Path()})
	lacking, ok := errors.AsType[*gpus.SymbolError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, required, lacking.Symbols)
	assert.Zero(t, f.Calls("nvmlInit_v2"))

	f = newFake(t)
	f.Fail("nvmlInit_v2", 1, 9)
	_, err = gpus.Open(gpus.Config{Library: f.Path()})
	call, ok := errors.AsType[*gpus.CallError](err)
	require.True(t, ok, "%v", err)
	assert.Equal(t, gpus.CallError{Func: "nvmlInit_v2", Code: 9, Text: "Driver Not Loaded"}, *call)
	assert.EqualError(t, call, "gpus: nvmlInit_v2: error 9: Driver Not Loaded")
}

// Each call fails once, and for good: the other questions are answered, the next reading is whole, and NVML is given back.
func TestEachCallFails(t *testing.T) {
	for _, function := range []string{
		"nvmlDeviceGetCount_v2", "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetPciInfo_v3",
		"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses_v3",
	} {
		t.Run(function, func(t *testing.T) {
			f := newFake(t)
			f.AddProcess(0, fakenvml.Compute, 100, 1, fakenvml.NoInstance)
			f.AddProcess(0, fakenvml.Graphics, 200, 1, fakenvml.NoInstance)
			r := open(t, f)
			whole := devices(t, r)
			f.Fail(function, 1, 4)
			some, err := r.Devices(t.Context())
			if function == "nvmlDeviceGetCount_v2" {
				require.EqualError(t, err, "gpus: nvmlDeviceGetCount_v2: error 4: Insufficient Permissions")
				require.Empty(t, some)
			} else {
				require.NoError(t, err)
				require.Len(t, some, 2)
				require.Len(t, some[0].Problems, 1)
				require.ErrorContains(t, some[0].Problems[0], function+": error 4: Insufficient Permissions")
				assert.Equal(t, whole[1], some[1])
			}
			assert.Equal(t, whole, devices(t, r))
			f.Fail(function, -1, 15)
			some, err = r.Devices(t.Context())
			if err == nil {
				assert.Len(t, some[1].Problems, 1)
			}
		})
	}
	f := newFake(t)
	r, err := gpus.Open(gpus.Config{Library: f.Path()})
	require.NoError(t, err)
	f.Fail("nvmlShutdown", 1, 999)
	require.EqualError(t, r.Close(), "gpus: nvmlShutdown: error 999", "a text that is a nil pointer")
	_, err = r.Devices(t.Context())
	require.ErrorIs(t, err, gpus.ErrClosed)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
}

// Older libraries lack functions, or answer that they do.
func TestOlderLibraries(t *testing.T) {
	f := newFake(t, "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",
		"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlErrorString")
	f.AddProcess(0, fakenvml.Compute, 100, 1, fakenvml.NoInstance)
	d := devices(t, open(t, f))[0]
	assert.Equal(t, []int64{80 * gib, 31 * gib, 49 * gib, 0}, []int64{d.TotalBytes, d.UsedBytes, d.FreeBytes, d.ReservedBytes})
	require.Len(t, d.Processes, 1)
	assert.True(t, d.ProcessesKnown)
	assert.Empty(t, d.Problems)

	f = newFake(t)
	r := open(t, f)
	f.Fail("nvmlDeviceGetMemoryInfo_v2", -1, 25)
	f.Fail("nvmlDeviceGetGraphicsRunningProcesses_v3", -1, 3)
	d = devices(t, r)[0]
	assert.Equal(t, 31*gib, d.UsedBytes)
	assert.Empty(t, d.Problems)

	f = newFake(t, "nvmlDeviceGetName", "nvmlDeviceGetUUID", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2")
	d = devices(t, open(t, f))[0]
	require.Len(t, d.Problems, 3)
	assert.ErrorContains(t, d.Problems[0], "nvmlDeviceGetName: the library "+f.Path()+" lacks it")
	assert.ErrorContains(t, d.Problems[1], "nvmlDeviceGetUUID: the library "+f.Path()+" lacks it")
	assert.False(t, d.ProcessesKnown)
	assert.Equal(t, "0000:3b:00.0", d.PCI)
}

// Answers that cannot be right are refused, and the rest is kept.
func TestAnswersAreNotTrusted(t *testing.T) {
	problem := func(t *testing.T, f *fakenvml.Fake) (gpus.Device, string) {
		t.Helper()
		d := devices(t, open(t, f))[0]
		require.Len(t, d.Problems, 1)
		_, ok := errors.AsType[*gpus.AnswerError](d.Problems[0])
		require.True(t, ok)
		return d, d.Problems[0].Error()
	}
	t.Run("devices", func(t *testing.T) {
		f := newFake(t)
		f.SetCount(1 << 31)
		_, err := open(t, f).Devices(t.Context())
		require.EqualError(t, err, "gpus: nvmlDeviceGetCount_v2: 2147483648 devices")
	})
	t.Run("handle of a device that is not there", func(t *testing.T) {
		f := newFake(t)
		f.SetCount(40)
		all := devices(t, open(t, f))
		require.Len(t, all, 40)
		require.Len(t, all[39].Problems, 1)
		assert.Zero(t, f.Calls("nvmlDeviceGetName")-32)
	})
	t.Run("memory", func(t *testing.T) {
		for _, wrong := range []fakenvml.Device{{Total: 1, Free: 2}, {Total: 1, Used: 2}, {Total: 1, Reserved: 2}, {Total: ^uint64(0)}} {
			f := newFake(t)
			f.SetDevices(wrong)
			d, text := problem(t, f)
			assert.False(t, d.MemoryKnown)
			assert.Zero(t, d.TotalBytes)
			assert.Contains(t, text, "nvmlDeviceGetMemoryInfo_v2")
		}
	})
	t.Run("the most memory that is believed", func(t *testing.T) {
		f := newFake(t)
		f.SetDevices(fakenvml.Device{Total: 1 << 62, Free: 1 << 62, Used: 1 << 62, Reserved: 1 << 62})
		d := devices(t, open(t, f))[0]
		assert.Empty(t, d.Problems)
		assert.Equal(t, []int64{1 << 62, 1 << 62, 1 << 62, 1 << 62}, []int64{d.TotalBytes, d.FreeBytes, d.UsedBytes, d.ReservedBytes})
		f = newFake(t)
		f.SetDevices(fakenvml.Device{Total: 1<<62 + 1})
		problem(t, f)
	})
	t.Run("address", func(t *testing.T) {
		for _, at := range [][2]uint32{{0xff, 31}, {0x100, 0}, {0xff, 32}, {0, 33}} {
			f := newFake(t)
			f.SetDevices(fakenvml.Device{Bus: at[0], Slot: at[1]})
			if at[0] <= 0xff && at[1] < 32 {
				d := devices(t, open(t, f))[0]
				assert.Empty(t, d.Problems)
				assert.Equal(t, "0000:ff:1f.0", d.PCI)
				continue
			}
			_, text := problem(t, f)
			assert.Equal(t, fmt.Sprintf("gpus: nvmlDeviceGetPciInfo_v3: bus %#x, device %#x", at[0], at[1]), text)
		}
	})
	t.Run("as many devices as are believed", func(t *testing.T) {
		f := newFake(t)
		f.SetCount(1024)
		assert.Len(t, devices(t, open(t, f)), 1024)
		f.SetCount(1025)
		_, err := open(t, f).Devices(t.Context())
		require.EqualError(t, err, "gpus: nvmlDeviceGetCount_v2: 1025 devices")
	})
	t.Run("texts without an end", func(t *testing.T) {
		f := newFake(t)
		f.SetEndless(true)
		d := devices(t, open(t, f))[0]
		assert.Len(t, d.Name, 96)
		assert.Len(t, d.UUID, 96)
		_, found := gpus.Find([]gpus.Device{d}, cudadrv.Info{UUID: cudadrv.UUID{1}})
		assert.False(t, found)
	})
	t.Run("a process above the device's memory", func(t *testing.T) {
		f := newFake(t)
		f.AddProcess(0, fakenvml.Compute, 100, 81<<30, fakenvml.NoInstance)
		assert.False(t, devices(t, open(t, f))[0].Processes[0].BytesKnown)
	})
	t.Run("a PID above Linux's", func(t *testing.T) {
		f := newFake(t)
		f.AddProcess(0, fakenvml.Compute, 1<<22+1, 1, fakenvml.NoInstance)
		d, text := problem(t, f)
		assert.Equal(t, "gpus: nvmlDeviceGetComputeRunningProcesses_v3: process 4194305", text)
		assert.False(t, d.ProcessesKnown)
	})
	t.Run("a PID above Linux's, in a list that devices may lack", func(t *testing.T) {
		for _, list := range []int{fakenvml.Graphics, fakenvml.MPS} {
			f := newFake(t)
			f.AddProcess(0, list, 1<<22+1, 1, fakenvml.NoInstance)
			_, text := problem(t, f)
			assert.Contains(t, text, ": process 4194305")
		}
	})
	t.Run("a count above the room", func(t *testing.T) {
		f := newFake(t, "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3")
		f.SetClaimed(65)
		_, text := problem(t, f)
		assert.Equal(t, "gpus: nvmlDeviceGetComputeRunningProcesses_v3: 65 processes in room for 64", text)
	})
	t.Run("a text of the library", func(t *testing.T) {
		f := newFake(t)
		f.Fail("nvmlDeviceGetName", 1, 500)
		d := devices(t, open(t, f))[0]
		assert.EqualError(t, d.Problems[0], "gpus: nvmlDeviceGetName: error 500: Unknown Error[31m")
	})
}

// A list that grows between two questions is asked for again, a bounded number of times and up to a bounded length.
func TestListsThatGrow(t *testing.T) {
	const function = "nvmlDeviceGetComputeRunningProcesses_v3"
	f := newFake(t, "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetMPSComputeRunningProcesses_v3")
	f.SetCount(1)
	for pid := range uint32(500) {
		f.AddProcess(0, fakenvml.Compute, pid+1, 1, fakenvml.NoInstance)
	}
	r := open(t, f)
	assert.Len(t, devices(t, r)[0].Processes, 500)
	assert.Equal(t, 2, f.Calls(function))

	f.SetGrowth(1000)
	assert.Len(t, devices(t, r)[0].Processes, 1000, "PIDs from 1 on, in each growth the same")
	assert.Equal(t, 2+3, f.Calls(function), "with 1500, 2500 and 3500 processes")

	d := devices(t, r)[0]
	require.Len(t, d.Problems, 1)
	assert.EqualError(t, d.Problems[0], "gpus: "+function+": more than 4096 processes")
	assert.Equal(t, 5+2, f.Calls(function))

	f.SetGrowth(0)
	f.SetClaimed(1) // less than there are: the room still grows
	before := f.Calls(function)
	d = devices(t, r)[0]
	require.Len(t, d.Problems, 1)
	assert.Equal(t, 6, f.Calls(function)-before)
	assert.ErrorContains(t, d.Problems[0], "a list that grew in each of 6 questions")
}

// Records of 32 bytes are recognized, for any number of processes and values.
func TestLongRecords(t *testing.T) {
	for _, count := range []int{0, 1, 2, 3, 4, 63, 64, 65} {
		f := newFake(t)
		f.SetCount(1)
		f.SetLongRecords(true)
		for i := range count {
			f.AddProcess(0, fakenvml.Compute, uint32(i+1), uint64(1000-i), fakenvml.NoInstance)
		}
		d := devices(t, open(t, f))[0]
		require.Len(t, d.Processes, count)
		for i, p := range d.Processes {
			assert.Equal(t, []any{i + 1, int64(1000 - i)}, []any{p.PID, p.Bytes}, "of %d", count)
		}
		assert.Empty(t, d.Problems)
	}
}

// Records have the length of their own list's, also after a longer list.
func TestRecordsAfterALongerList(t *testing.T) {
	for _, long := range []bool{false, true} {
		for count := range 5 {
			f := newFake(t)
			f.SetLongRecords(long)
			for device, processes := range []int{9, count} {
				for i := range processes {
					f.AddProcess(device, fakenvml.Compute, uint32(i+1), uint64(1000-i), fakenvml.NoInstance)
				}
			}
			d := devices(t, open(t, f))[1]
			assert.Empty(t, d.Problems)
			require.Len(t, d.Processes, count)
			for i, p := range d.Processes {
				assert.Equal(t, []any{i + 1, int64(1000 - i)}, []any{p.PID, p.Bytes}, "long %t", long)
			}
		}
	}
}

// A process has the kinds of the lists that it is in, and no other, wherever its bytes are known.
func TestAProcessHasTheKindsOfItsLists(t *testing.T) {
	f := newFake(t)
	f.SetCount(1)
	lists := []struct {
		list int
		kind gpus.Kind
	}{{fakenvml.Compute, gpus.Compute}, {fakenvml.Graphics, gpus.Graphics}, {fakenvml.MPS, gpus.MPS}}
	want := map[int]gpus.Kind{}
	for set := 1; set < 1<<len(lists); set++ {
		for i, x := range lists {
			if set>>i&1 != 0 {
				f.AddProcess(0, x.list, uint32(set), 1, fakenvml.NoInstance)
				want[set] |= x.kind
			}
		}
	}
	got := map[int]gpus.Kind{}
	for _, p := range devices(t, open(t, f))[0].Processes {
		got[p.PID] = p.Kinds
	}
	assert.Equal(t, want, got)
}

// CUDA's device is found by UUID, or by PCI address where it is an instance of MIG.
func TestProcesses(t *testing.T) {
	f := newFake(t)
	f.AddProcess(0, fakenvml.Compute, 100, 12<<30, 1)
	f.AddProcess(0, fakenvml.Compute, 200, 3<<30, 2)
	f.AddProcess(1, fakenvml.Compute, 300, 1, fakenvml.NoInstance)
	r := open(t, f)
	second := cudadrv.UUID{0x6a, 0x3c, 0x7d, 0x11, 0, 0, 0x40, 0, 0x80, 0, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab}
	require.Equal(t, secondUUID, second.String())
	pids := func(gpu cudadrv.Info) (pids []int) {
		all, err := r.Processes(t.Context(), gpu)
		require.NoError(t, err)
		for _, p := range all {
			pids = append(pids, p.PID)
		}
		return pids
	}
	assert.Equal(t, []int{300}, pids(cudadrv.Info{UUID: second, PCI: "0000:3b:00.0"}), "the UUID decides")
	assert.Equal(t, []int{100, 200}, pids(cudadrv.Info{UUID: cudadrv.UUID{9}, PCI: "0000:3B:00.0"}))
	_, err := r.Processes(t.Context(), cudadrv.Info{Ordinal: 0})
	require.ErrorIs(t, err, gpus.ErrNotListed, "CUDA's number is not NVML's")

	f.AddProcess(0, fakenvml.Compute, uint32(os.Getpid()), 1, 2)
	all, err := r.Processes(t.Context(), cudadrv.Info{PCI: "0000:3b:00.0"})
	require.NoError(t, err)
	require.Len(t, all, 2, "of the own instance")
	assert.Equal(t, vram.GPUProcess{PID: 200, Command: "Xorg", Place: "gdm.service", Bytes: 3 * gib, BytesKnown: true}, all[0])
	assert.True(t, all[1].Own)

	f.Fail("nvmlDeviceGetComputeRunningProcesses_v3", -1, 4)
	f.Fail("nvmlDeviceGetGraphicsRunningProcesses_v3", -1, 4)
	f.Fail("nvmlDeviceGetMPSComputeRunningProcesses_v3", -1, 4)
	_, err = r.Processes(t.Context(), cudadrv.Info{PCI: "0000:3b:00.0"})
	require.ErrorContains(t, err, "nvmlDeviceGetComputeRunningProcesses_v3: error 4: Insufficient Permissions")
}

// Processes of the instances that this process uses are listed, also where its own are the first, between others, or the last.
func TestProcessesOfTheOwnInstance(t *testing.T) {
	for own := range uint32(3) { // the instance
		f := newFake(t)
		want := []int{os.Getpid()}
		for instance := range uint32(3) {
			pid := 100 * (instance + 1)
			f.AddProcess(0, fakenvml.Compute, pid, 1<<30, instance)
			if instance == own {
				f.AddProcess(0, fakenvml.Compute, uint32(os.Getpid()), uint64(3-own)<<29, instance)
				want = append(want, int(pid))
			}
		}
		all, err := open(t, f).Processes(t.Context(), cudadrv.Info{PCI: "0000:3b:00.0"})
		require.NoError(t, err)
		var got []int
		for _, p := range all {
			got = append(got, p.PID)
		}
		assert.ElementsMatch(t, want, got, "instance %d", own)
	}
}

// A caller whose context ends stops waiting while NVML does not answer; the reading serves the next one.
func TestDevicesEndsWithItsContext(t *testing.T) {
	f := newFake(t)
	r := gpus.OnDemand(gpus.Config{Library: f.Path(), Fresh: time.Hour})
	f.Hold(true)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	errs := make([]error, 3)
	for i := range errs {
		waiting.Go(func() { _, errs[i] = r.Devices(ctx) })
	}
	f.Await()
	cancel()
	waiting.Wait() // though the call is held
	for _, err := range errs {
		require.ErrorIs(t, err, context.Canceled)
	}
	f.Hold(false)
	assert.Len(t, devices(t, r), 2)
	assert.Len(t, devices(t, r), 2)
	assert.Equal(t, 1, f.Calls("nvmlDeviceGetCount_v2"), "one reading for all")
	require.NoError(t, r.Close())
}

// endingFiles end the goroutine that reads them.
type endingFiles struct{ fs.FS }

func (endingFiles) Open(string) (fs.File, error) {
	runtime.Goexit()
	return nil, fs.ErrNotExist
}

// A reading whose files end its goroutine, as FailNow of a test does, is an error, and the next question reads again.
func TestAReadingThatEndsItsGoroutine(t *testing.T) {
	f := newFake(t)
	f.AddProcess(0, fakenvml.Compute, 100, 12<<30, fakenvml.NoInstance)
	r := gpus.OnDemand(gpus.Config{Library: f.Path(), Fresh: time.Hour, Files: endingFiles{}})
	for range 2 {
		_, err := r.Devices(t.Context())
		require.EqualError(t, err, "gpus: a reading ended its goroutine")
	}
	assert.Equal(t, 2, f.Calls("nvmlDeviceGetCount_v2"))
	require.NoError(t, r.Close())
}

// Goroutines that ask, change their answers and close at the same time share readings, not lists.
func TestReaderIsConcurrent(t *testing.T) {
	f := newFake(t)
	f.AddProcess(0, fakenvml.Compute, 100, 12<<30, fakenvml.NoInstance)
	for _, fresh := range []time.Duration{-1, time.Hour} {
		r := gpus.OnDemand(gpus.Config{Library: f.Path(), Fresh: fresh, Files: machine()})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					list, err := r.Devices(t.Context())
					if err != nil {
						assert.ErrorIs(t, err, gpus.ErrClosed)
						return
					}
					if assert.Len(t, list[0].Processes, 1) {
						assert.Equal(t, "python3", list[0].Processes[0].Command)
						list[0].Processes[0].Command = "changed"
					}
				}
			})
		}
		for f.Calls("nvmlDeviceGetCount_v2") == 0 {
			_, _ = r.Devices(t.Context())
		}
		assert.NoError(t, r.Close())
		all.Wait()
	}
}

// spoil changes everything in slices.
func spoil(all reflect.Value) {
	for i := range all.Len() {
		x := all.Index(i)
		if x.Kind() == reflect.Struct {
			for _, f := range x.Fields() {
				if f.Kind() == reflect.Slice {
					spoil(f)
				}
			}
		}
		x.SetZero()
	}
}

// An answer belongs to its caller, with all lists in it: a reading serves others, too.
func TestACallerMayChangeItsAnswer(t *testing.T) {
	f := newFake(t)
	f.AddProcess(0, fakenvml.Compute, 100, 12<<30, fakenvml.NoInstance)
	r := gpus.OnDemand(gpus.Config{Library: f.Path(), Fresh: time.Hour, Files: machine()})
	f.Fail("nvmlDeviceGetName", 1, 4)
	first := devices(t, r)
	require.NotEmpty(t, first[0].Processes)
	require.NotEmpty(t, first[0].Problems)
	want := fmt.Sprintf("%+v", first)
	for range 2 {
		spoil(reflect.ValueOf(first))
		first = devices(t, r)
		assert.Equal(t, want, fmt.Sprintf("%+v", first))
	}
	assert.Equal(t, 1, f.Calls("nvmlDeviceGetCount_v2"), "one reading for all")
	require.NoError(t, r.Close())
}
