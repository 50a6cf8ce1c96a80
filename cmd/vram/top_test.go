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
	assert.Equal(t, []string{"time", "reserved", "live", "pending", "cached", "free", "limit", "allocs/s", "hits", "waiting", "pressure"}, strings.Fields(lines[0]))
	assert.Contains(t, lines[3], "2 GiB")
	assert.NotContains(t, stdout, "\x1b")
}

// A page that runs elsewhere is read by its address.
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
		HitRate: 0.875, Panics: 1, DeadlockCount: 3, WaitCount: 9,
		Figures: page.Figures{
			LiveBytes: 256 << 20, PendingBytes: 64 << 20, CachedBytes: 64 << 20, FreeBytes: 32 << 20, SetAsideBytes: 32 << 20,
			ReservedBytes: 448 << 20, LimitBytes: 512 << 20, AllocCount: 100, FreeCount: 50, MagazineHits: 80, StreamHits: 7, Waiting: 4,
		},
		Streams: []page.Stream{{Stream: 1, LiveBytes: 1 << 20, HitRate: 1}},
		Tenants: []page.Tenant{{Name: "model\x1b[31m A", HeldBytes: 1 << 20}},
	}}
	f.memoryMap = &page.Map{Segments: []page.Segment{
		{Bytes: 300, Ranges: []page.Range{{Bytes: 150, State: "live"}, {OffsetBytes: 150, Bytes: 150, State: "free"}}},
		{Bytes: 60, Ranges: []page.Range{{Bytes: 60, State: "mixed", Mixed: &page.Sums{PendingBytes: 40, LiveBytes: 20}}, {OffsetBytes: 1 << 40, Bytes: 5, State: "?"}}},
	}}
	return f
}

// A frame fits the width of the terminal, with colours and without; names cannot move the cursor.
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
		"3 refused as deadlocks", "pressure     high, rose 2 times", "1 recovered: each is a defect", "tenant model[31m A", "LLLLPPPP"[:4],
	} {
		assert.Contains(t, all, want)
	}
}

// The bar is as long as the parts are of the limit; the map has a cell for each part of a segment.
func TestBarsAreInProportion(t *testing.T) {
	t.Parallel()
	f := aFrame()
	bar := f.memory(64, false)[1]
	assert.Equal(t, strings.Repeat("L", 32)+strings.Repeat("P", 8)+strings.Repeat("C", 8)+"SSSSFFFF"+strings.Repeat("·", 8), bar)
	assert.Equal(t, []string{"LLLLLLLLLL", "LLLFFFFFFF", "FFFFFPPPPP"}, mapLines(f.memoryMap, 10, false))
}

// On a terminal a frame is printed over the one before, and the cursor comes back.
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
	s.end()
	assert.True(t, strings.HasSuffix(out.String(), showCursor))
}
