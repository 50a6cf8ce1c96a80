package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/monitor/page"
)

// Where stdout is no terminal, each sample is a line.
func TestTopPrintsLines(t *testing.T) {
	code, stdout, stderr := vramCommand(t, "top", "-driver", "sim", "-count", "3", "-interval", "60ms", "-speed", "20")
	require.Equal(t, exitOK, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.Len(t, lines, 4)
	assert.Equal(t, []string{"time", "reserved", "live", "pending", "cached", "free", "limit", "allocs/s", "hits", "waiting", "refused", "pressure"}, strings.Fields(lines[0]))
	assert.Contains(t, lines[3], "2 GiB")
	assert.NotContains(t, stdout, "\x1b")
}

// The command reads the page at an address.
func TestTopReadsAPage(t *testing.T) {
	url, _ := served(t, "-speed", "20", "-interval", "50ms")
	code, stdout, stderr := vramCommand(t, "top", "-count", "2", "-interval", "60ms", strings.TrimSuffix(url, "/"))
	require.Equal(t, exitOK, code, stderr)
	assert.Len(t, strings.Split(strings.TrimSpace(stdout), "\n"), 3)

	code, _, stderr = vramCommand(t, "top", "-device", "1", url)
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, stderr, "--device 1: the page has 1")
}

func TestTopMistakes(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/gone/") {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":"page: closed"}`))
			return
		}
		_, _ = w.Write([]byte("<html>"))
	}))
	defer other.Close()
	for args, c := range map[string]struct {
		code int
		want string
	}{
		"-count=-1":               {exitUsage, "--count -1: want 0 or more"},
		"-device=-1":              {exitUsage, "--device -1: want 0 or more"},
		"ftp://host/":             {exitUsage, "want the address of a page"},
		"127.0.0.1:80":            {exitUsage, "want the address of a page"},
		"http://127.0.0.1:1/":     {exitFailed, "connection refused"},
		other.URL:                 {exitFailed, "is no page of vram"},
		other.URL + "/gone?x=1#y": {exitFailed, "page: closed"},
	} {
		code, _, stderr := vramCommand(t, append([]string{"top"}, strings.Fields(args)...)...)
		assert.Equal(t, c.code, code, args)
		assert.Contains(t, stderr, c.want, args)
	}
}

// aFrame is one with every part.
func aFrame() *frame {
	f := &frame{time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), device: &page.Device{
		Name: "a GPU", Driver: "sim", State: "in use", PeakLiveBytes: 300 << 20, PeakReservedBytes: 400 << 20, Pressure: "high", PressureRises: 2,
		HitRate: 0.875, Panics: 1, WaitCount: 9, RetryCount: 6,
		Figures: page.Figures{
			LiveBytes: 256 << 20, PendingBytes: 64 << 20, CachedBytes: 64 << 20, FreeBytes: 32 << 20, SetAsideBytes: 32 << 20,
			ReservedBytes: 448 << 20, LimitBytes: 512 << 20, AllocCount: 100, FreeCount: 50, MagazineHits: 80, StreamHits: 7, Waiting: 7,
			OutOfMemoryCount: 5, DeadlockCount: 2, EndedWaitCount: 1, RefusedCount: 2,
		},
		Streams: []page.Stream{{Stream: 1, LiveBytes: 1 << 20, HitRate: 1}},
		Tenants: []page.Tenant{{Name: "model\x1b[31m A", HeldBytes: 1 << 20, WaitingForQuota: 2, WaitingForMemory: 3}},
		Waiters: page.Waiters{RequestCount: 7, HolderCount: 2, Holders: []page.Holder{{Stream: 1, HeldBytes: 1 << 20}, {Tenant: "model A", HeldBytes: 3 << 20}}},
	}}
	for i := range 7 {
		f.device.Waiters.Requests = append(f.device.Waiters.Requests, page.WaitingRequest{
			Position: i + 1, Bytes: 12 << 20, Stream: 3, Tag: "kv\x1b[2J", Tenant: "model A", For: "memory", WaitedSeconds: 1.25,
		})
	}
	f.memoryMap = &page.Map{Segments: []page.Segment{
		{Bytes: 300, Ranges: []page.Range{{Bytes: 150, State: "live"}, {OffsetBytes: 150, Bytes: 150, State: "free"}}},
		{Bytes: 60, Ranges: []page.Range{{Bytes: 60, State: "mixed", Mixed: &page.Sums{PendingBytes: 40, LiveBytes: 20}}, {OffsetBytes: 1 << 40, Bytes: 5, State: "?"}}},
	}}
	return f
}

// A frame fits the width of the terminal, with and without colours; names cannot move the cursor.
func TestFramesFitTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{1, 20, 40, 80, 120, 500} {
		for _, colours := range []bool{false, true} {
			f := aFrame()
			f.rates(&page.Device{Figures: page.Figures{AllocCount: 40, MagazineHits: 50}}, 2*time.Second)
			for _, line := range f.render(width, colours) {
				assert.LessOrEqual(t, text.StringWidthWithoutEscSequences(line), min(max(width, 20), mostWidth), "%d: %q", width, line)
				if !colours {
					assert.NotContains(t, line, "\x1b")
				}
			}
		}
	}
	all := strings.Join(aFrame().render(100, false), "\n")
	for _, want := range []string{
		"a GPU, driver sim, in use", "03:04:05", "reserved 448 MiB of 512 MiB", "L live 256 MiB", "P pending 64 MiB", "87.5% hits in all",
		"pressure     high, rose 2 times", "1 recovered: each is a defect", "tenant model[31m A", "LLLLPPPP"[:4],
		"out of memory 5, deadlocks 2, timed out 1, before a search 2", "tried again  6 requests; 0 bad frees", "2 wait for its quota, 3 for memory", "7 waiting requests:",
		" 1. 12 MiB on stream 3, tag kv[2J, tenant model A, waits for memory since 1.25s", "and 2 more", "held by stream 1 1 MiB, tenant model A 3 MiB",
	} {
		assert.Contains(t, all, want)
	}
}

// Normal pressure does not hide refused requests.
func TestRefusalsShowBesideThePressure(t *testing.T) {
	t.Parallel()
	f := aFrame()
	f.device.Pressure = "normal"
	f.rates(&page.Device{Figures: page.Figures{OutOfMemoryCount: 4, DeadlockCount: 2}}, time.Second)
	all := strings.Join(f.render(100, true), "\n")
	assert.Contains(t, all, "\x1b[31mpressure     normal, but 2 requests found no memory just now\x1b[0m")
	assert.Regexp(t, ` 8 normal, refusing$`, f.line())
	f.rates(&page.Device{Figures: f.device.Figures}, time.Second)
	assert.Contains(t, strings.Join(f.render(100, true), "\n"), "pressure     normal, rose 2 times")
	assert.Regexp(t, ` 8 normal$`, f.line())
}

// A device without allocations has no rate.
func TestNothingHasNoRates(t *testing.T) {
	t.Parallel()
	f := &frame{device: &page.Device{HitRate: 1, Efficiency: 1, Streams: []page.Stream{{Stream: 1, HitRate: 1}}}}
	f.rates(&page.Device{}, time.Second)
	all := strings.Join(f.render(100, false), "\n") + f.line()
	assert.NotContains(t, all, "%")
	assert.Contains(t, all, "efficiency –")
}

// The bar's length is the part of the limit in use; the map has a cell for each part of a segment.
func TestBarsAreInProportion(t *testing.T) {
	t.Parallel()
	f := aFrame()
	bar := f.memory(64, false)[1]
	assert.Equal(t, strings.Repeat("L", 32)+strings.Repeat("P", 8)+strings.Repeat("C", 8)+"SSSSFFFF"+strings.Repeat("·", 8), bar)
	assert.Equal(t, []string{"LLLLLLLLLL", "LLLFFFFFFF", "FFFFFPPPPP"}, mapLines(f.memoryMap, 10, false))
}

// On a terminal a frame overwrites the previous one, and the cursor returns.
func TestTheScreenIsPaintedOver(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true, colours: true, size: func() (int, int) { return 80, 10 }}
	require.NoError(t, s.show(aFrame()))
	first := out.String()
	assert.True(t, strings.HasPrefix(first, hideCursor+clearAll+goHome))
	assert.Equal(t, 9, strings.Count(first, "\r\n"), "no line more than the terminal has")
	out.Reset()
	require.NoError(t, s.show(aFrame()))
	assert.True(t, strings.HasPrefix(out.String(), goHome))
	assert.NotContains(t, out.String(), "q quits", "there are no keys")
	s.keys = true
	require.NoError(t, s.show(aFrame()))
	assert.Contains(t, out.String(), "q quits")
	s.end()
	assert.True(t, strings.HasSuffix(out.String(), showCursor))
}

// The first processes on the GPU are listed, with a count of the others.
func TestTopShowsProcesses(t *testing.T) {
	d := page.Device{ProcessesKnown: true, ProcessCount: 9, Processes: []page.Process{
		{PID: 7, Command: "python3\x1b[31m", Place: "pod 6f1c", Bytes: 3 << 30, BytesKnown: true}, {PID: 8, Own: true}, {PID: 9}, {PID: 10}, {PID: 11}, {PID: 12},
	}}
	assert.Equal(t, []string{
		"", "processes on the GPU:", "    3 GiB by python3[31m (PID 7, pod 6f1c)", "    unknown bytes (PID 8), this process", "    unknown bytes (PID 9)",
		"    unknown bytes (PID 10)", "    unknown bytes (PID 11)", "    and 4 more",
	}, (&frame{device: &d}).processes(80))
	assert.Empty(t, (&frame{device: &page.Device{}}).processes(80))
}
