package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
)

func TestCheckerSeesWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		begin    cudadrv.Ptr
		gotBytes int64
		what     string
	}{
		"fine before":   {0x1000, 0x1000, ""},
		"fine behind":   {0x3000, 0x1000, ""},
		"same place":    {0x2000, 0x1000, "overlaps buffer 7 at [0x2000,0x3000)"},
		"runs into":     {0x1e00, 0x1000, "overlaps buffer 7"},
		"begins inside": {0x2e00, 0x1000, "overlaps buffer 7"},
		"address 0":     {0, 0x1000, "at address 0"},
		"not aligned":   {0x4100, 0x1000, "not aligned to 512 bytes"},
		"fewer bytes":   {0x4000, 0xfff, "has 4095 bytes, asked for 4096"},
		"more bytes":    {0x4000, 0x1001, "has 4097 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			var check checker
			require.Empty(t, check.entered(&step{id: 7, bytes: 0x1000}, 0x2000, 0x1000, 1))
			what := check.entered(&step{id: 8, bytes: 0x1000}, c.begin, c.gotBytes, 1)
			if c.what == "" {
				assert.Empty(t, what)
			} else {
				assert.Contains(t, what, c.what)
			}
		})
	}
}

func TestCheckerSeesForeignFree(t *testing.T) {
	var check checker
	require.Empty(t, check.entered(&step{id: 7, bytes: 512}, 0x2000, 512, 1))
	assert.Contains(t, check.leaving(8, 0x2000, 1, 0), "not live")
	assert.Contains(t, check.leaving(7, 0x2100, 1, 0), "not live")
	assert.Empty(t, check.leaving(7, 0x2000, 1, 0))
	assert.Contains(t, check.leaving(7, 0x2000, 1, 0), "not live")
}

// stillClock is a clock that a test sets.
type stillClock struct{ now time.Duration }

func (c *stillClock) AdvanceTo(t time.Duration)                  { c.now = t }
func (c *stillClock) Now() time.Duration                         { return c.now }
func (c *stillClock) Occupy(cudadrv.Stream, time.Duration) error { return nil }

func TestCheckerSeesMemoryThatMovesTooEarly(t *testing.T) {
	const lag = 5 * time.Millisecond
	for name, c := range map[string]struct {
		after   time.Duration  // from the free to the next allocation
		stream  cudadrv.Stream // that gets the memory
		waits   bool           // for the event recorded behind the free
		unmaps  bool
		isWrong bool
	}{
		"same stream":               {stream: 1},
		"other stream":              {stream: 2, isWrong: true},
		"other stream, later":       {stream: 2, after: lag},
		"other stream, just before": {stream: 2, after: lag - 1, isWrong: true},
		"other stream that waits":   {stream: 2, waits: true},
		"unmapped":                  {unmaps: true, isWrong: true},
		"unmapped later":            {unmaps: true, after: lag},
	} {
		t.Run(name, func(t *testing.T) {
			clock := &stillClock{now: time.Second}
			check := checker{order: newOrder(clock)}
			device := &watchedDevice{Device: silentDevice{}, checker: &check}
			require.Empty(t, check.entered(&step{id: 7, bytes: 0x1000}, 0x2000, 0x1000, 1))
			require.Empty(t, check.leaving(7, 0x2000, 1, lag))
			require.NoError(t, device.EventRecord(9, 1))
			clock.now += c.after
			if c.waits {
				require.NoError(t, device.StreamWaitEvent(2, 9))
			}
			if c.unmaps {
				require.NoError(t, device.MemUnmap(0x2800, 0x4000))
				c.stream = 1
			}
			what := check.entered(&step{id: 8, bytes: 0x100}, 0x2e00, 0x100, c.stream)
			assert.Equal(t, c.isWrong, what != "", what)
		})
	}
}

func TestCheckerSeesUnmappingUnderALiveBuffer(t *testing.T) {
	var check checker
	require.Empty(t, check.entered(&step{id: 7, bytes: 0x1000}, 0x2000, 0x1000, 1))
	check.unmapping(0x3000, 0x1000)
	require.Empty(t, check.entered(&step{id: 8, bytes: 0x100}, 0x5000, 0x100, 1))
	check.unmapping(0x1000, 0x1100)
	assert.Contains(t, check.leaving(7, 0x2000, 1, 0), "is unmapped under buffer 7")
}

// silentDevice says yes to what the tests call.
type silentDevice struct{ cudadrv.Device }

func (silentDevice) EventRecord(cudadrv.Event, cudadrv.Stream) error     { return nil }
func (silentDevice) StreamWaitEvent(cudadrv.Stream, cudadrv.Event) error { return nil }
func (silentDevice) MemUnmap(cudadrv.Ptr, int64) error                   { return nil }

// The checker against one flag a page.
func TestCheckerAgainstPages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var check checker
		var pages [64]int64 // id+1 of the owner
		begins := map[uint32]int{}
		for id := range uint32(60) {
			begin := rapid.IntRange(1, len(pages)-8).Draw(t, "begin")
			count := rapid.IntRange(1, 8).Draw(t, "pages")
			taken := false
			for _, owner := range pages[begin : begin+count] {
				taken = taken || owner != 0
			}
			what := check.entered(&step{id: id, bytes: int64(count) * 512}, cudadrv.Ptr(begin*512), int64(count)*512, 1)
			require.Equal(t, taken, what != "", what)
			if !taken {
				for i := range count {
					pages[begin+i] = int64(id) + 1
				}
				begins[id] = begin
			}
			if victim := rapid.Uint32Range(0, id).Draw(t, "victim"); rapid.Bool().Draw(t, "free") {
				at, live := begins[victim]
				what := check.leaving(victim, cudadrv.Ptr(at*512), 1, 0)
				require.Equal(t, live, what == "", what)
				delete(begins, victim)
				for i := range pages {
					if pages[i] == int64(victim)+1 {
						pages[i] = 0
					}
				}
			}
		}
	})
}
