package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// shutdown configures the end of a service.
type shutdown struct {
	Linger   time.Duration // serving with readiness off
	Deadline time.Duration // for the requests in flight, after that
	Parting  time.Duration // for cancelled requests to tell their clients; 0 is partingTime
}

// Bounds of a connection: the time for a client to send its request, to read its answer, and to keep an idle connection.
const (
	readTimeout  = 10 * time.Second
	writeTimeout = 10 * time.Second
	idleTimeout  = 2 * time.Minute
)

// timely bounds the time of a client to read, from each write on: an answer may come in events for long.
type timely struct {
	http.ResponseWriter
	bounded time.Time // when the bound was set last
}

// WriteHeader implements http.ResponseWriter.
func (w *timely) WriteHeader(status int) {
	w.bound()
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *timely) Write(p []byte) (int, error) {
	w.bound()
	return w.ResponseWriter.Write(p)
}

// Unwrap is for http.ResponseController.
func (w *timely) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// bound sets the bound, once a second at most.
func (w *timely) bound() {
	now := time.Now()
	if now.Sub(w.bounded) < time.Second {
		return
	}
	w.bounded = now
	// If it cannot be set, the server's own WriteTimeout ends a client that does not read.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(now.Add(writeTimeout))
}

// errForced reports that requests were cut off.
var errForced = errors.New("requests in flight were cancelled")

// Serve serves on the listener until stop ends, and then shuts down; the end of force hurries it. It
// closes the listener, and returns when the last handler has returned: nil, errForced if handlers were active at the
// deadline, or the error that ended the server. The service is still open then.
func (sv *Service) Serve(stop, force context.Context, listener net.Listener, s shutdown) error {
	requests, cancelRequests := context.WithCancelCause(context.WithoutCancel(stop))
	defer cancelRequests(nil)
	handlers := newGate()
	routes := sv.Handler()
	server := &http.Server{
		Handler: http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			w := &timely{ResponseWriter: to}
			if !handlers.enter() {
				sv.refuse(w, errStopping)
				return
			}
			defer handlers.leave()
			routes.ServeHTTP(w, r)
		}),
		BaseContext: func(net.Listener) context.Context { return requests },
		ReadTimeout: readTimeout,
		// Answers of the server itself have this deadline alone, which leaves time for a whole request.
		WriteTimeout: readTimeout + sv.settings.Timeout + writeTimeout,
		IdleTimeout:  idleTimeout,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended: // the listener failed
		sv.Stop()
		cancelRequests(errStopping)
		return fmt.Errorf("serve: %w", errors.Join(err, cutOff(server, handlers, s.Parting)))
	case <-stop.Done():
	}
	sv.Stop()
	pause(force, s.Linger)
	patience, giveUp := context.WithTimeout(force, s.Deadline)
	defer giveUp()
	err := server.Shutdown(patience)
	if err != nil {
		// Shutdown also waits for a connection without a request: a spare one, or one whose answer was just sent.
		if err = nil; handlers.busy() {
			err = errForced
		}
		cancelRequests(errStopping)
		err = errors.Join(err, cutOff(server, handlers, s.Parting))
	}
	<-ended
	<-handlers.shut()
	return err
}

// partingTime bounds the last answers of cancelled handlers. Not shorter: they wait for the end of a step. Not longer: the process
// is to end.
const partingTime = 250 * time.Millisecond

// cutOff gives handlers whose requests were cancelled a moment to answer, closes the connections, and
// returns when the last handler has returned.
func cutOff(server *http.Server, handlers *gate, moment time.Duration) error {
	gone := handlers.shut()
	parting, cancel := context.WithTimeout(context.Background(), cmp.Or(moment, partingTime))
	defer cancel()
	var err error
	if server.Shutdown(parting) != nil { // a client is slow to read or to write
		err = server.Close()
	}
	<-gone
	return err
}

// pause waits for so long, or until ctx ends.
func pause(ctx context.Context, duration time.Duration) {
	if duration <= 0 {
		return
	}
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
