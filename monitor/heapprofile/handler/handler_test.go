package handler_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/monitor/heapprofile"
	"github.com/go-vram/vram/monitor/heapprofile/handler"
)

func open(t *testing.T) (*vram.Device, *vram.Stream) {
	t.Helper()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{}), SampleBytes: 1})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	return d, s
}

func get(ctx context.Context, d *vram.Device, query string) *httptest.ResponseRecorder {
	answer := httptest.NewRecorder()
	handler.New(d).ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/debug/vram/heap"+query, http.NoBody))
	return answer
}

func TestAnswers(t *testing.T) {
	d, s := open(t)
	b, err := s.Alloc(5000)
	require.NoError(t, err)
	answer := get(t.Context(), d, "")
	assert.Equal(t, http.StatusOK, answer.Code)
	assert.Equal(t, "application/octet-stream", answer.Header().Get("Content-Type"))
	assert.Equal(t, `attachment; filename="vram-heap"`, answer.Header().Get("Content-Disposition"))
	p, err := profile.Parse(answer.Body)
	require.NoError(t, err)
	require.Len(t, p.Sample, 1)
	assert.Equal(t, []int64{1, 5000, 1, 5000}, p.Sample[0].Value)

	answer = get(t.Context(), d, "?debug=1")
	assert.Equal(t, "text/plain; charset=utf-8", answer.Header().Get("Content-Type"))
	assert.Contains(t, answer.Body.String(), "handler_test.TestAnswers")
	for query, why := range map[string]string{
		"?debug=x":                        `debug is "x", want 0 to 3600`,
		"?seconds=-1":                     `seconds is "-1", want 0 to 3600`,
		"?seconds=3601":                   `seconds is "3601", want 0 to 3600`,
		"?seconds=1&debug=1":              "a difference of profiles (seconds) has no text (debug)",
		"?seconds=1000000000000000000000": `seconds is "1000000000000000000000", want 0 to 3600`,
	} {
		answer = get(t.Context(), d, query)
		assert.Equal(t, http.StatusBadRequest, answer.Code, query)
		assert.Equal(t, why+"\n", answer.Body.String(), query)
		assert.Equal(t, "nosniff", answer.Header().Get("X-Content-Type-Options"))
	}
	server := &http.Server{WriteTimeout: 5 * time.Second} //nolint:gosec // it serves nothing
	answer = get(context.WithValue(t.Context(), http.ServerContextKey, server), d, "?seconds=5")
	assert.Equal(t, http.StatusBadRequest, answer.Code)
	assert.Equal(t, "seconds is beyond the server's WriteTimeout, 5s\n", answer.Body.String())
	require.NoError(t, b.Free())
	require.NoError(t, d.Close())
}

// With seconds the answer is of the allocations and frees of the interval alone.
func TestDifference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t)
		before, err := s.AllocFor(t.Context(), vram.Request{Bytes: 100, Tag: "before"})
		require.NoError(t, err)
		stays, err := s.AllocFor(t.Context(), vram.Request{Bytes: 100, Tag: "stays"})
		require.NoError(t, err)
		var meanwhile vram.Buffer
		time.AfterFunc(7*time.Second, func() {
			assert.NoError(t, before.Free())
			meanwhile, err = s.AllocFor(t.Context(), vram.Request{Bytes: 5000, Tag: "meanwhile"})
			assert.NoError(t, err)
		})
		began := time.Now()
		answer := get(t.Context(), d, "?seconds=30")
		assert.Equal(t, 30*time.Second, time.Since(began))
		p, err := profile.Parse(answer.Body)
		require.NoError(t, err)
		values := map[string][]int64{}
		for _, x := range p.Sample {
			values[x.Label["tag"][0]] = x.Value
		}
		assert.Equal(t, map[string][]int64{"before": {0, 0, -1, -100}, "meanwhile": {1, 5000, 1, 5000}}, values)
		assert.Equal(t, int64(30*time.Second), p.DurationNanos)
		whole, err := profile.Parse(get(t.Context(), d, "").Body)
		require.NoError(t, err)
		assert.Equal(t, whole.TimeNanos, p.TimeNanos, "of its end")
		assert.Equal(t, whole.Comments, p.Comments, "once")

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, http.StatusInternalServerError, get(ctx, d, "?seconds=30").Code)
		require.NoError(t, stays.Free())
		require.NoError(t, meanwhile.Free())
		require.NoError(t, d.Close())
	})
}

// plainWriter notes what a handler sets itself: a recorder guesses a type.
type plainWriter struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (w *plainWriter) Header() http.Header         { return w.header }
func (w *plainWriter) WriteHeader(code int)        { w.code = code }
func (w *plainWriter) Write(p []byte) (int, error) { return w.body.Write(p) }

// Each answer names its type, and the bounds of a parameter belong to it.
func TestTypesAndBoundsOfAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := open(t)
		b, err := s.Alloc(5000)
		require.NoError(t, err)
		const binary, text = "application/octet-stream", "text/plain; charset=utf-8"
		for query, want := range map[string]struct {
			kind    string
			code    int
			lasting time.Duration
		}{
			"": {kind: binary}, "?seconds=0": {kind: binary}, "?debug=0": {kind: binary},
			"?debug=1": {kind: text}, "?debug=3600": {kind: text},
			"?seconds=1": {kind: binary, lasting: time.Second}, "?seconds=3600": {kind: binary, lasting: time.Hour},
			"?seconds=3601": {kind: text, code: http.StatusBadRequest}, "?debug=-1": {kind: text, code: http.StatusBadRequest},
		} {
			w, began := &plainWriter{header: http.Header{}}, time.Now()
			handler.New(d).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/"+query, http.NoBody))
			assert.Equal(t, want.code, w.code, query)
			assert.Equal(t, want.lasting, time.Since(began), query)
			wanted := http.Header{"Content-Type": {want.kind}, "X-Content-Type-Options": {"nosniff"}}
			if want.kind == binary {
				wanted.Set("Content-Disposition", `attachment; filename="vram-heap"`)
				p, err := profile.Parse(&w.body)
				require.NoError(t, err, query)
				assert.Equal(t, heapprofile.Of(d).Comments, p.Comments, query)
				assert.NotZero(t, p.TimeNanos, query)
				require.NotEmpty(t, p.Mapping, query)
				m := p.Mapping[0]
				assert.True(t, m.ID == 1 && m.HasFunctions && m.HasFilenames && m.HasLineNumbers && m.HasInlineFrames, "%+v", m)
				assert.Equal(t, filepath.Base(os.Args[0]), m.File)
			}
			assert.Equal(t, wanted, w.header, query)
		}
		limit := func(d time.Duration) context.Context {
			return context.WithValue(t.Context(), http.ServerContextKey, &http.Server{WriteTimeout: d}) //nolint:gosec // it serves nothing
		}
		assert.Equal(t, http.StatusOK, get(limit(0), d, "?seconds=5").Code, "no limit")
		assert.Equal(t, http.StatusOK, get(limit(6*time.Second), d, "?seconds=5").Code)
		assert.Equal(t, http.StatusBadRequest, get(limit(5*time.Second), d, "?seconds=5").Code)
		require.NoError(t, b.Free())
		require.NoError(t, d.Close())
	})
}
