package main

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/examples/internal/command"
)

// serving is a service on a listener, and its controls.
type serving struct {
	*rig
	url         string
	listener    *watchedListener
	stop, force context.CancelFunc
	ended       chan error
	client      *http.Client
	queue       func() // lets requests queue their kernels
}

// watchedListener reports when it is closed. Dialling its address cannot: the system may have given the port to another
// process.
type watchedListener struct {
	net.Listener
	once   sync.Once
	closed chan struct{}
}

func (l *watchedListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

func newServing(t *testing.T, s shutdown) *serving {
	t.Helper()
	r := newRig(t, settings{Config: vram.Config{LimitBytes: 200 << 20}, WorkerCount: 2, BacklogCount: 10})
	hold := make(chan struct{})
	r.Service.gpu.Device = held{r.Service.gpu.Device, hold}
	bound, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &watchedListener{Listener: bound, closed: make(chan struct{})}
	stop, cancelStop := context.WithCancel(t.Context())
	force, cancelForce := context.WithCancel(t.Context())
	transport := &http.Transport{}
	sv := &serving{
		rig: r, url: "http://" + listener.Addr().String(), listener: listener, stop: cancelStop, force: cancelForce,
		ended: make(chan error, 1), client: &http.Client{Transport: transport},
		queue: sync.OnceFunc(func() { close(hold) }),
	}
	t.Cleanup(sv.queue)
	t.Cleanup(transport.CloseIdleConnections)
	s.Parting = cmp.Or(s.Parting, time.Hour) // a busy machine needs more than a moment
	go func() { sv.ended <- sv.Serve(stop, force, listener, s) }()
	return sv
}

// start sends requests; their answers arrive on the channel, an error of the connection as status 0.
func (s *serving) start(count int) <-chan answer {
	answers := make(chan answer, count)
	for range count {
		go func() {
			a, _ := send(s.t.Context(), s.t, s.client, "POST", s.url+"/v1/infer", small)
			answers <- a
		}()
	}
	return answers
}

// A stopped service answers accepted requests, turns readiness off, and ends.
func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	s := newServing(t, shutdown{Linger: time.Hour, Deadline: time.Hour})
	ready, err := send(t.Context(), t, s.client, "GET", s.url+"/readyz", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, ready.status)
	answers := s.start(5)
	s.until("two running and three waiting", func() bool { return s.running.Load() == 2 && s.waiting.Load() == 3 })
	s.stop()
	s.until("readiness off", func() bool { return s.stopping.Load() })
	ready, err = send(t.Context(), t, s.client, "GET", s.url+"/readyz", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, ready.status, "lingering")
	healthy, err := send(t.Context(), t, s.client, "GET", s.url+"/healthz", "")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, healthy.status)
	late := s.start(1)
	s.until("the late request", func() bool { return s.waiting.Load() == 4 })
	s.queue()
	s.until("all answers", func() bool { s.kernels(); return len(answers) == 5 && len(late) == 1 })
	for range 5 {
		assert.Equal(t, http.StatusOK, (<-answers).status)
	}
	assert.Equal(t, http.StatusOK, (<-late).status, "lingering, it serves as before")
	s.force()
	require.NoError(t, <-s.ended, "there was nothing to cut off")
	_, err = s.listener.Accept()
	assert.ErrorIs(t, err, net.ErrClosed, "nobody listens")
}

// Requests in flight finish while the service drains.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newServing(t, shutdown{Deadline: time.Hour})
	answers := s.start(3)
	s.until("two running and one waiting", func() bool { return s.running.Load() == 2 && s.waiting.Load() == 1 })
	s.stop()
	<-s.listener.closed
	assert.Empty(t, s.ended, "it waits for the requests")
	s.queue()
	s.until("all answers", func() bool { s.kernels(); return len(answers) == 3 })
	require.NoError(t, <-s.ended)
	for range 3 {
		assert.Equal(t, http.StatusOK, (<-answers).status)
	}
}

// held keeps requests from queueing their kernels: a search for memory may wait for fences after them, and virtual time then
// passes until they finish.
type held struct {
	cudadrv.Device
	until <-chan struct{}
}

// EventCreate waits until the kernels may be queued.
func (h held) EventCreate() (cudadrv.Event, error) {
	<-h.until
	return h.Device.EventCreate()
}

// A second signal, and the deadline, cancel the requests in flight; the device can be closed at once.
func TestForcedShutdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		shutdown shutdown
		force    bool
	}{
		"second signal": {shutdown{Deadline: time.Hour}, true},
		"lingering":     {shutdown{Linger: time.Hour, Deadline: time.Hour}, true},
		"deadline":      {shutdown{Deadline: 10 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServing(t, c.shutdown)
			answers := s.start(4)
			s.until("two running and two waiting", func() bool { return s.running.Load() == 2 && s.waiting.Load() == 2 })
			s.stop()
			if c.force {
				s.until("readiness off", func() bool { return s.stopping.Load() })
				s.force()
			}
			s.until("those that wait to be cut off", func() bool { return s.waiting.Load() == 0 })
			s.queue()
			require.ErrorIs(t, <-s.ended, errForced)
			assert.Zero(t, s.running.Load())
			// Memory granted to a request that was cut off is returned in another goroutine's turn.
			s.until("all memory to come home", func() bool { return s.report().Memory.LiveBytes == 0 })
			for range 4 {
				a := <-answers
				assert.Equal(t, http.StatusServiceUnavailable, a.status, "clients are told: %s", a.body)
				assert.Equal(t, "5", a.retryAfter)
			}
		})
	}
}

// A connection without a request is closed; that cuts no request off.
func TestForcedShutdownWithNothingInFlight(t *testing.T) {
	t.Parallel()
	s := newServing(t, shutdown{Linger: time.Hour, Deadline: time.Hour, Parting: time.Millisecond})
	spare, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.listener.Addr().String())
	require.NoError(t, err)
	defer func() { assert.NoError(t, spare.Close()) }()
	healthy, err := send(t.Context(), t, s.client, "GET", s.url+"/healthz", "") // accepted after the spare one
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, healthy.status)
	s.stop()
	s.force()
	require.NoError(t, <-s.ended)
}

// A listener that fails ends the service with its error.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, settings{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	assert.ErrorContains(t, r.Serve(t.Context(), t.Context(), listener, shutdown{}), "serve: accept")
}

// A gate that was shut admits no handler, and waits for every active one.
func TestGate(t *testing.T) {
	t.Parallel()
	g := newGate()
	assert.False(t, g.busy())
	require.True(t, g.enter())
	assert.True(t, g.busy())
	g.leave()
	var inside sync.WaitGroup
	var entered, after int
	counted := make(chan bool, 1000)
	for range 1000 {
		inside.Go(func() {
			ok := g.enter()
			counted <- ok
			if ok {
				g.leave()
			}
		})
	}
	<-g.shut()
	<-g.shut() // again
	assert.False(t, g.enter())
	inside.Wait()
	assert.False(t, g.busy())
	close(counted)
	for ok := range counted {
		if ok {
			entered++
		} else {
			after++
		}
	}
	assert.Equal(t, 1000, entered+after)
	assert.Equal(t, int64(gateShut), g.state.Load())
}

// The program from its command line to its exit code.
func TestProgram(t *testing.T) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "VRAM_") {
			t.Setenv(name, "")
		}
	}
	t.Run("refused", func(t *testing.T) {
		for want, args := range map[string][]string{
			"flag provided but not defined: -x": {"-x"},
			`"serve": there are no arguments`:   {"serve"},
			"-workers is 0, want 1 to 128":      {"-workers", "0"},
			"-backlog is 0, want 1 or more":     {"-backlog", "0"},
			"-timeout is 0s, want more than 0":  {"-timeout", "0s"},
			"-linger is -1s, want 0 or more":    {"-linger", "-1s"},
			"-deadline is -1s, want 0 or more":  {"-deadline", "-1s"},
			"-clients is 0, want 1 to 4096":     {"-clients", "0"},
			"-duration is 0s, want more than 0": {"-duration", "0s"},
			`-tenants: "a" is no tenant, want`:  {"-tenants", "b=1,a"},
			`-tenants: "=1" is no tenant, want`: {"-tenants", "=1"},
			`-tenants: "a=0" is no tenant`:      {"-tenants", "a=0"},
			`-tenants: "a" is named twice`:      {"-tenants", "a=1,a=2"},
			"-limit: ":                          {"-limit", "much"},
			"-driver: ":                         {"-driver", "none"},
		} {
			var stdout, stderr bytes.Buffer
			assert.Equal(t, command.Misused, run(t.Context(), t.Context(), args, &stdout, &stderr))
			assert.Contains(t, stderr.String(), "service: "+want)
			assert.Empty(t, stdout.String())
		}
		var stdout, stderr bytes.Buffer
		assert.Equal(t, command.Failed, run(t.Context(), t.Context(), []string{"-driver", "sim", "-addr", "127.0.0.1:65536"}, &stdout, &stderr))
		assert.Contains(t, stderr.String(), "service: listen")
		assert.Equal(t, command.OK, run(t.Context(), t.Context(), []string{"-h"}, &stdout, &stderr))
		assert.Contains(t, stderr.String(), "-backlog")
	})
	t.Run("served", func(t *testing.T) {
		stop, cancel := context.WithCancel(t.Context())
		out := &lineWriter{lines: make(chan string, 10)}
		var stderr bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- run(stop, t.Context(), []string{"-driver", "sim", "-addr", "127.0.0.1:0", "-workers", "1"}, out, &stderr)
		}()
		var hello string
		select {
		case hello = <-out.lines:
		case c := <-code:
			require.Failf(t, "it does not serve", "exit code %d: %s", c, &stderr)
		}
		url := regexp.MustCompile(`http://\S+`).FindString(hello)
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		a, err := send(t.Context(), t, client, "POST", url+"/v1/infer", `{"prompt_tokens": 1, "new_tokens": 1}`)
		require.NoError(t, err)
		assert.Equal(t, http.StatusOK, a.status, a.body)
		cancel()
		assert.Equal(t, command.OK, <-code)
		assert.Equal(t, "service: stopped; 1 requests answered, 0 refused\n", <-out.lines)
		assert.Empty(t, stderr.String())
	})
}

type lineWriter struct{ lines chan string }

func (w *lineWriter) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

// Errors that no client can cause here have a status, too.
func TestProblemOf(t *testing.T) {
	t.Parallel()
	for err, status := range map[error]int{
		vram.ErrClosed:           http.StatusServiceUnavailable,
		errStopping:              http.StatusServiceUnavailable,
		vram.ErrQuarantined:      http.StatusInternalServerError,
		context.Canceled:         statusClientGone,
		context.DeadlineExceeded: http.StatusGatewayTimeout,

		&vram.WaitError{Err: context.DeadlineExceeded}:                            http.StatusGatewayTimeout,
		&vram.WaitError{Err: context.DeadlineExceeded, Quota: &vram.QuotaError{}}: http.StatusTooManyRequests,
		&vram.WaitError{Err: context.Canceled, Quota: &vram.QuotaError{}}:         statusClientGone,
	} {
		assert.Equal(t, status, problemOf(err).status, err)
	}
}
