package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/go-vram/vram/monitor/page"
)

// serveCmd implements the command serve.
type serveCmd struct {
	loadFlags
	Addr string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"Where the page is served (default 127.0.0.1:0: a free port, for this machine alone)."`
}

// Validate reports invalid flags.
func (c *serveCmd) Validate() error { return c.check() }

// shutdownLimit bounds the wait for running requests at the end.
const shutdownLimit = 3 * time.Second

// Run serves the page until it is interrupted.
func (c *serveCmd) Run(p *program) error {
	w, err := c.open(p, serveSampleBytes)
	if err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(p.ctx, "tcp", c.Addr)
	if err != nil {
		return errors.Join(&usageError{err}, w.close())
	}
	if _, err := fmt.Fprintf(p.stdout, "%s on http://%s/\n", w.name, listener.Addr()); err != nil {
		return errors.Join(err, listener.Close(), w.close())
	}
	err = w.run(p.ctx, func(ctx context.Context) error {
		return servePage(ctx, listener, page.New(page.Options{Interval: c.Interval}, w.device))
	})
	return errors.Join(err, w.close())
}

// servePage serves a page until ctx ends.
func servePage(ctx context.Context, listener net.Listener, shown *page.Page) error {
	server := &http.Server{Handler: ownHost(listener, shown), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		shown.Close() // ends the event streams: the server would wait for them
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		if err = server.Shutdown(limited); err != nil {
			err = errors.Join(err, server.Close())
		}
		<-served
	}
	shown.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ownHost refuses requests that name another host if the server listens on a loopback address: a site whose name resolves to
// this machine would be of the same origin.
func ownHost(listener net.Listener, handler http.Handler) http.Handler {
	bound, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil || !bound.Addr().IsLoopback() {
		return handler
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		if at, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !at.IsLoopback()) {
			http.Error(w, "the page is for this machine", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}
