package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/core"
	"github.com/go-vram/vram/fleet/directory"
)

// leasing starts the program with a lease on the simulated device, and returns its output and the writer of its input.
func leasing(t *testing.T, folder string, args ...string) (cmd *exec.Cmd, out *bufio.Scanner, in io.Closer) {
	t.Helper()
	cmd = exec.CommandContext(t.Context(), os.Args[0], append([]string{"lease", "-driver", "sim", "-ledger", folder}, args...)...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	pipe, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(pipe), in
}

// The command sees its GPU and its limit, and its exit code is the program's.
func TestLeaseRunsTheCommand(t *testing.T) {
	t.Setenv(asProgram, "1") // of the guard
	t.Setenv("CUDA_VISIBLE_DEVICES", "")
	require.NoError(t, os.Unsetenv("CUDA_VISIBLE_DEVICES"))
	folder := t.TempDir()
	code, stdout, stderr := vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "20GiB", "--",
		"sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT; exit 7")
	assert.Equal(t, 7, code, stderr)
	assert.Equal(t, "0 0=20480M\n", stdout)
	code, _, _ = vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "1", "-device", "0", "--", "sh", "-c", "kill -9 $$")
	assert.Equal(t, 128+9, code)
	code, _, stderr = vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "1GB", "--", "/no/such/program")
	assert.Equal(t, exitNotFound, code)
	assert.Contains(t, stderr, "/no/such/program")
	for _, device := range []string{"1", "9"} {
		code, _, stderr = vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "1GB", "-device", device, "-timeout", "1s", "--", "true")
		assert.Equal(t, exitNoLease, code)
		assert.Contains(t, stderr, "device "+device+": the driver has 1")
	}
	for _, args := range [][]string{{"-bytes", "0", "--", "true"}, {"-bytes", "1GB"}, {"-bytes", "1GB", "-device", "-2", "--", "true"}, {"-bytes", "1GB", "-timeout", "-1s", "--", "true"}} {
		code, _, _ = vramCommand(t, append([]string{"lease", "-ledger", folder}, args...)...)
		assert.Equal(t, exitUsage, code, "%v", args)
	}
	code, stdout, stderr = vramCommand(t, "fleet", "-ledger", folder)
	assert.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, "none")
	assert.NotContains(t, stdout, "holding", "all leases have ended")
}

// A lease that does not fit waits for the memory of the first; when that is killed its command is killed, too, and the next one runs.
func TestLeaseEndsWithItsProcess(t *testing.T) {
	t.Setenv(asProgram, "1")
	folder := t.TempDir()
	first, out, in := leasing(t, folder, "-bytes", "60GiB", "--", "sh", "-c", "echo ready; exec cat")
	require.True(t, out.Scan())
	code, stdout, stderr := vramCommand(t, "fleet", "-json", "-ledger", folder)
	require.Equal(t, exitOK, code, stderr)
	var s fleet.Status
	require.NoError(t, json.Unmarshal([]byte(stdout), &s))
	require.Len(t, s.Holding, 1)
	assert.Contains(t, s.Holding[0].Holder, ": sh -c")
	code, _, stderr = vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "120GiB", "-timeout", "300ms", "--", "true")
	assert.Equal(t, exitNoLease, code)
	assert.Contains(t, stderr, s.Holding[0].Ticket, "it says for whom it waited")

	require.NoError(t, first.Process.Kill())
	for out.Scan() { // its input is open: the output ends with the command, which was killed
	}
	_ = in.Close()
	code, _, stderr = vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "120GiB", "-timeout", "1m", "--", "true")
	assert.Equal(t, exitOK, code, stderr)
}

// descendants is a command with two processes that left their parent, one of them in a session of its own. All have the output, which ends
// with the last of them; the first line is the number of the guard.
const descendants = `(trap '' HUP INT TERM; (sleep 1000 & exec sleep 1000) & setsid sleep 1000 &) ; echo $PPID; exec sleep 1000`

// When the program, its guard, or the command is killed, all that the command has started ends, and the lease no earlier.
func TestNothingOutlivesALease(t *testing.T) {
	t.Setenv(asProgram, "1")
	folder := t.TempDir()
	next := func(timeout string) int {
		code, _, _ := vramCommand(t, "lease", "-driver", "sim", "-ledger", folder, "-bytes", "120GiB", "-timeout", timeout, "--", "true")
		return code
	}
	begin := func() (lease *exec.Cmd, out *bufio.Scanner, guard int) {
		lease, out, in := leasing(t, folder, "-bytes", "60GiB", "--", "sh", "-c", descendants)
		t.Cleanup(func() { _ = in.Close() })
		require.True(t, out.Scan())
		guard, err := strconv.Atoi(out.Text())
		require.NoError(t, err)
		require.NotEqual(t, lease.Process.Pid, guard)
		return lease, out, guard
	}
	end := func(out *bufio.Scanner) {
		for out.Scan() { // until the last process has ended
		}
		assert.Equal(t, exitOK, next("1m"))
	}

	lease, out, guard := begin()
	require.NoError(t, syscall.Kill(guard, syscall.SIGSTOP))
	require.NoError(t, lease.Process.Kill())
	_ = lease.Wait()
	assert.Equal(t, exitNoLease, next("300ms"), "the guard has not yet killed the command")
	require.NoError(t, syscall.Kill(guard, syscall.SIGCONT))
	end(out)

	lease, out, guard = begin()
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	end(out)
	_ = lease.Wait()
	assert.Equal(t, 128+9, lease.ProcessState.ExitCode())

	lease, out, _ = begin()
	require.NoError(t, lease.Process.Signal(syscall.SIGTERM)) // of the command alone
	end(out)
	_ = lease.Wait()
	assert.Equal(t, 128+15, lease.ProcessState.ExitCode())
}

// Signals reach the command, and while a lease waits they end it.
func TestLeasePassesSignalsOn(t *testing.T) {
	folder := t.TempDir()
	cmd, out, in := leasing(t, folder, "-bytes", "120GiB", "--", "sh", "-c", `trap 'echo got; exit 9' TERM; echo ready; while read x; do :; done; exit 1`)
	require.True(t, out.Scan())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.True(t, out.Scan())
	assert.Equal(t, "got", out.Text())
	_ = cmd.Wait()
	assert.Equal(t, 9, cmd.ProcessState.ExitCode())
	_ = in.Close()
}

// Only GPUs that the ledger does not have are opened: of all or of the named one.
func TestOnlyMissingGPUsAreOpened(t *testing.T) {
	for _, x := range []struct {
		device int
		known  map[string]bool
		opened uint64
		name   string
		names  []string
	}{
		{-1, map[string]bool{"gpu-1": true}, 2, "", []string{"gpu-0", "gpu-2"}},
		{-1, map[string]bool{"gpu-0": true, "gpu-1": true, "gpu-2": true}, 0, "", nil},
		{2, map[string]bool{"gpu-1": true}, 1, "gpu-2", []string{"gpu-2"}},
	} {
		l, err := directory.Open(t.TempDir())
		require.NoError(t, err)
		opened := uint64(0)
		driver := fault.Wrap(sim.New(sim.Config{Devices: 3}))
		driver.SetBefore(func(function string) {
			if function == "cuDevicePrimaryCtxRetain" {
				opened++
			}
		})
		name, err := (&leaseCmd{Device: x.device}).announceMissing(t.Context(), l, driver, x.known, "host", func(ordinal int) string { return "gpu-" + strconv.Itoa(ordinal) })
		require.NoError(t, err)
		assert.Equal(t, x.name, name)
		assert.Equal(t, x.opened, opened)
		s, err := fleet.Look(t.Context(), l)
		require.NoError(t, err)
		var names []string
		for _, d := range s.Devices {
			names = append(names, d.Name)
			assert.Positive(t, d.OfferBytes)
			assert.Equal(t, "gpu-"+strconv.Itoa(d.Ordinal), d.Name)
		}
		assert.Equal(t, x.names, names)
		require.NoError(t, l.Close())
	}
}

// The GPU of a lease is named as the caller's list has it.
func TestLeaseVariables(t *testing.T) {
	part := fleet.Part{Ordinal: 1, Bytes: 3 << 20}
	for list, want := range map[string]string{"": "1", "4, 6": "6", "GPU-a,GPU-b,GPU-c": "GPU-b", "7": "1"} {
		assert.Equal(t, []string{"CUDA_VISIBLE_DEVICES=" + want, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3M"},
			leaseVariables(part, func(string) (string, bool) { return list, list != "" }), list)
	}
}

// The tables of the fleet say why each gang waits.
func TestFleetIsPrinted(t *testing.T) {
	now := time.Unix(1000, 0)
	s := fleet.Status{
		Devices: []fleet.DeviceStatus{{Name: "a-0", Host: "a", OfferBytes: 80 << 30, HeldBytes: 20 << 30}, {Name: "b", Owned: true, Load: core.Load{Waiting: 3}}},
		Holding: []fleet.GangStatus{{Ticket: "one", Holder: "12: train", Since: now.Add(-time.Minute), Devices: []string{"a-0", "b"}}},
		Waiting: []fleet.GangStatus{
			{Ticket: "two", Reason: core.Memory, Holders: []string{"one"}},
			{Ticket: "three", Reason: core.Turn, Before: []string{"two"}},
			{Ticket: "four", Reason: core.NoDevices},
			{Ticket: "five"},
		},
	}
	var out strings.Builder
	require.NoError(t, printFleet(&out, s, now))
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"1m0s", "a-0, b", "memory of one", "its turn after two", "devices that are large enough", "its process", "waiting, in the order of service: 4 gangs"} {
		assert.Contains(t, text, want)
	}
}

// Where one profile cannot be written, the files of the others are closed.
func TestProfilesThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	good, wrong := filepath.Join(folder, "good"), filepath.Join(folder, "none", "wrong")
	for _, paths := range [][3]string{{wrong, good, good}, {good, good, wrong}, {good, wrong, good}} {
		_, err := startProfiles(paths[0], paths[1], paths[2])
		require.ErrorIs(t, err, os.ErrNotExist)
		open, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		for _, f := range open {
			to, _ := os.Readlink("/proc/self/fd/" + f.Name())
			assert.NotEqual(t, good, to, "%v", paths)
		}
	}
	p, err := startProfiles(good, "", "")
	require.NoError(t, err, "sampling has not begun")
	require.NoError(t, p.stop())
}

// Without the flag and the variable the ledger is a folder of the user.
func TestLedgerFolder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	l, err := ledgerFlags{}.open()
	require.NoError(t, err)
	require.NoError(t, l.Close())
	t.Setenv("VRAM_FLEET", t.TempDir())
	l, err = ledgerFlags{}.open()
	require.NoError(t, err)
	require.NoError(t, l.Close())
}
