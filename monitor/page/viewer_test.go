package page_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/monitor/page"
)

// goneViewer is a connection whose calls of one kind fail from the second one on.
type goneViewer struct {
	header http.Header
	fails  string
	calls  map[string]int
	left   []time.Duration // until each deadline
}

var errGone = errors.New("the viewer is gone")

func (g *goneViewer) did(call string) error {
	g.calls[call]++
	if call == g.fails && g.calls[call] > 1 {
		return errGone
	}
	return nil
}

func (g *goneViewer) Header() http.Header         { return g.header }
func (g *goneViewer) WriteHeader(int)             {}
func (g *goneViewer) Write(p []byte) (int, error) { return len(p), g.did("write") }
func (g *goneViewer) FlushError() error           { return g.did("flush") }

func (g *goneViewer) SetWriteDeadline(at time.Time) error {
	g.left = append(g.left, time.Until(at))
	return g.did("deadline")
}

// A viewer whose connection fails, at whichever call, is left: the answer ends. Each event has a deadline, is written and flushed.
func TestAViewerThatIsGoneIsLeft(t *testing.T) {
	s := open(t, page.Options{Interval: time.Millisecond})
	for _, fails := range []string{"write", "flush", "deadline"} {
		g := &goneViewer{header: http.Header{}, fails: fails, calls: map[string]int{}}
		s.page.ServeHTTP(g, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events", http.NoBody))
		assert.Equal(t, 2, g.calls[fails], fails)
		assert.GreaterOrEqual(t, g.calls["deadline"], g.calls["write"])
		assert.GreaterOrEqual(t, g.calls["write"], g.calls["flush"])
		assert.Equal(t, "text/event-stream", g.header.Get("Content-Type"))
		for _, left := range g.left {
			assert.InDelta(t, 15, left.Seconds(), 5, "a slow network is no viewer that is gone")
		}
	}
}

// A connection without deadlines is served, too.
func TestAViewerWithoutDeadlines(t *testing.T) {
	s := open(t, page.Options{Interval: time.Millisecond})
	recorder := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.page.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/events", http.NoBody))
	}()
	s.page.Close()
	<-done
	require.NotContains(t, recorder.Body.String(), "feature not supported")
}
