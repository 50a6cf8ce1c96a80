package main

import (
	"bytes"
	"cmp"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/command"
)

// serving is a service on a listener, and its controls. Steps are held until release is called.
type serving struct {
	*rig
	url         string
	listener    *watchedListener
	stop, force context.CancelFunc
	ended       chan error
	client      *http.Client
	release     func()
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
	r := openRig(t, settings{})
	bound, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	listener := &watchedListener{Listener: bound, closed: make(chan struct{})}
	stop, cancelStop := context.WithCancel(t.Context())
	force, cancelForce := context.WithCancel(t.Context())
	transport := &http.Transport{}
	sv := &serving{
		rig: r, url: "http://" + listener.Addr().String(), listener: listener, stop: cancelStop, force: cancelForce,
		ended: make(chan error, 1), client: &http.Client{Transport: transport}, release: r.held.hold(),
	}
	t.Cleanup(transport.CloseIdleConnections)
	s.Parting = cmp.Or(s.Parting, time.Hour) // a busy machine needs more than a moment
	go func() { sv.ended <- sv.Serve(stop, force, listener, s) }()
	return sv
}

// start sends requests, and waits until the service has them in the engine.
func (s *serving) start(count int, stream bool) <-chan answer {
	answers := make(chan answer, count)
	before := s.running.Load()
	request := text("ab", 3)
	request.Stream = stream
	for range count {
		go func() {
			a, err := s.askAt(s.t.Context(), s.client, s.url, "", request)
			assert.NoError(s.t, err)
			answers <- a
		}()
	}
	s.until("the requests", func() bool { return s.running.Load() == before+int64(count) })
	return answers
}

func (s *serving) status(path string) int {
	a, err := s.send(s.t.Context(), s.client, "GET", s.url+path, "", "")
	require.NoError(s.t, err)
	return a.status
}

// A stopped service answers accepted requests, turns readiness off, and ends.
func TestGracefulShutdown(t *testing.T) {
	t.Parallel()
	s := newServing(t, shutdown{Linger: time.Hour, Deadline: time.Hour})
	assert.Equal(t, http.StatusOK, s.status("/readyz"))
	answers := s.start(3, true)
	s.stop()
	s.until("readiness off", func() bool { return s.stopping.Load() })
	assert.Equal(t, http.StatusServiceUnavailable, s.status("/readyz"), "lingering")
	assert.Equal(t, http.StatusOK, s.status("/healthz"))
	late := s.start(1, false)
	s.release()
	for range 3 {
		assert.Equal(t, endedLength, (<-answers).Reason)
	}
	assert.Equal(t, endedLength, (<-late).Reason, "lingering, it serves as before")
	s.until("the handlers' end", func() bool { return s.running.Load() == 0 })
	s.force()
	require.NoError(t, <-s.ended, "there was nothing to cut off")
	_, err := s.listener.Accept()
	assert.ErrorIs(t, err, net.ErrClosed, "nobody listens")
}

// Requests in flight finish while the service drains.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newServing(t, shutdown{Deadline: time.Hour})
	answers := s.start(3, true)
	s.stop()
	<-s.listener.closed
	assert.Empty(t, s.ended, "it waits for the requests")
	s.release()
	require.NoError(t, <-s.ended)
	for range 3 {
		assert.Equal(t, endedLength, (<-answers).Reason)
	}
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
			streams := s.start(2, true)
			s.until("their first tokens", func() bool { return s.tenants[""].tokens.Load() == 2 })
			free := s.fill()
			waiting := make(chan answer, 1)
			go func() {
				a, err := s.askAt(t.Context(), s.client, s.url, "", text("ab", 3))
				assert.NoError(t, err)
				waiting <- a
			}()
			s.until("the request that waits", func() bool { return s.device.Stats().Waits.Waiting == 1 })
			s.stop()
			if c.force {
				s.until("readiness off", func() bool { return s.stopping.Load() })
				s.force()
			}
			a := <-waiting
			assert.Equal(t, http.StatusServiceUnavailable, a.status, "clients are told: %s", a.body)
			assert.Equal(t, "stopping", a.problem.Code)
			assert.Equal(t, "5", a.retryAfter)
			s.release()
			require.ErrorIs(t, <-s.ended, errForced)
			assert.Zero(t, s.running.Load())
			for range 2 {
				a := <-streams
				assert.Contains(t, []string{endedStopping, endedLength}, a.Reason, a.body) // a step may have been the last one
				assert.NotEmpty(t, a.Tokens)
			}
			free()
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
	assert.Equal(t, http.StatusOK, s.status("/healthz")) // accepted after the spare one
	s.stop()
	s.force()
	require.NoError(t, <-s.ended)
}

// A listener that fails ends the service with its error.
func TestListenerFails(t *testing.T) {
	t.Parallel()
	r := openRig(t, settings{})
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	assert.ErrorContains(t, r.Serve(t.Context(), t.Context(), listener, shutdown{}), "serve: accept")
}

// A listener that fails ends the requests in flight: their clients are told.
func TestListenerFailsWithARequest(t *testing.T) {
	t.Parallel()
	s := newServing(t, shutdown{Linger: time.Hour, Deadline: time.Hour})
	free := s.fill()
	waiting := make(chan answer, 1)
	go func() {
		a, err := s.askAt(t.Context(), s.client, s.url, "", text("ab", 3))
		assert.NoError(t, err)
		waiting <- a
	}()
	s.until("the request that waits", func() bool { return s.device.Stats().Waits.Waiting == 1 })
	require.NoError(t, s.listener.Close())
	s.until("the answer", func() bool { return len(waiting) == 1 })
	a := <-waiting
	assert.Equal(t, "stopping", a.problem.Code, a.body)
	assert.ErrorContains(t, <-s.ended, "serve: accept")
	free()
}

// bounded notes the deadlines of a connection.
type bounded struct {
	http.ResponseWriter
	set []time.Duration // from the begin
	now func() time.Duration
}

func (b *bounded) SetWriteDeadline(at time.Time) error {
	b.set = append(b.set, b.now()+time.Until(at))
	return nil
}

// A client has so long to read from each write on, once a second at most; the first is the header.
func TestTheTimeToRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		b := &bounded{ResponseWriter: httptest.NewRecorder(), now: func() time.Duration { return time.Since(begin) }}
		w := &timely{ResponseWriter: b}
		w.WriteHeader(http.StatusOK)
		for range 6 {
			<-time.After(400 * time.Millisecond) // virtual
			_, err := w.Write([]byte("a"))
			require.NoError(t, err)
		}
		<-time.After(time.Hour) // virtual
		_, err := w.Write([]byte("a"))
		require.NoError(t, err)
		assert.Equal(t, []time.Duration{writeTimeout, 1200*time.Millisecond + writeTimeout, 2400*time.Millisecond + writeTimeout, time.Hour + 2400*time.Millisecond + writeTimeout}, b.set)
	})
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

// clearVariables hides the environment's settings.
func clearVariables(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "VRAM_") {
			t.Setenv(name, "")
		}
	}
}

// The program refuses wrong flags and settings, from its command line to its exit code.
func TestProgramRefuses(t *testing.T) {
	clearVariables(t)
	for want, args := range map[string][]string{
		"flag provided but not defined: -x":          {"-x"},
		`"serve": there are no arguments`:            {"serve"},
		`-model is "large": want tiny, char or 124m`: {"-model", "large"},
		`-type is "int8": want float32 or bfloat16`:  {"-type", "int8"},
		"-timeout is 0s, want more than 0":           {"-timeout", "0s"},
		"-idle is -1s, want 0 or more":               {"-idle", "-1s"},
		"-linger is -1s, want 0 or more":             {"-linger", "-1s"},
		"-deadline is -1s, want 0 or more":           {"-deadline", "-1s"},
		"-clients is 0, want 1 to 4096":              {"-clients", "0"},
		"-duration is 0s, want more than 0":          {"-duration", "0s"},
		`-tenants: "a" is no tenant, want`:           {"-tenants", "b=1,a"},
		`-tenants: "=1" is no tenant, want`:          {"-tenants", "=1"},
		`-tenants: "a=0" is no tenant`:               {"-tenants", "a=0"},
		`-tenants: "a" is named twice`:               {"-tenants", "a=1,a=2"},
		"-limit: ":                                   {"-limit", "much"},
		"-driver: ":                                  {"-driver", "none"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, command.Misused, run(t.Context(), t.Context(), args, &stdout, &stderr), "%v", args)
		assert.Contains(t, stderr.String(), "service: "+want)
		assert.Empty(t, stdout.String())
	}
	for want, args := range map[string][]string{
		"Batch -1":          {"-driver", "sim", "-batch", "-1"},
		"PageRows is 3":     {"-driver", "sim", "-page", "3"},
		"no such file":      {"-driver", "sim", "-checkpoint", "missing.safetensors"},
		"LimitBytes is":     {"-driver", "sim", "-limit", "1MB"},
		"listen tcp":        {"-driver", "sim", "-batch", "1", "-addr", "127.0.0.1:65536"},
		"more than the who": {"-driver", "sim", "-model", "char", "-limit", "16MB"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, command.Failed, run(t.Context(), t.Context(), args, &stdout, &stderr), "%v", args)
		assert.Contains(t, stderr.String(), want)
	}
	var stdout, stderr bytes.Buffer
	assert.Equal(t, command.OK, run(t.Context(), t.Context(), []string{"-h"}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "-idle")
}

// The program serves until it is stopped.
func TestProgramServes(t *testing.T) {
	clearVariables(t)
	stop, cancel := context.WithCancel(t.Context())
	out := &lineWriter{lines: make(chan string, 10)}
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(stop, t.Context(), []string{"-driver", "sim", "-addr", "127.0.0.1:0", "-batch", "1"}, out, &stderr)
	}()
	var hello string
	select {
	case hello = <-out.lines:
	case c := <-code:
		require.Failf(t, "it does not serve", "exit code %d: %s", c, &stderr)
	}
	url := regexp.MustCompile(`http://\S+`).FindString(hello)
	r := &rig{t: t}
	a, err := r.askAt(t.Context(), &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, url, "", text("a", 2))
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, a.status, a.body)
	cancel()
	assert.Equal(t, command.OK, <-code)
	assert.Equal(t, "service: stopped; 1 requests answered, 0 refused\n", <-out.lines)
	assert.Empty(t, stderr.String())
}

type lineWriter struct{ lines chan string }

func (w *lineWriter) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

// Errors have a status, also those that no client can cause here.
func TestProblemOf(t *testing.T) {
	t.Parallel()
	for err, status := range map[error]int{
		vram.ErrClosed:           http.StatusServiceUnavailable,
		errStopping:              http.StatusServiceUnavailable,
		vram.ErrQuarantined:      http.StatusInternalServerError,
		vram.ErrOutOfMemory:      http.StatusServiceUnavailable,
		vram.ErrTooLarge:         http.StatusInsufficientStorage,
		&neverError{2, 1}:        http.StatusInsufficientStorage,
		context.Canceled:         statusClientGone,
		context.DeadlineExceeded: http.StatusGatewayTimeout,

		&vram.WaitError{Err: context.DeadlineExceeded}:                            http.StatusServiceUnavailable,
		&vram.WaitError{Err: context.DeadlineExceeded, Quota: &vram.QuotaError{}}: http.StatusTooManyRequests,
		&vram.WaitError{Err: context.Canceled, Quota: &vram.QuotaError{}}:         statusClientGone,
	} {
		assert.Equal(t, status, problemOf(err).status, err)
	}
}
