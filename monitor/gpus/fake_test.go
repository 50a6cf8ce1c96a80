//go:build linux && (amd64 || arm64)

package gpus_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/fakenvml"
	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/monitor/gpus"
)

const (
	gib = int64(1) << 30

	firstUUID  = "GPU-6a3c7d10-0000-4000-8000-0123456789ab"
	secondUUID = "GPU-6a3c7d11-0000-4000-8000-0123456789ab"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// newFake builds a fake of the test's own with two devices, without the hidden functions.
func newFake(tb testing.TB, hidden ...string) *fakenvml.Fake {
	tb.Helper()
	path, err := fakenvml.Build(tb.TempDir(), hidden...)
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		tb.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(tb, err)
	f, err := fakenvml.Open(path)
	require.NoError(tb, err)
	f.SetDevices(
		fakenvml.Device{Name: "NVIDIA H100", UUID: firstUUID, Bus: 0x3b, Total: 80 << 30, Reserved: 1 << 30, Free: 49 << 30, Used: 30 << 30},
		fakenvml.Device{Name: "NVIDIA H100", UUID: secondUUID, Domain: 1, Bus: 0x5e, Slot: 2, Total: 80 << 30, Free: 80 << 30},
	)
	tb.Cleanup(func() { require.Zero(tb, f.Started(), "calls of nvmlInit_v2 without nvmlShutdown") })
	return f
}

// open opens a Reader on the fake, which reads at each question.
func open(tb testing.TB, f *fakenvml.Fake) *gpus.Reader {
	tb.Helper()
	r, err := gpus.Open(gpus.Config{Library: f.Path(), Fresh: -1, Files: machine()})
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, r.Close()) })
	return r
}

// devices asks for the devices.
func devices(tb testing.TB, r *gpus.Reader) []gpus.Device {
	tb.Helper()
	all, err := r.Devices(tb.Context())
	require.NoError(tb, err)
	return all
}

const (
	containerID = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	podUID      = "6f1c2d3e-4a5b-6c7d-8e9f-0a1b2c3d4e5f"
)

// machine has the files of some processes.
func machine() fstest.MapFS {
	files := fstest.MapFS{}
	add := func(pid int, title, comm, cgroup string) {
		for name, text := range map[string]string{"cmdline": title, "comm": comm, "cgroup": cgroup} {
			files[fmt.Sprintf("proc/%d/%s", pid, name)] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	add(100, "/usr/bin/python3\x00train.py\x00--token=secret\x00", "python3\n",
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod6f1c2d3e_4a5b_6c7d_8e9f_0a1b2c3d4e5f.slice/cri-containerd-"+containerID+".scope\n")
	add(200, "", "Xorg\n", "0::/system.slice/gdm.service\n")
	add(os.Getpid(), "/tmp/gpus.test\x00", "gpus.test\n", "0::/user.slice/user-1000.slice/session-3.scope\n")
	return files
}
