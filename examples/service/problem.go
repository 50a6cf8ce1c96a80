package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-vram/vram"
)

// statusClientGone is the status in logs for a client that left; no client sees it.
const statusClientGone = 499

// The seconds until a refused client should retry. The next request that ends returns memory; a
// service that is being stopped has a successor that must start first.
const (
	retrySoon  = 1
	retryLater = 5
)

// neverError refuses a request that needs more memory than all requests together can have.
type neverError struct{ requestedBytes, cacheBytes int64 }

// Error names both sizes.
func (e *neverError) Error() string {
	return fmt.Sprintf("the request needs %d bytes of memory, and there are %d for all requests", e.requestedBytes, e.cacheBytes)
}

// problem is the body of every answer that is not a success.
type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Of a request that memory refused; otherwise 0.
	RequestedBytes int64 `json:"requested_bytes,omitempty"`
	FreeBytes      int64 `json:"free_bytes,omitempty"`
	LimitBytes     int64 `json:"limit_bytes,omitempty"`

	status     int
	retryAfter int // seconds; 0: trying again does not help
}

// problemOf translates an error for a client.
func problemOf(err error) problem {
	p := problem{Code: "internal", Message: err.Error(), status: http.StatusInternalServerError}
	var field *fieldError
	var body *bodyError
	var tooLong *http.MaxBytesError
	var over *vram.QuotaError
	var never *neverError
	var wait *vram.WaitError
	switch {
	case errors.As(err, &tooLong):
		p.Code, p.status = "body_too_large", http.StatusRequestEntityTooLarge
	case errors.As(err, &body):
		p.Code, p.status = "bad_body", http.StatusBadRequest
	case errors.As(err, &field):
		p.Code, p.status = "bad_request", http.StatusBadRequest
	case errors.Is(err, errTenant):
		p.Code, p.status = "unknown_tenant", http.StatusForbidden
	case errors.As(err, &never): // no waiting would help
		p.Code, p.status = "larger_than_device", http.StatusInsufficientStorage
		p.RequestedBytes, p.LimitBytes = never.requestedBytes, never.cacheBytes
	case errors.Is(err, vram.ErrTooLarge): // before out of memory: no waiting would help
		p.Code, p.status = "larger_than_device", http.StatusInsufficientStorage
		if size, ok := errors.AsType[*vram.SizeError](err); ok {
			p.RequestedBytes, p.LimitBytes = size.RequestedBytes, size.LimitBytes
		}
	case errors.Is(err, vram.ErrQuota) && errors.Is(err, context.DeadlineExceeded): // the tenant's own requests had it all the time
		p.Code, p.status, p.retryAfter = "over_quota", http.StatusTooManyRequests, retrySoon
		if errors.As(err, &wait) && wait.Quota != nil {
			p.RequestedBytes, p.LimitBytes = wait.Quota.RequestedBytes, wait.Quota.Quota.LimitBytes
		}
	case errors.As(err, &over): // waiting would not help: a tenant waits for memory that it may have at some time
		p.Code, p.status = "larger_than_quota", http.StatusInsufficientStorage
		p.RequestedBytes, p.LimitBytes = over.RequestedBytes, over.Quota.LimitBytes
	case errors.Is(err, vram.ErrOutOfMemory), errors.Is(err, vram.ErrWouldDeadlock):
		p.Code, p.status, p.retryAfter = "out_of_memory", http.StatusServiceUnavailable, retrySoon
		if short, ok := errors.AsType[*vram.OutOfMemoryError](err); ok {
			p.RequestedBytes, p.FreeBytes, p.LimitBytes = short.RequestedBytes, short.FreeBytes, short.LimitBytes
		}
	case errors.Is(err, errStopping), errors.Is(err, vram.ErrClosed):
		p.Code, p.status, p.retryAfter = "stopping", http.StatusServiceUnavailable, retryLater
	case errors.As(err, &wait) && errors.Is(err, context.DeadlineExceeded): // others had the memory all the time
		p.Code, p.status, p.retryAfter = "no_memory_in_time", http.StatusServiceUnavailable, retrySoon
	case errors.Is(err, context.DeadlineExceeded):
		p.Code, p.status, p.retryAfter = "timeout", http.StatusGatewayTimeout, retrySoon
	case errors.Is(err, context.Canceled):
		p.Code, p.status = "client_gone", statusClientGone
	}
	return p
}

// refuse writes the problem of an error.
func (sv *Service) refuse(w http.ResponseWriter, err error) {
	sv.refused.Add(1)
	p := problemOf(err)
	sv.meters.refusals.WithLabelValues(p.Code).Inc()
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	writeJSON(w, p.status, p)
}
