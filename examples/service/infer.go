package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// mostBodyBytes bounds a body: a request has a few dozen bytes.
const mostBodyBytes = 4096

// inferAnswer is the answer to POST /v1/infer.
type inferAnswer struct {
	Tokens       int    `json:"tokens"`
	Bytes        int64  `json:"bytes"`     // of memory that the request held
	Stream       uint32 `json:"stream"`    // as GET /stats numbers them
	WaitedMicros int64  `json:"waited_us"` // for memory
}

// infer is the handler of POST /v1/infer.
func (sv *Service) infer(w http.ResponseWriter, r *http.Request) {
	sv.received.Add(1)
	start := time.Now()
	ctx, cancel := context.WithTimeout(r.Context(), sv.settings.Timeout)
	defer cancel()
	request, err := readRequest(w, r)
	if err != nil {
		sv.refuse(w, err)
		return
	}
	t, err := sv.tenantOf(r.Header.Get(tenantHeader))
	if err != nil {
		sv.refuse(w, err)
		return
	}
	answer, err := sv.run(ctx, request, t)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, errStopping) { // not the client's doing
			err = cause
		}
		sv.refuse(w, err)
		return
	}
	sv.answered.Add(1)
	t.answered.Add(1)
	t.seconds.Observe(time.Since(start).Seconds())
	writeJSON(w, http.StatusOK, answer)
}

// bodyError reports a body that is no request.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// readRequest reads exactly one JSON object with known fields.
func readRequest(w http.ResponseWriter, r *http.Request) (*inferRequest, error) {
	request := &inferRequest{}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBodyBytes))
	body.DisallowUnknownFields()
	if err := body.Decode(request); err != nil {
		return nil, &bodyError{err}
	}
	if _, err := body.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("more than one object")
		}
		return nil, &bodyError{err}
	}
	return request, request.check()
}

// writeJSON writes an answer. It ignores errors: the client has left.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
