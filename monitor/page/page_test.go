package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/monitor/page"
)

const mib = int64(1) << 20

func TestMain(m *testing.M) { leaks.Main(m) }

// site is a page of a device that a server serves.
type site struct {
	*testing.T
	dev  *vram.Device
	page *page.Page
	url  string
}

func open(t *testing.T, o page.Options) *site {
	t.Helper()
	return openOf(t, o, vram.Config{})
}

func openOf(t *testing.T, o page.Options, config vram.Config) *site {
	t.Helper()
	config.Driver, config.LimitBytes = sim.New(sim.Config{}), 256*mib
	dev, err := vram.Open(config)
	require.NoError(t, err)
	s := &site{T: t, dev: dev, page: page.New(o, dev)}
	mux := http.NewServeMux()
	mux.Handle("/debug/vram/", http.StripPrefix("/debug/vram", s.page))
	mux.Handle("/plain/", s.page)
	server := httptest.NewServer(mux)
	s.url = server.URL + "/debug/vram"
	t.Cleanup(func() {
		s.page.Close()
		server.Close()
		_ = dev.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

// get is the answer at an address.
func (s *site) get(url string, header ...string) (answer *http.Response, body string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodGet, url, nil)
	require.NoError(s, err)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	answer, err = http.DefaultClient.Do(request)
	require.NoError(s, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(s, err)
	require.NoError(s, answer.Body.Close())
	return answer, string(text)
}

// read reads an answer of JSON.
func read[T any](s *site, name string) (value T) {
	s.Helper()
	answer, text := s.get(s.url + "/" + name)
	require.Equal(s, http.StatusOK, answer.StatusCode, text)
	require.Equal(s, "application/json", answer.Header.Get("Content-Type"))
	require.NoError(s, json.Unmarshal([]byte(text), &value))
	return value
}

// The JSON answers have the figures of Stats and MemoryMap.
func TestAnswersHaveTheFigures(t *testing.T) {
	s := open(t, page.Options{Interval: page.MinInterval})
	assert.Equal(t, "unused", read[page.Sample](s, "stats.json").Devices[0].State)
	assert.Empty(t, read[page.Map](s, "map.json").Segments)
	stream, err := s.dev.NewStream()
	require.NoError(t, err)
	b, err := stream.AllocFor(t.Context(), vram.Request{Bytes: 9 * mib, Tag: "weights"})
	require.NoError(t, err)
	small, err := stream.Alloc(512)
	require.NoError(t, err)
	tenant, err := s.dev.Tenant("model", vram.Quota{LimitBytes: mib})
	require.NoError(t, err)
	defer func() { _ = tenant }()

	var d page.Device
	require.Eventually(t, func() bool { d = read[page.Sample](s, "stats.json").Devices[0]; return d.State == "in use" }, time.Minute, time.Millisecond)
	n := s.dev.Stats()
	assert.Equal(t, [...]int64{n.LiveBytes, n.ReservedBytes, n.LimitBytes}, [...]int64{d.Figures.LiveBytes, d.Figures.ReservedBytes, d.Figures.LimitBytes})
	assert.Equal(t, "simulated GPU", d.Name)
	require.Len(t, d.Streams, 1)
	assert.Equal(t, uint64(2), d.Streams[0].LiveCount)
	require.Len(t, d.Tenants, 1)
	assert.Equal(t, mib, d.Tenants[0].LimitBytes)
	assert.NotEmpty(t, read[page.History](s, "history.json").Points)

	m := read[page.Map](s, "map.json?device=0&resolution=512")
	assert.Equal(t, n.LiveBytes, m.Total.LiveBytes)
	var sum page.Sums
	bytes, tagged := int64(0), 0
	for _, seg := range m.Segments {
		bytes += seg.Bytes
		sum.LiveBytes += seg.Total.LiveBytes
		sum.CachedBlockBytes += seg.Total.CachedBlockBytes
		sum.CachedRangeBytes += seg.Total.CachedRangeBytes
		sum.FreeBytes += seg.Total.FreeBytes
		for _, r := range seg.Ranges {
			if r.Tag == "weights" {
				tagged++
				assert.Equal(t, "live", r.State)
			}
		}
	}
	assert.Equal(t, 1, tagged)
	assert.Equal(t, m.Total, sum)
	assert.Equal(t, m.ReservedBytes, bytes)
	require.NoError(t, b.Free())
	require.NoError(t, small.Free())

	for name, want := range map[string]string{
		"map.json?device=1": `{"error":"device is 1, and there are 1"}`, "map.json?device=x": `{"error":"device is \"x\", want a number"}`,
		"calls.json?device=1": `{"error":"device is 1, and there are 1"}`, "calls.json?device=-1": `{"error":"device is -1`,
		"map.json?resolution=-1": `resolutionBytes`, "map.json?resolution=y": `want a number`,
	} {
		answer, text := s.get(s.url + "/" + name)
		assert.Equal(t, http.StatusBadRequest, answer.StatusCode)
		assert.Contains(t, text, want)
	}
}

// The page loads its own files alone, wherever it is mounted, and lets no other origin read it.
func TestThePageIsSafe(t *testing.T) {
	s := open(t, page.Options{})
	answer, text := s.get(s.url)
	assert.Equal(t, s.url+"/", answer.Request.URL.String(), "relative addresses need the slash")
	assert.Contains(t, text, "<!doctype html>")
	assert.NotContains(t, text, "<style")
	assert.NotContains(t, text, "style=")
	assert.NotContains(t, text, "onclick")
	assert.NotContains(t, text, "//cdn")
	policy := answer.Header.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	assert.NotContains(t, policy, "unsafe")
	for _, name := range []string{"app.js", "feed.js", "format.js", "map.js", "states.js", "timeline.js"} {
		answer, _ := s.get(s.url + "/" + name)
		assert.Equal(t, [...]string{"text/javascript; charset=utf-8", "nosniff"}, [...]string{answer.Header.Get("Content-Type"), answer.Header.Get("X-Content-Type-Options")}, name)
	}
	answer, _ = s.get(strings.Replace(s.url, "/debug/vram", "/plain/page.css", 1))
	assert.Equal(t, "text/css; charset=utf-8", answer.Header.Get("Content-Type"))
	answer, _ = s.get(s.url + "/../../page.go")
	assert.Equal(t, http.StatusNotFound, answer.StatusCode)

	answer, _ = s.get(s.url+"/stats.json", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
	answer, _ = s.get(s.url+"/", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	assert.Equal(t, http.StatusOK, answer.StatusCode, "a link may lead here")
	answer, _ = s.get(s.url+"/stats.json", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors")
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))

	posted, err := http.Post(s.url+"/", "text/plain", nil) //nolint:noctx // ends at once
	require.NoError(t, err)
	require.NoError(t, posted.Body.Close())
	assert.Equal(t, http.StatusMethodNotAllowed, posted.StatusCode)
}

// sent returns the header as it was when the answer began: later changes reach nobody.
func sent(w *httptest.ResponseRecorder) http.Header {
	answer := w.Result()
	_ = answer.Body.Close()
	return answer.Header
}

// Each kind of answer forbids caches, guesses of its type and use by other origins. HEAD of the stream of events names its type, and a
// page that was not made by New refuses.
func TestHeadersOfEachAnswer(t *testing.T) {
	s := open(t, page.Options{})
	for extension, standard := range map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8"} { // as a machine's table may have
		require.NoError(t, mime.AddExtensionType(extension, "text/x-other"))
		t.Cleanup(func() { assert.NoError(t, mime.AddExtensionType(extension, standard)) })
	}
	serve := func(p http.Handler, method, target string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
		return w
	}
	for _, c := range []struct {
		page         http.Handler
		method, path string
		status       int
		contentType  string
	}{
		{s.page, http.MethodGet, "/", http.StatusOK, "text/html; charset=utf-8"},
		{s.page, http.MethodHead, "/page.css", http.StatusOK, "text/css; charset=utf-8"},
		{s.page, http.MethodGet, "/stats.json", http.StatusOK, "application/json"},
		{s.page, http.MethodGet, "/nothing", http.StatusNotFound, "application/json"},
		{s.page, http.MethodPost, "/", http.StatusMethodNotAllowed, "application/json"},
		{s.page, http.MethodHead, "/events", http.StatusOK, "text/event-stream"},
		{&page.Page{}, http.MethodGet, "/", http.StatusServiceUnavailable, "application/json"},
		{(*page.Page)(nil), http.MethodGet, "/", http.StatusServiceUnavailable, "application/json"},
	} {
		w := serve(c.page, c.method, c.path)
		assert.Equal(t, c.status, w.Code, c.path)
		for name, want := range map[string]string{
			"Content-Type": c.contentType, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			assert.Equal(t, want, sent(w).Get(name), "%s of %s %s", name, c.method, c.path)
		}
		assert.Contains(t, sent(w).Get("Content-Security-Policy"), "default-src 'none'")
	}
	assert.Equal(t, "GET, HEAD", sent(serve(s.page, http.MethodPost, "/")).Get("Allow"))
	assert.Contains(t, serve(&page.Page{}, http.MethodGet, "/").Body.String(), "not made by New")

	// Mounted without its slash, it leads to the address with one, which has the same query.
	for _, c := range []struct{ prefix, target, want string }{
		{"/debug/vram", "/debug/vram", "/debug/vram/"},
		{"/debug/vram", "/debug/vram?device=1", "/debug/vram/?device=1"},
		{"/debug/vram", "/debug/vram?of=a/b&of=?", "/debug/vram/?of=a/b&of=?"},
		{"/debug/vram", "http://example.com/debug/vram?device=1", "/debug/vram/?device=1"},
		{"/debug/gpu:0", "/debug/gpu:0?device=1", "/debug/gpu:0/?device=1"},
		{"/a b", "/a%20b", "/a%20b/"},
		{"/debug/vram/", "/debug/vram/?device=1", ""},
		{"/", "/?device=1", ""},
	} {
		mounted := http.StripPrefix(c.prefix, s.page)
		w := serve(mounted, http.MethodGet, c.target)
		if c.want != "" {
			require.Equal(t, http.StatusMovedPermanently, w.Code, c.target)
			from, err := url.Parse(c.target)
			require.NoError(t, err)
			to, err := from.Parse(sent(w).Get("Location"))
			require.NoError(t, err)
			require.Equal(t, c.want, to.RequestURI())
			w = serve(mounted, http.MethodGet, to.RequestURI())
		}
		assert.Equal(t, http.StatusOK, w.Code, c.target)
		assert.Equal(t, "text/html; charset=utf-8", sent(w).Get("Content-Type"), c.target)
	}
}

// A viewer gets the history, then samples, and the stream ends with the page.
func TestEventsAreSamples(t *testing.T) {
	s := open(t, page.Options{Interval: page.MinInterval})
	read[page.Sample](s, "stats.json")
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	watch := func() (*bufio.Scanner, func()) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/events", nil)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		assert.Equal(t, "text/event-stream", answer.Header.Get("Content-Type"))
		assert.Equal(t, "no", answer.Header.Get("X-Accel-Buffering"), "proxies pass each event at once")
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		return lines, func() { _ = answer.Body.Close() }
	}
	next := func(lines *bufio.Scanner) (event, data string) {
		for lines.Scan() && lines.Text() != "" {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			if name == "event" {
				event = value
			} else {
				data = value
			}
		}
		return event, data
	}
	a, endA := watch()
	defer endA()
	b, endB := watch()
	event, data := next(a)
	assert.Equal(t, "history", event)
	var h page.History
	require.NoError(t, json.Unmarshal([]byte(data), &h))
	assert.Len(t, h.Points, 1)
	next(b)
	for range 3 {
		event, data = next(a)
		assert.Equal(t, "sample", event)
		var sample page.Sample
		require.NoError(t, json.Unmarshal([]byte(data), &sample))
		assert.Greater(t, sample.Number, uint64(1))
	}
	endB()
	s.page.Close()
	for a.Scan() { // the samples before the end
	}
	require.NoError(t, a.Err(), "the stream ends as a whole answer")
	answer, text := s.get(s.url + "/events")
	assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
	assert.Contains(t, text, "page: closed")
}

// A closed device keeps its last figures, and its map is gone.
func TestAClosedDeviceIsShown(t *testing.T) {
	s := open(t, page.Options{Interval: page.MinInterval})
	stream, err := s.dev.NewStream()
	require.NoError(t, err)
	b, err := stream.Alloc(mib)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	assert.Equal(t, "simulated GPU", read[page.Sample](s, "stats.json").Devices[0].Name)
	require.NoError(t, s.dev.Close())
	require.Eventually(t, func() bool { return read[page.Sample](s, "stats.json").Devices[0].State == "closed" }, time.Minute, time.Millisecond)
	d := read[page.Sample](s, "stats.json").Devices[0]
	assert.Equal(t, [...]any{"simulated GPU", uint64(1)}, [...]any{d.Name, d.Figures.AllocCount})
	require.Eventually(t, func() bool {
		answer, text := s.get(s.url + "/map.json")
		return answer.StatusCode == http.StatusGone && strings.Contains(text, `"error"`)
	}, time.Minute, time.Millisecond)
}

// The call stacks of a device that samples are its profile's, added up and the largest first; they are read once in an
// interval.
func TestCallStacks(t *testing.T) {
	s := openOf(t, page.Options{Interval: time.Hour}, vram.Config{SampleBytes: 1})
	var all []vram.Buffer
	for i := range 3 { // two streams, one place
		stream, err := s.dev.NewStream()
		require.NoError(t, err)
		for range 1 + i {
			b, err := stream.Alloc(mib)
			require.NoError(t, err)
			all = append(all, b)
		}
	}
	stream, err := s.dev.NewStream()
	require.NoError(t, err)
	b, err := stream.Alloc(9 * mib)
	require.NoError(t, err)
	c := read[page.Calls](s, "calls.json")
	require.Len(t, c.Calls, 2)
	assert.Equal(t, [...]int64{1, 15 * mib, 2}, [...]int64{c.SampleBytes, c.LiveBytes, int64(c.StackCount)})
	assert.Equal(t, [...]int64{9 * mib, 1, 6 * mib, 6}, [...]int64{c.Calls[0].LiveBytes, c.Calls[0].BufferCount, c.Calls[1].LiveBytes, c.Calls[1].BufferCount})
	for _, call := range c.Calls {
		assert.Contains(t, call.Frames[0].Function, "page_test.TestCallStacks")
	}
	require.NoError(t, b.Free())
	for _, b := range all {
		require.NoError(t, b.Free())
	}
	assert.Equal(t, c, read[page.Calls](s, "calls.json"), "it is of the same interval")

	off := open(t, page.Options{Interval: page.MinInterval})
	assert.Equal(t, page.Calls{Calls: []page.Call{}}, read[page.Calls](off, "calls.json"))
}

// Waiting requests are listed, and counted for their tenants by reason; refused requests are counted.
func TestWaitingAndRefusedRequests(t *testing.T) {
	s := open(t, page.Options{Interval: page.MinInterval})
	holds, err := s.dev.NewStream()
	require.NoError(t, err)
	held, err := holds.Alloc(240 * mib)
	require.NoError(t, err)
	_, err = holds.Alloc(64 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	tenant, err := s.dev.Tenant("model", vram.Quota{LimitBytes: 66 * mib})
	require.NoError(t, err)
	waits, err := s.dev.NewStream()
	require.NoError(t, err)
	// A request whose context ends before the pool has it never waits: the context is to end while the page lists it.
	ended, end := context.WithCancel(t.Context())
	defer end()
	abandoned := waits.AllocAsync(ended, vram.Request{Bytes: 64 * mib, Wait: true})
	require.Eventually(t, func() bool { return read[page.Sample](s, "stats.json").Devices[0].Waiters.RequestCount == 1 }, time.Minute, time.Millisecond)
	end()
	_, err = abandoned.Await(t.Context())
	require.ErrorIs(t, err, context.Canceled)
	first := waits.AllocAsync(t.Context(), vram.Request{Bytes: 64 * mib, Tag: "kv", Wait: true, Tenant: tenant})
	// One that waits for its quota begins at once, one for memory when the pool has tried: the first is to be in its place.
	require.Eventually(t, func() bool {
		waiting := read[page.Sample](s, "stats.json").Devices[0].Waiters.Requests
		return len(waiting) == 1 && waiting[0].Position == 1 && waiting[0].Tag == "kv"
	}, time.Minute, time.Millisecond)
	second := waits.AllocAsync(t.Context(), vram.Request{Bytes: 32 * mib, Wait: true, Tenant: tenant})
	var d page.Device
	require.Eventually(t, func() bool {
		d = read[page.Sample](s, "stats.json").Devices[0]
		return d.Waiters.RequestCount == 2 && d.Tenants[0].WaitingForQuota == 1
	}, time.Minute, time.Millisecond)
	require.Len(t, d.Waiters.Requests, 2)
	r := d.Waiters.Requests[0]
	assert.Equal(t, [...]any{1, 64 * mib, 1, uint32(2), "kv", "model", "memory"}, [...]any{r.Position, r.Bytes, r.BufferCount, r.Stream, r.Tag, r.Tenant, r.For})
	assert.Equal(t, "its tenant's quota", d.Waiters.Requests[1].For)
	assert.Equal(t, 1, d.Tenants[0].WaitingForMemory)
	assert.Equal(t, []page.Holder{{Stream: 1, HeldBytes: 240 * mib}}, d.Waiters.Holders)
	assert.False(t, d.Waiters.Stalled)
	assert.Equal(t, [...]uint64{1, 0, 1}, [...]uint64{d.Figures.OutOfMemoryCount, d.Figures.DeadlockCount, d.Figures.EndedWaitCount})
	require.NoError(t, held.Free())
	for _, f := range []interface {
		Await(ctx context.Context) (vram.Buffer, error)
	}{first, second} {
		b, err := f.Await(t.Context())
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	require.Eventually(t, func() bool { return read[page.Sample](s, "stats.json").Devices[0].Waiters.RequestCount == 0 }, time.Minute, time.Millisecond)
}

// A page of a nil device says so.
func TestNoDevice(t *testing.T) {
	recorder := httptest.NewRecorder()
	page.Handler(nil).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/stats.json", nil))
	assert.Contains(t, recorder.Body.String(), `"state":"not open"`)
	recorder = httptest.NewRecorder()
	page.Handler(nil).ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/map.json", nil))
	assert.Equal(t, http.StatusServiceUnavailable, recorder.Code)
}
