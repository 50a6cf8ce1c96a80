package handler

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/pprof/profile"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/monitor/heapprofile"
)

// New returns a handler that answers with the profile of the devices.
func New(devices ...*vram.Device) http.Handler {
	return http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		to.Header().Set("X-Content-Type-Options", "nosniff")
		if err := serve(to, r, devices); err != nil {
			refuse(to, err)
		}
	})
}

// parameterError refuses a parameter.
type parameterError struct{ text string }

func (e *parameterError) Error() string { return e.text }

func refuse(to http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	if _, bad := errors.AsType[*parameterError](err); bad {
		status = http.StatusBadRequest
	}
	to.Header().Set("Content-Type", "text/plain; charset=utf-8")
	to.WriteHeader(status)
	_, _ = fmt.Fprintln(to, err) // the client may be gone
}

// serve answers, or returns an error before it has written anything.
func serve(to http.ResponseWriter, r *http.Request, devices []*vram.Device) error {
	debug, err := number(r, "debug")
	if err != nil {
		return err
	}
	seconds, err := number(r, "seconds")
	if err != nil {
		return err
	}
	var body bytes.Buffer
	switch {
	case debug != 0 && seconds != 0:
		return &parameterError{"a difference of profiles (seconds) has no text (debug)"}
	case debug != 0:
		to.Header().Set("Content-Type", "text/plain; charset=utf-8")
		err = heapprofile.WriteText(&body, devices...)
	case seconds != 0:
		err = difference(&body, r, devices, time.Duration(seconds)*time.Second)
	default:
		err = heapprofile.Write(&body, devices...)
	}
	if err != nil {
		return err
	}
	if debug == 0 {
		to.Header().Set("Content-Type", "application/octet-stream")
		to.Header().Set("Content-Disposition", `attachment; filename="vram-heap"`)
	}
	_, _ = to.Write(body.Bytes()) // the client may be gone
	return nil
}

// longest bounds a parameter: an hour, in seconds.
const longest = 3600

func number(r *http.Request, name string) (int, error) {
	text := r.FormValue(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > longest {
		return 0, &parameterError{fmt.Sprintf("%s is %q, want 0 to %d", name, text, longest)}
	}
	return n, nil
}

// difference writes a profile of the allocations and frees of the interval that follows.
func difference(body *bytes.Buffer, r *http.Request, devices []*vram.Device, interval time.Duration) error {
	if server, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && server.WriteTimeout > 0 && interval >= server.WriteTimeout {
		return &parameterError{fmt.Sprintf("seconds is beyond the server's WriteTimeout, %v", server.WriteTimeout)}
	}
	before := heapprofile.Of(devices...)
	wait := time.NewTimer(interval)
	defer wait.Stop()
	select {
	case <-r.Context().Done():
		return r.Context().Err()
	case <-wait.C:
	}
	after := heapprofile.Of(devices...)
	before.Scale(-1)
	delta, err := profile.Merge([]*profile.Profile{before, after})
	if err != nil {
		return fmt.Errorf("heapprofile: %w", err)
	}
	delta.TimeNanos = after.TimeNanos
	delta.DurationNanos = after.TimeNanos - before.TimeNanos
	delta.Comments = after.Comments
	if err := delta.Write(body); err != nil {
		return fmt.Errorf("heapprofile: %w", err)
	}
	return nil
}
