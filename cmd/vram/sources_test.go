package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/simulation"
	"github.com/go-vram/vram/monitor/page"
)

// A wait continues where the device has too little memory for a context, and its last figure is from the last look.
func TestWaitLooksUntilThereIsEnough(t *testing.T) {
	for enough, want := range map[bool]int64{true: 5 << 30, false: 4 << 30} {
		synctest.Test(t, func(t *testing.T) {
			machine := sim.New(sim.Config{TotalBytes: 8 << 30})
			faults := fault.Wrap(machine)
			require.NoError(t, faults.Add(fault.Rule{Func: "cuDevicePrimaryCtxRetain", Count: 1, Result: cudadrv.OutOfMemory}))
			looks := int64(0)
			faults.SetBefore(func(function string) {
				if function == "cuMemGetInfo" {
					looks++
					machine.Device(0).SetCapacity(looks << 30)
				}
			})
			limit := time.Hour
			if !enough {
				limit = 4*minLook + minLook/2 // the first look finds no context
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			var begun []int64
			w := waiting{driver: struct{ cudadrv.Driver }{faults}}
			free, err := w.until(ctx, 5<<30, minLook, func(free int64) { begun = append(begun, free) })
			assert.Equal(t, !enough, errors.Is(err, context.DeadlineExceeded), err)
			assert.Equal(t, want, free)
			assert.Equal(t, []int64{0}, begun, "told once")
			assert.Empty(t, machine.Device(0).Objects())
		})
	}
}

// A load catches up a lag of up to a second; after a longer one it continues from then at the recorded intervals.
func TestALoadThatLags(t *testing.T) {
	tr := &trace.Trace{}
	for n := range 13 { // one in a second
		tr.Events = append(tr.Events, trace.Event{Op: trace.Alloc, ID: uint32(n), Bytes: 1 << 20}) //nolint:gosec // few
		tr.Micros = append(tr.Micros, int64(n)*1e6)
	}
	for lag, want := range map[time.Duration]time.Duration{0: 12, 10 * time.Second: 10 + 11, 1900 * time.Millisecond: 12, 2100 * time.Millisecond: 13} {
		if want *= time.Second; lag == 2100*time.Millisecond {
			want += 100 * time.Millisecond // 1.1 s too late
		}
		synctest.Test(t, func(t *testing.T) {
			faults := fault.Wrap(sim.New(sim.Config{}))
			dev, err := vram.Open(vram.Config{Driver: faults})
			require.NoError(t, err)
			s, err := dev.NewStream()
			require.NoError(t, err)
			late := lag
			faults.SetBefore(func(string) {
				<-time.After(late) // virtual, of the first call
				late = 0
			})
			live := map[uint32]vram.Buffer{}
			begun := time.Now()
			require.NoError(t, playRound(t.Context(), tr, 1, []*vram.Stream{s}, live))
			assert.InDelta(t, want.Seconds(), time.Since(begun).Seconds(), 0.05, "%v", lag)
			assert.Len(t, live, 13)
			for _, b := range live {
				require.NoError(t, b.Free())
			}
			require.NoError(t, dev.Close())
		})
	}
}

// Buffers that live when a load ends are no failure, and any other error of the device is one.
func TestTheEndOfALoad(t *testing.T) {
	for _, fails := range []bool{false, true} {
		faults := fault.Wrap(sim.New(sim.Config{}))
		dev, err := vram.Open(vram.Config{Driver: faults})
		require.NoError(t, err)
		s, err := dev.NewStream()
		require.NoError(t, err)
		_, err = s.Alloc(1 << 20)
		require.NoError(t, err)
		if fails {
			require.NoError(t, faults.Add(fault.Rule{Func: "cuDevicePrimaryCtxRelease", Result: cudadrv.Unknown}))
		}
		err = (&workload{device: dev}).close()
		assert.Equal(t, fails, errors.Is(err, cudadrv.Unknown), err)
		assert.Equal(t, fails, err != nil)
	}
}

// A page on a loopback address answers requests that name this machine, with a port or without.
func TestHostsOfAPage(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	page := ownHost(listener, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for host, want := range map[string]int{
		"localhost": 200, "localhost:80": 200, "127.0.0.1": 200, "127.0.0.1:80": 200, "127.1.2.3": 200, "[::1]": 200, "[::1]:80": 200, "::1": 200,
		"host.example": 403, "host.example:80": 403, "10.0.0.1": 403, "[fe80::1]:80": 403, "": 403, "localhost.example": 403,
	} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request.Host = host
		answer := httptest.NewRecorder()
		page.ServeHTTP(answer, request)
		assert.Equal(t, want, answer.Code, host)
	}
}

// scripted has a sample or an error for each look.
type scripted struct {
	answers []error
	looks   int
}

func (s *scripted) sample(context.Context) (*page.Sample, error) {
	s.looks++
	if err := s.answers[s.looks-1]; err != nil {
		return nil, err
	}
	return &page.Sample{Time: time.Now(), Devices: make([]page.Device, 1)}, nil
}

func (s *scripted) memoryMap(context.Context, int) (*page.Map, error) { return nil, errPlanned }

var errPlanned = errors.New("planned by the test")

// An error of the first look ends the command, and a later one is shown instead of figures.
func TestTopGoesOnAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, row := range []struct {
			answers []error
			want    error
			looks   int
		}{{[]error{nil, errPlanned, errPlanned, nil}, nil, 4}, {[]error{errPlanned, nil}, errPlanned, 1}} {
			var out bytes.Buffer
			from := &scripted{answers: row.answers}
			err := (&topCmd{Count: len(row.answers)}).show(t.Context(), &program{stdout: &out}, from)
			require.ErrorIs(t, err, row.want)
			assert.Equal(t, row.looks, from.looks)
			if row.want == nil {
				lines := strings.Split(strings.TrimSpace(out.String()), "\n")
				require.Len(t, lines, 5)
				assert.Equal(t, []string{errPlanned.Error(), errPlanned.Error()}, lines[2:4])
			}
		}
	})
}

// The seeds begin with the flag's.
func TestSimPlaysItsSeeds(t *testing.T) {
	var want simulation.Report
	for seed := range uint64(2) {
		report, err := simulation.Run(simulation.Options{Seed: 7 + seed, Steps: 200})
		require.NoError(t, err)
		want.Add(report)
	}
	code, stdout, stderr := vramCommand(t, "sim", "-seed", "7", "-seeds", "2", "-steps", "200")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, wrapped(want.String()))
}
