package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
)

// settings are what a service is opened with.
type settings struct {
	Config       vram.Config
	WorkerCount  int           // streams, and requests that run at the same time
	BacklogCount int           // requests that may wait for a worker
	Timeout      time.Duration // of a request, waiting included
}

// Service answers requests with the memory of one device.
type Service struct {
	settings settings
	device   *vram.Device
	gpu      *gpu
	idle     chan *worker // has room for all workers

	stopping atomic.Bool
	waiting  atomic.Int64 // requests that wait for a worker
	running  atomic.Int64 // requests that have one
	answered atomic.Uint64
	refused  atomic.Uint64
}

// worker is a stream that one request uses at a time.
type worker struct {
	number int
	stream *vram.Stream
}

// errBusy says that the backlog is full.
var errBusy = errors.New("too many requests wait")

// errStopping says that the service is being stopped.
var errStopping = errors.New("the service is being stopped")

// Open opens the device and its workers. The caller closes the service, after the last handler has returned.
func Open(s settings) (*Service, error) {
	device, err := vram.Open(s.Config)
	if err != nil {
		return nil, err
	}
	sv := &Service{settings: s, device: device, idle: make(chan *worker, s.WorkerCount)}
	if sv.gpu, err = openGPU(s.Config.Driver, s.Config.Ordinal); err != nil {
		return nil, errors.Join(err, sv.Close())
	}
	for n := range s.WorkerCount {
		stream, err := device.NewStream()
		if err != nil {
			return nil, errors.Join(err, sv.Close())
		}
		sv.idle <- &worker{n, stream}
	}
	return sv, nil
}

// Close waits for the device and gives everything back. Buffers of a handler that still ran would be an
// error that lists them.
func (sv *Service) Close() error {
	err := sv.device.Close() // the streams too
	if sv.gpu != nil {
		err = errors.Join(err, sv.gpu.Close())
	}
	return err
}

// Stop turns readiness off. It does not end anything.
func (sv *Service) Stop() { sv.stopping.Store(true) }

// Handler is the service's routes.
func (sv *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/infer", sv.infer)
	mux.HandleFunc("GET /healthz", sv.healthz)
	mux.HandleFunc("GET /readyz", sv.readyz)
	mux.HandleFunc("GET /stats", sv.stats)
	return mux
}

// acquire waits for a worker: first in, first out, as the channel does. It refuses with errBusy what goes
// beyond the backlog.
func (sv *Service) acquire(ctx context.Context) (*worker, error) {
	select {
	case w := <-sv.idle:
		sv.running.Add(1)
		return w, nil
	default:
	}
	if sv.waiting.Add(1) > int64(sv.settings.BacklogCount) {
		sv.waiting.Add(-1)
		return nil, errBusy
	}
	defer sv.waiting.Add(-1)
	select {
	case w := <-sv.idle:
		sv.running.Add(1)
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (sv *Service) release(w *worker) {
	sv.running.Add(-1)
	sv.idle <- w
}

// run does a request on a worker of its own and says what it took.
func (sv *Service) run(ctx context.Context, r *inferRequest) (a inferAnswer, err error) {
	start := time.Now()
	w, err := sv.acquire(ctx)
	if err != nil {
		return a, err
	}
	defer sv.release(w)
	a.Worker, a.WaitedMicros = w.number, time.Since(start).Microseconds()

	// The context ends the request itself: what Await brings is either the memory or the reason why there is none.
	start = time.Now()
	buffers, err := w.stream.AllocBatchAsync(ctx, r.buffers()).Await(context.Background())
	if err != nil {
		return a, err
	}
	a.AllocatedMicros = time.Since(start).Microseconds()
	defer func() { err = errors.Join(err, buffers.Free()) }()
	for _, b := range buffers.Buffers() {
		a.Bytes += b.Bytes()
	}
	if err := sv.gpu.work(ctx, w.stream.Handle(), r.duration(), buffers.Buffers()); err != nil {
		return a, fmt.Errorf("kernel: %w", err)
	}
	a.Tokens = r.Batch * r.NewTokens
	return a, nil
}
