package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// writeLimit is how long a viewer may take to receive an event. Not longer: a viewer that is gone without a word keeps the
// sampler.
const writeLimit = 15 * time.Second

// events answers with the history and then every sample, until the viewer leaves or the page is closed.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Type", "text/event-stream")
		return
	}
	v, history, err := p.sampler.watch(r.Context())
	if err != nil {
		fail(w, err)
		return
	}
	defer p.sampler.leave(v)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // proxies pass each event on at once
	to := &eventWriter{w, http.NewResponseController(w)}
	if to.write("history", history) != nil {
		return
	}
	for {
		select {
		case s, more := <-v.samples:
			if !more || to.write("sample", s) != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// eventWriter writes events.
type eventWriter struct {
	to      http.ResponseWriter
	control *http.ResponseController
}

func (e *eventWriter) write(event string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("page: %w", err)
	}
	// A server's own limit is for a whole answer: it would end the stream.
	if err := e.control.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("page: %w", err)
	}
	if _, err := fmt.Fprintf(e.to, "event: %s\ndata: %s\n\n", event, text); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	if err := e.control.Flush(); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return nil
}
