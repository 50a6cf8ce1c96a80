package page

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/go-vram/vram"
)

//go:embed static
var static embed.FS

// readLimit is how long a request waits for figures. Not longer: a viewer should learn that a stream does not answer.
const readLimit = 10 * time.Second

// policy lets the page load only files of this handler.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// requestError is an error with a status.
type requestError struct {
	status int
	text   string
}

func (e *requestError) Error() string { return e.text }

// ServeHTTP implements http.Handler. The last element of the path decides: the handler may be mounted anywhere.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		fail(w, &requestError{http.StatusMethodNotAllowed, "the page is read-only: GET or HEAD"})
		return
	}
	if site := r.Header.Get("Sec-Fetch-Site"); (site == "cross-site" || site == "same-site") && r.Header.Get("Sec-Fetch-Mode") != "navigate" {
		fail(w, &requestError{http.StatusForbidden, "the request comes from another origin"})
		return
	}
	if p == nil || p.sampler == nil {
		fail(w, fmt.Errorf("page: not made by New: %w", vram.ErrNotOpen))
		return
	}
	p.route(w, r)
}

func (p *Page) route(w http.ResponseWriter, r *http.Request) {
	ctx, end := context.WithTimeout(r.Context(), readLimit)
	defer end()
	mounted, query, asked := strings.Cut(r.RequestURI, "?")
	switch name := path.Base(r.URL.Path); {
	case r.URL.Path == "" && !strings.HasSuffix(mounted, "/"): // under http.StripPrefix, without the slash that relative addresses need
		to := "./" + path.Base(mounted) + "/" // a name with a colon alone would begin with a scheme
		if asked {
			to += "?" + query
		}
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusMovedPermanently)
	case r.URL.Path == "", strings.HasSuffix(r.URL.Path, "/"):
		file(w, r, "index.html")
	case name == "stats.json":
		answer(w)(p.sampler.newest(ctx))
	case name == "history.json":
		answer(w)(p.sampler.history(ctx))
	case name == "map.json":
		answer(w)(p.readMap(ctx, r))
	case name == "calls.json":
		answer(w)(p.readCalls(ctx, r))
	case name == "events":
		p.events(w, r)
	default:
		file(w, r, name)
	}
}

// device returns the index of the device that a request names, the first one where it names none.
func (p *Page) device(r *http.Request) (int, error) {
	index, err := number(r, "device")
	if err == nil && (index < 0 || index >= int64(len(p.devices))) {
		err = &requestError{http.StatusBadRequest, fmt.Sprintf("device is %d, and there are %d", index, len(p.devices))}
	}
	return int(index), err
}

// number returns a parameter of a request, 0 where it is missing.
func number(r *http.Request, name string) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, &requestError{http.StatusBadRequest, fmt.Sprintf("%s is %q, want a number", name, text)}
	}
	return n, nil
}

func (p *Page) readMap(ctx context.Context, r *http.Request) (Map, error) {
	i, err := p.device(r)
	if err != nil {
		return Map{}, err
	}
	resolutionBytes, err := number(r, "resolution")
	if err != nil {
		return Map{}, err
	}
	return p.maps[i].get(ctx, resolutionBytes, func(ctx context.Context) (Map, error) { return ReadMap(ctx, p.devices[i], resolutionBytes) })
}

func (p *Page) readCalls(ctx context.Context, r *http.Request) (Calls, error) {
	i, err := p.device(r)
	if err != nil {
		return Calls{}, err
	}
	return p.calls[i].get(ctx, 0, func(context.Context) (Calls, error) { return callsOf(p.devices[i].Profile()), nil })
}

// answer writes a value or an error.
func answer(w http.ResponseWriter) func(value any, err error) {
	return func(value any, err error) {
		if err != nil {
			fail(w, err)
			return
		}
		text, err := json.Marshal(value)
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(append(text, '\n')) // the viewer may have gone
	}
}

// fail writes an error.
func fail(w http.ResponseWriter, err error) {
	status := http.StatusServiceUnavailable
	wrong, ok := errors.AsType[*requestError](err)
	_, misused := errors.AsType[*vram.ConfigError](err)
	switch {
	case ok:
		status = wrong.status
	case misused:
		status = http.StatusBadRequest
	case errors.Is(err, vram.ErrClosed):
		status = http.StatusGone
	}
	text, _ := json.Marshal(map[string]string{"error": err.Error()}) // strings
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// contentType returns the type of a file of the page. It ignores the machine's table.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return "application/octet-stream"
}

// file serves one of the page's files.
func file(w http.ResponseWriter, r *http.Request, name string) {
	text, err := static.ReadFile("static/" + name)
	if err != nil {
		fail(w, &requestError{http.StatusNotFound, fmt.Sprintf("there is no %q", name)})
		return
	}
	w.Header().Set("Content-Type", contentType(name))
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(text))
}
