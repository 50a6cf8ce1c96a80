//go:build linux

package fleet_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/directory"
)

// child is the program of a child process: it plays a part until it is killed.
func child(part, folder string) {
	must := func(err error) {
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	go func() { // until the tests end, in every case
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	l, err := directory.Open(folder)
	must(err)
	var devices []fleet.Device
	name, owns := strings.CutPrefix(part, "owner ")
	if other, is := strings.CutPrefix(part, "measured="); is {
		name, owns = other, true
	}
	if owns {
		d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{TotalBytes: 128 * mib}), LimitBytes: 64 * mib})
		must(err)
		devices = append(devices, fleet.Device{Device: d, Name: name})
	}
	m, err := fleet.Join(context.Background(), l, devices...)
	must(err)
	fmt.Println("joined")
	for {
		switch name, mibs, _ := strings.Cut(part, "="); name {
		case "holder": // holds so much of device a
			var wanted int64
			_, err := fmt.Sscan(mibs, &wanted)
			must(err)
			_, err = m.Reserve(context.Background(), fleet.Request{Wants: []fleet.Want{{Bytes: wanted * mib, Device: "a"}}})
			must(err)
			fmt.Println("granted")
		case "measured": // reserves on four devices, and prints how long that takes
			for {
				begin := time.Now()
				g, err := m.Reserve(context.Background(), fleet.Request{Wants: slices.Repeat([]fleet.Want{{Bytes: 2 * mib}}, 4)})
				must(err)
				fmt.Println("took", time.Since(begin).Nanoseconds())
				must(g.Release())
			}
		case "user": // reserves and releases as fast as it can
			for {
				g, err := m.Reserve(context.Background(), fleet.Request{Wants: []fleet.Want{{Bytes: rand.Int64N(32*mib) + 1}, {Bytes: rand.Int64N(32*mib) + 1}}})
				must(err)
				fmt.Println("granted")
				must(g.Release())
			}
		}
		select {}
	}
}

// process is a child process.
type process struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func start(tb testing.TB, folder, part string) *process {
	tb.Helper()
	cmd := exec.CommandContext(tb.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "VRAM_FLEET_PART="+part, "VRAM_FLEET_FOLDER="+folder)
	cmd.Stderr = os.Stderr
	_, err := cmd.StdinPipe() // it is open as long as the tests run
	require.NoError(tb, err)
	out, err := cmd.StdoutPipe()
	require.NoError(tb, err)
	require.NoError(tb, cmd.Start())
	p := &process{tb, cmd, bufio.NewScanner(out)}
	tb.Cleanup(p.kill)
	return p
}

// says waits for a line of the process.
func (p *process) says(text string) {
	p.t.Helper()
	for p.lines.Scan() {
		if line := p.lines.Text(); line == text {
			return
		} else if strings.HasPrefix(line, "failed") {
			require.Fail(p.t, line)
		}
	}
	require.Fail(p.t, "the process ended before it said "+text)
}

func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, bytesOf{p.lines})
		_ = p.cmd.Wait()
	}
}

// bytesOf reads the rest of the lines, so that the process does not wait for a reader.
type bytesOf struct{ lines *bufio.Scanner }

func (b bytesOf) Read([]byte) (int, error) {
	if !b.lines.Scan() {
		return 0, io.EOF
	}
	return 0, nil
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s))
	var status syscall.WaitStatus
	for s == syscall.SIGSTOP && !status.Stopped() { // the signal is sent; each thread stops when it is next interrupted
		_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		require.NoError(p.t, err)
		require.False(p.t, status.Exited() || status.Signaled())
	}
}

// BenchmarkReserve measures reservations of four devices by eight processes, each with a device of its own, through the ledger of one host:
// from the call to the grant, and the next after its release. Each device has memory for all.
func BenchmarkReserve(b *testing.B) {
	b.Run("ledger=directory/processes=8/devices=4", func(b *testing.B) {
		folder := b.TempDir()
		took := make(chan time.Duration)
		for i := range 8 {
			p := start(b, folder, fmt.Sprint("measured=d", i))
			go func() {
				for p.lines.Scan() {
					var one time.Duration
					if _, err := fmt.Sscanf(p.lines.Text(), "took %d", &one); err == nil {
						select {
						case took <- one:
						case <-b.Context().Done():
						}
					}
				}
			}()
		}
		for range 80 { // all have joined
			<-took
		}
		all := make([]time.Duration, 0, b.N)
		b.ResetTimer()
		for range b.N {
			all = append(all, <-took)
		}
		b.StopTimer()
		slices.Sort(all)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reservations/s")
		b.ReportMetric(all[b.N/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(all[b.N*99/100].Seconds()*1e3, "p99-ms")
	})
}

// A holder that is killed gives all back: the next gang gets the memory. So does an owner, whose device is free when it joins again.
func TestKilledProcesses(t *testing.T) {
	folder := t.TempDir()
	l := opened(t, folder)
	owner := start(t, folder, "owner a")
	owner.says("joined")
	holder := start(t, folder, "holder=60")
	holder.says("granted")
	m := joined(t, l)
	killed := time.Now()
	holder.kill()
	grant, err := m.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: 60 * mib}}})
	require.NoError(t, err)
	t.Logf("granted again %v after kill -9 of the holder", time.Since(killed))

	killed = time.Now()
	owner.kill()
	<-grant.Done()
	assert.ErrorIs(t, grant.Err(), fleet.ErrLost)
	t.Logf("the grant was lost %v after kill -9 of the owner", time.Since(killed))
	start(t, folder, "owner a").says("joined")
	again, err := m.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib}}})
	require.NoError(t, err)
	t.Logf("granted again %v after kill -9 of the owner, with the start of the new one", time.Since(killed))
	require.NoError(t, again.Release())
}

// A process that is stopped, at any moment and for longer than any wait, stops nobody who wants other devices; killed, it gives all back.
func TestStoppedProcesses(t *testing.T) {
	folder := t.TempDir()
	l := opened(t, folder)
	start(t, folder, "owner a").says("joined")
	start(t, folder, "owner b").says("joined")
	m := joined(t, l, fleet.Device{Device: device(t, 64), Name: "c"})
	rounds := 4
	if !testing.Short() {
		rounds = 40
	}
	for range rounds {
		user := start(t, folder, "user")
		for range 1 + rand.IntN(5) {
			user.says("granted")
		}
		user.signal(syscall.SIGSTOP)
		grant, err := m.Reserve(timed(t), fleet.Request{Priority: 1, Wants: []fleet.Want{{Bytes: 2 * mib, Device: "c"}}})
		require.NoError(t, err)
		require.NoError(t, grant.Release())
		user.kill()
		grant, err = m.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib}, {Bytes: 64 * mib}, {Bytes: 64 * mib}}})
		require.NoError(t, err)
		require.NoError(t, grant.Release())
	}
}

// An owner that is stopped keeps its device to itself: gangs that it does not answer take others. It serves again when it continues.
func TestAStoppedOwner(t *testing.T) {
	folder := t.TempDir()
	l := opened(t, folder)
	owner := start(t, folder, "owner a")
	owner.says("joined")
	m := joined(t, l)
	owner.signal(syscall.SIGSTOP)
	joined(t, opened(t, folder), fleet.Device{Device: device(t, 32), Name: "b"})
	grant, err := m.Reserve(timed(t), fleet.Request{Policy: fleet.Spread, Wants: []fleet.Want{{Bytes: 10 * mib}}}) // a has more free memory
	require.NoError(t, err)
	assert.Equal(t, "b", grant.Parts()[0].Device)
	require.NoError(t, grant.Release())
	owner.signal(syscall.SIGCONT)
	grant, err = m.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib}}})
	require.NoError(t, err)
	require.NoError(t, grant.Release())
}

// Processes that are killed at any moment, with the ledger in use by others, leave no hold, and every other request is served.
func TestProcessesAreKilledAtAnyMoment(t *testing.T) {
	folder := t.TempDir()
	l := opened(t, folder)
	m := joined(t, l, fleet.Device{Device: device(t, 64), Name: "a"}, fleet.Device{Device: device(t, 64), Name: "b"})
	steady := start(t, folder, "user")
	kills := 5
	if !testing.Short() {
		kills = 50
	}
	for range kills {
		user := start(t, folder, "user")
		user.says("granted")
		for range rand.IntN(8) {
			steady.says("granted")
		}
		user.kill()
		steady.says("granted")
	}
	steady.kill()
	grant, err := m.Reserve(timed(t), fleet.Request{Wants: []fleet.Want{{Bytes: 64 * mib}, {Bytes: 64 * mib}}})
	require.NoError(t, err)
	require.NoError(t, grant.Release())
	until(t, l, "all comes back", func(s fleet.Status) bool { return heldBytes(s) == 0 && len(s.Holding)+len(s.Waiting) == 0 })
}
