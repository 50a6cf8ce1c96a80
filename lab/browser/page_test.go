package browser

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/page"
)

const mib = int64(1) << 20

// site is a page that is served, and the device that it shows.
type site struct {
	dev  *vram.Device
	gpu  *sim.Device
	page *page.Page
	url  string
}

func newSite(t *testing.T, o page.Options) *site {
	t.Helper()
	return newSiteOf(t, o, vram.Config{})
}

func newSiteOf(t *testing.T, o page.Options, config vram.Config) *site {
	t.Helper()
	driver := sim.New(sim.Config{})
	config.Driver, config.LimitBytes = driver, 512*mib
	dev, err := vram.Open(config)
	require.NoError(t, err)
	s := &site{dev: dev, gpu: driver.Device(0), page: page.New(o, dev)}
	server := httptest.NewServer(http.StripPrefix("/debug/vram", s.page))
	s.url = server.URL + "/debug/vram/"
	t.Cleanup(func() {
		s.page.Close()
		server.Close()
		_ = dev.Close()
	})
	return s
}

// fill gives the memory of the device every state that a picture should have. It returns the live buffers.
func (s *site) fill(t *testing.T) (live []vram.Buffer) {
	t.Helper()
	model, loader := s.stream(t), s.stream(t)
	alloc := func(on *vram.Stream, bytes int64, tag string) vram.Buffer {
		b, err := on.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tag: tag})
		require.NoError(t, err)
		return b
	}
	for i := range int64(24) {
		live = append(live, alloc(model, (1+i%5)*3*mib, "weights"))
		gap := alloc(model, (1+i%3)*mib, "")
		if i%2 == 0 {
			require.NoError(t, gap.Free())
		} else {
			live = append(live, gap)
		}
		live = append(live, alloc(model, 512<<(i%8), ""))
	}
	batch := alloc(loader, 20*mib, "batch")
	require.NoError(t, s.gpu.Occupy(model.Handle(), time.Hour))
	require.NoError(t, batch.RecordStream(model))
	require.NoError(t, batch.Free())
	live = append(live, alloc(loader, 6*mib, "batch"))
	reservation, err := s.dev.Reserve(t.Context(), 16*mib)
	require.NoError(t, err)
	t.Cleanup(func() {
		s.gpu.Advance(2 * time.Hour)
		reservation.Release()
	})
	require.NoError(t, s.dev.Warm(t.Context(), vram.Demand{Bytes: 40 * mib, Count: 1}))
	return live
}

func (s *site) stream(t *testing.T) *vram.Stream {
	t.Helper()
	stream, err := s.dev.NewStream()
	require.NoError(t, err)
	return stream
}

// The page shows the figures as they change, in light and dark, on a desk and on a phone, and prints no error.
func TestThePageIsLive(t *testing.T) {
	v := newViewer(t)
	s := newSiteOf(t, page.Options{Interval: 200 * time.Millisecond}, vram.Config{SampleBytes: 1})
	v.look(1360, 900, "light")
	v.do(chromedp.Navigate(s.url))
	v.until("the page says that the device is not used", `!document.getElementById("notice").hidden`)
	assert.Contains(t, v.text("notice"), "No call has used the device yet")
	live := s.fill(t)
	v.until("the figures come", `document.getElementById("stream-rows").children.length === 2 && !document.getElementById("map").hidden`)
	assert.Equal(t, "Live", v.text("status"))
	assert.True(t, eval[bool](v, `document.getElementById("notice").hidden`))
	for name, c := range map[string]struct {
		width, height int64
		scheme        string
	}{"light": {1360, 900, "light"}, "dark": {1360, 900, "dark"}, "phone-light": {360, 740, "light"}, "phone-dark": {360, 740, "dark"}} {
		v.look(c.width, c.height, c.scheme)
		v.until("the page has its width", `innerWidth === `+strconv.FormatInt(c.width, 10))
		assert.LessOrEqual(t, eval[int](v, `document.documentElement.scrollWidth`), int(c.width), "%s: the page is no wider than its window", name)
		v.basics(name)
		v.picture(name)
	}
	v.look(1360, 900, "light")

	before := v.text("reserved")
	extra, err := s.stream(t).Alloc(64 * mib)
	require.NoError(t, err)
	v.until("a new stream shows without a reload", `document.getElementById("stream-rows").children.length === 3`)
	assert.NotEqual(t, before, v.text("reserved"))
	require.NoError(t, extra.Free())
	for _, b := range live {
		require.NoError(t, b.Free())
	}
	v.until("frees show", `document.querySelector("#stream-rows tr").children[6].textContent === "0"`)
	v.quiet()
}

// The sums of the map equal the answers', and its table has every segment.
func TestTheMapHasEverySegment(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: page.MinInterval})
	s.fill(t)
	v.look(1360, 900, "light")
	v.do(chromedp.Navigate(s.url))
	v.until("the map comes", `!document.getElementById("map").hidden`)
	eval[bool](v, `(document.getElementById("map-rows").closest("details").open = true)`)
	v.until("the table has rows", `document.getElementById("map-rows").children.length > 0`)
	var m page.Map
	require.NoError(t, json.Unmarshal([]byte(eval[string](v, `fetch("map.json").then((a) => a.text())`)), &m))
	assert.Equal(t, s.dev.Stats().LiveBytes, m.Total.LiveBytes)
	assert.Equal(t, len(m.Segments), eval[int](v, `document.getElementById("map-rows").children.length`))
	assert.Contains(t, v.text("map-legend"), "Pending 20 MiB")
	assert.Contains(t, v.text("map-legend"), "Set aside 16 MiB")
	drawn := eval[int](v, `(() => {
		const c = document.querySelector("#map canvas"), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data, seen = new Set();
		for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) seen.add((d[i] << 16) | (d[i + 1] << 8) | d[i + 2]);
		return seen.size;
	})()`)
	assert.GreaterOrEqual(t, drawn, 5, "the states have colours of their own")
	v.quiet()
}

// All that can be done with a pointer can be done with keys: every control is reached by Tab, and the pictures are read with
// arrow keys.
func TestKeysReachEverything(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: page.MinInterval})
	s.fill(t)
	v.look(1360, 900, "light")
	v.do(chromedp.Navigate(s.url))
	v.until("the map comes", `!document.getElementById("map").hidden`)
	v.until("there is a time line", `document.querySelectorAll("#time svg path").length > 5`)
	var reached []string
	for range 40 {
		v.do(chromedp.KeyEvent(kb.Tab))
		at := eval[string](v, `(document.activeElement.id || document.activeElement.textContent).trim()`)
		if len(reached) > 0 && at == reached[0] {
			break
		}
		reached = append(reached, at)
		assert.True(t, eval[bool](v, `document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== "none"`), "%q has no ring", at)
	}
	for _, want := range []string{"Skip to the figures", "pause", "time", "1 min", "5 min", "All", "As a table", "By state", "By stream", "map", "Segments as a table", "streams", "map-link"} {
		assert.Contains(t, reached, want)
	}
	v.do(chromedp.Focus(chromedp.CSS(`#map`)), chromedp.KeyEvent(kb.Home))
	first := v.text("map-readout")
	assert.Contains(t, first, "at 0x")
	v.do(chromedp.KeyEvent(kb.ArrowRight))
	assert.NotEqual(t, first, v.text("map-readout"))
	v.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.End), chromedp.KeyEvent(kb.Escape))
	v.do(chromedp.Focus(chromedp.CSS(`#time`)), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	assert.Contains(t, v.text("time-readout"), "Reserved")

	v.do(chromedp.Focus(chromedp.CSS(`#pause`)), chromedp.KeyEvent(kb.Enter))
	assert.Equal(t, "Paused", v.text("status"))
	allocs := `document.querySelector("#served-rows tr:nth-child(1)").children[1].textContent`
	paused := eval[string](v, allocs)
	b, err := s.stream(t).Alloc(mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	assert.Equal(t, paused, eval[string](v, allocs))
	v.do(chromedp.KeyEvent(kb.Enter))
	v.until("it goes on", `document.getElementById("status").textContent === "Live" && document.getElementById("stream-rows").children.length === 3`)
	v.quiet()
}

// A device that is closed is shown as closed, with its last figures.
func TestAClosedDevice(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: page.MinInterval})
	live := s.fill(t)
	v.look(1360, 900, "light")
	v.do(chromedp.Navigate(s.url))
	v.until("the map comes", `!document.getElementById("map").hidden`)
	for _, b := range live {
		require.NoError(t, b.Free())
	}
	s.gpu.Advance(2 * time.Hour)
	require.NoError(t, s.dev.Close())
	v.until("the page says so", `document.getElementById("status").textContent === "Closed"`)
	assert.Contains(t, v.text("notice"), "The device is closed")
	assert.Equal(t, "simulated GPU", v.text("device-name"))
	assert.True(t, eval[bool](v, `document.getElementById("map").hidden`))
}

// After the server was away the page connects again by itself.
func TestThePageConnectsAgain(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: page.MinInterval})
	shown, away := s.page, make(chan bool, 1)
	away <- false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gone := <-away
		away <- gone
		if gone {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		shown.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(shown.Close)
	v.do(chromedp.Navigate(server.URL + "/"))
	v.until("it is live", `document.getElementById("status").textContent === "Live"`)
	<-away
	away <- true
	server.CloseClientConnections()
	v.until("it says that it has no connection", `document.getElementById("status").textContent === "Connecting again"`)
	<-away
	away <- false
	v.until("it is live again", `document.getElementById("status").textContent === "Live"`)
}

// The call stacks of a device that samples are shown as delivered; of one that does not, the settings that switch it on.
func TestCallStacksAreShown(t *testing.T) {
	v := newViewer(t)
	s := newSiteOf(t, page.Options{Interval: page.MinInterval}, vram.Config{SampleBytes: 1})
	b, err := s.stream(t).Alloc(3 * mib)
	require.NoError(t, err)
	v.do(chromedp.Navigate(s.url))
	v.until("they come", `document.getElementById("call-rows").children.length > 0`)
	assert.Contains(t, v.text("call-rows"), "3 MiB")
	assert.Contains(t, v.text("call-rows"), "browser.TestCallStacksAreShown")
	require.NoError(t, b.Free())
	v.do(chromedp.Navigate(newSite(t, page.Options{Interval: page.MinInterval}).url))
	v.until("figures come", `document.getElementById("status").textContent === "Live"`)
	v.until("it says how", `document.getElementById("calls-empty").textContent.includes("VRAM_SAMPLE_SIZE")`)
	v.quiet()
}

// Before the first sample the page asserts nothing about the memory; of a device without any use it shows no rates.
func TestWhatIsNotKnownIsNotShown(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: time.Hour})
	begin := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/events") {
			select {
			case <-begin:
			case <-r.Context().Done():
				return
			}
		}
		s.page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(s.page.Close)
	t.Cleanup(sync.OnceFunc(func() { close(begin) }))
	v.do(chromedp.Navigate(server.URL + "/"))
	for _, id := range []string{"status", "device-facts", "time-begins", "map-empty", "streams-empty", "calls-empty"} {
		assert.Equal(t, "Connecting", v.text(id), id)
	}
	begin <- struct{}{}
	v.until("the first sample comes", `document.getElementById("status").textContent === "Live"`)
	for _, id := range []string{"hit-rate", "efficiency", "largest", "fragmentation", "wait-longest"} {
		assert.Equal(t, "–", v.text(id), id)
	}
	assert.Contains(t, v.text("time-begins"), "The time line begins here")
	assert.Equal(t, "No stream is open.", v.text("streams-empty"))
	v.until("the map comes", `document.getElementById("map-empty").textContent === "No memory is held from the driver."`)
	assert.True(t, eval[bool](v, `document.getElementById("map-readout").hidden`))
	v.quiet()
}

// Waiting requests are listed with their reason, and refused ones are counted, with the pressure.
func TestWaitingAndRefusedRequestsAreShown(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: page.MinInterval})
	holds, waits := s.stream(t), s.stream(t)
	held, err := holds.Alloc(480 * mib)
	require.NoError(t, err)
	tenant, err := s.dev.Tenant("model A", vram.Quota{ShareBytes: 64 * mib})
	require.NoError(t, err)
	first := waits.AllocAsync(t.Context(), vram.Request{Bytes: 100 * mib, Tag: "kv-cache", Wait: true, Tenant: tenant})
	second := waits.AllocAsync(t.Context(), vram.Request{Bytes: 200 * mib, Tag: "weights", Wait: true})
	v.look(1360, 900, "light")
	v.do(chromedp.Navigate(s.url))
	v.until("they are listed", `document.getElementById("waiter-rows").children.length === 2`)
	row := eval[string](v, `[...document.querySelectorAll("#waiter-rows tr")].map((r) => [...r.cells].map((c) => c.textContent).join("|")).join("\n")`)
	assert.Contains(t, row, "1|200 MiB|weights|–|2|")
	assert.Contains(t, row, "2|100 MiB|kv-cache|model A|2|")
	assert.Contains(t, row, "|memory, behind 1 request")
	assert.Contains(t, v.text("waiters-holders"), "Memory is held by stream 1 with 480 MiB")
	assert.Equal(t, "1", eval[string](v, `document.querySelector("#tenant-rows tr").cells[6].textContent`))
	v.until("the page says that nothing was refused", `document.getElementById("refused").textContent === "0"`)
	_, err = holds.Alloc(256 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	v.until("the refusal is counted", `document.getElementById("refused").textContent === "1"`)
	assert.Contains(t, v.text("rises"), "requests are refused")
	assert.Equal(t, "1", v.text("refused-outOfMemoryCount"))
	v.picture("waiting")
	require.NoError(t, held.Free())
	for _, f := range []interface {
		Await(ctx context.Context) (vram.Buffer, error)
	}{first, second} {
		b, err := f.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	v.until("the list is gone", `document.getElementById("waiters").hidden`)
	v.quiet()
}

// Of many streams those with the most memory are shown, with colours of their own in the map, and all on request. Nothing is
// cut on a phone.
func TestManyStreams(t *testing.T) {
	v := newViewer(t)
	s := newSite(t, page.Options{Interval: page.MinInterval})
	for i := range int64(40) {
		_, err := s.stream(t).Alloc((1 + i%7) * mib)
		require.NoError(t, err)
	}
	v.look(360, 740, "light")
	v.do(chromedp.Navigate(s.url))
	v.until("some are shown", `document.getElementById("stream-rows").children.length === 12`)
	v.until("the map comes", `!document.getElementById("map").hidden`)
	assert.True(t, eval[bool](v, `document.getElementById("streams").scrollWidth <= document.getElementById("streams").clientWidth`), "no column is cut")
	assert.Contains(t, v.text("streams-rest"), "28 other streams hold")
	eval[bool](v, `(document.querySelector('#map-colours [data-by="stream"]').click(), true)`)
	assert.Contains(t, v.text("map-legend"), "34 other streams")
	fills := eval[int](v, `new Set([...document.querySelectorAll("#map-legend li")].map((e) => e.dataset.name)).size`)
	assert.Equal(t, eval[int](v, `document.querySelectorAll("#map-legend li").length`), fills, "no fill stands for two streams")
	v.picture("phone-streams")
	eval[bool](v, `(document.getElementById("streams-all").click(), true)`)
	assert.Equal(t, 40, eval[int](v, `document.getElementById("stream-rows").children.length`))
	v.look(1360, 900, "dark")
	v.until("it is wide", `innerWidth === 1360`)
	v.picture("streams")
	v.quiet()
}

// basics checks the first rules of an accessibility checker.
func (v *viewer) basics(name string) {
	v.Helper()
	var found []string
	require.NoError(v, json.Unmarshal([]byte(eval[string](v, basics)), &found))
	assert.Empty(v, found, "%s: %s", name, strings.Join(found, "; "))
}
