package main

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/examples/gpt/model"
	heap "github.com/go-vram/vram/monitor/heapprofile/handler"
)

// settings configure a service.
type settings struct {
	Config     vram.Config
	Model      model.Config
	Decoding   model.Decoding
	Checkpoint string        // a file of weights; "": random ones
	Tokenizer  string        // a folder; "": each byte is a token
	Seed       uint64        // of random weights
	Timeout    time.Duration // most time of a request
	Idle       time.Duration // without a request until the weights sleep; 0: they never do
	Tenants    []weight      // none: requests name no tenant
	Hard       bool          // a tenant gets at most its share
}

// Service answers requests with the memory of one device.
type Service struct {
	settings   settings
	model      model.Config
	texts      tokenizer
	device     *vram.Device
	context    *cuda.Context // of the steps
	ops        ops.Ops
	decoder    *model.Decoder
	engine     *engine
	sleeper    *sleeper
	cacheBytes int64              // that all requests together may have
	tenants    map[string]*tenant // by name; "" without tenants
	meters     *meters

	stopping atomic.Bool
	broken   atomic.Bool  // a part of the allocator was quarantined, or the device has failed
	waiting  atomic.Int64 // requests that wait for memory
	running  atomic.Int64 // requests that have memory
	received atomic.Uint64
	answered atomic.Uint64
	refused  atomic.Uint64
}

// errStopping reports that the service is being stopped.
var errStopping = errors.New("the service is being stopped")

// Open opens the device, loads the weights, captures the steps, and opens the tenants' accounts. The caller closes the service,
// after the last handler has returned.
func Open(s settings) (*Service, error) {
	sv := &Service{settings: s, model: s.Model}
	s.Config.Events.Quarantine = func(vram.QuarantineEvent) { sv.broken.Store(true) }
	if s.Config.SampleBytes == 0 { // for /debug/vram/heap
		s.Config.SampleBytes = vram.DefaultSampleBytes
	}
	if err := sv.open(s); err != nil {
		return nil, errors.Join(err, sv.Close())
	}
	return sv, nil
}

// open opens the parts; Close closes those that are there.
func (sv *Service) open(s settings) (err error) {
	if sv.context, err = cuda.Open(s.Config); err != nil {
		return err
	}
	sv.device = sv.context.Device()
	if sv.ops, err = ops.New(sv.context); err != nil {
		return err
	}
	if sv.decoder, err = sv.newDecoder(s); err != nil {
		return err
	}
	if sv.texts, err = openTokenizer(sv.model, s.Tokenizer); err != nil {
		return err
	}
	failed := func(error) { sv.broken.Store(true) }
	sv.engine, sv.sleeper = newEngine(sv.decoder, failed), newSleeper(sv.decoder, s.Idle, failed)
	n := sv.device.Stats()
	sv.cacheBytes = n.LimitBytes - n.LiveBytes
	sv.meters = newMeters(sv)
	sv.tenants, err = sv.openTenants(s.Tenants)
	return err
}

// newDecoder makes the decoder, with the weights of a file or random ones.
func (sv *Service) newDecoder(s settings) (_ *model.Decoder, err error) {
	if s.Checkpoint == "" {
		return model.NewDecoder(sv.context, sv.ops, sv.model, model.Random(sv.model, s.Seed), s.Decoding)
	}
	f, err := safetensors.OpenFile(s.Checkpoint)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if config, err := model.ConfigOf(f); err == nil { // else it is others' file, of the sizes that -model names
		config.Type = sv.model.Type
		sv.model = config
	}
	return model.NewDecoder(sv.context, sv.ops, sv.model, model.Stored(f), s.Decoding)
}

// Close waits for the device and closes it. Its error lists buffers of handlers that still run.
func (sv *Service) Close() (err error) {
	if sv.engine != nil {
		sv.engine.close()
		sv.sleeper.close()
	}
	if sv.decoder != nil {
		err = sv.decoder.Close()
	}
	if sv.context == nil {
		return err
	}
	err = errors.Join(err, sv.context.Synchronize(context.Background()))
	if sv.ops.Kernels() != nil {
		err = errors.Join(err, sv.ops.Close())
	}
	return errors.Join(err, sv.context.Close()) // closes the device
}

// Stop turns readiness off. It ends nothing.
func (sv *Service) Stop() { sv.stopping.Store(true) }

// Handler returns the service's routes.
func (sv *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/completions", sv.complete)
	mux.HandleFunc("GET /healthz", sv.healthz)
	mux.HandleFunc("GET /readyz", sv.readyz)
	mux.HandleFunc("GET /stats", sv.stats)
	mux.Handle("GET /metrics", sv.meters.handler())
	mux.Handle("GET /debug/vram/heap", heap.New(sv.device))
	return mux
}
