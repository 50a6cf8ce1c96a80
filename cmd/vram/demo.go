package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

const (
	demoServers  = 3
	demoRequests = 16               // that a server answers at a time
	demoWave     = 40 * time.Second // the period of the load
	demoStep     = 25 * time.Millisecond
	mib          = int64(1) << 20
)

// demo is a program to watch: a training loop whose batches come from a loader on another stream, and servers whose requests
// wait for memory if it is short. Sizes are fractions of the limit.
type demo struct {
	device *vram.Device
	gpu    *sim.Device // nil on a GPU, whose streams are not kept busy
	speed  float64
	unit   int64 // a 256th of the limit
	begin  time.Time
}

func newDemo(dev *vram.Device, config vram.Config, speed float64) *demo {
	d := &demo{device: dev, speed: speed, unit: max(config.LimitBytes/256, 4096), begin: time.Now()}
	if simulated, ok := config.Driver.(*sim.Driver); ok {
		d.gpu = simulated.Device(config.Ordinal)
	}
	return d
}

// play runs all parts until ctx ends.
func (d *demo) play(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	parts := []func(context.Context) error{d.train}
	for i := range demoServers {
		parts = append(parts, func(ctx context.Context) error { return d.serve(ctx, i) })
	}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			if errs[i] = guarded(func() error { return part(ctx) }); errs[i] != nil {
				stop()
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// load goes from 0 to 1 and back.
func (d *demo) load() float64 {
	return (1 - math.Cos(2*math.Pi*float64(time.Since(d.begin))*d.speed/float64(demoWave))) / 2
}

func (d *demo) pause(ctx context.Context, t time.Duration) bool {
	return sleep(ctx, time.Duration(float64(t)/d.speed))
}

// work keeps a stream busy.
func (d *demo) work(s *vram.Stream, t time.Duration) error {
	if d.gpu == nil {
		return nil
	}
	return d.gpu.Occupy(s.Handle(), time.Duration(float64(t)/d.speed))
}

// train runs steps of a network: weights, a batch from the loader's stream, activations that are freed in reverse order, and
// small buffers.
func (d *demo) train(ctx context.Context) (err error) {
	compute, err := d.device.NewStream() //nolint:contextcheck // a stream outlives the call
	if err != nil {
		return err
	}
	loader, err := d.device.NewStream() //nolint:contextcheck // a stream outlives the call
	if err != nil {
		return err
	}
	var live []vram.Buffer
	defer func() { err = errors.Join(err, freeBuffers(live)) }()
	random := rand.New(rand.NewPCG(1, 1)) //nolint:gosec // lengths
	for i := range 12 {
		b, err := compute.AllocFor(ctx, vram.Request{Bytes: d.unit * int64(1+i%3), Tag: "weights"})
		if err != nil {
			return ended(ctx, err)
		}
		live = append(live, b)
	}
	spare, err := d.device.Reserve(ctx, 8*d.unit)
	if err != nil {
		return ended(ctx, err)
	}
	defer spare.Release()
	weights := len(live)
	for d.pause(ctx, 4*demoStep) {
		if err := d.step(ctx, compute, loader, random, &live); err != nil {
			return ended(ctx, err)
		}
		for len(live) > weights {
			last := live[len(live)-1]
			live = live[:len(live)-1]
			if err := last.Free(); err != nil {
				return err
			}
			if len(live)%2 == 0 {
				d.pause(ctx, demoStep/2)
			}
		}
	}
	return nil
}

// step allocates the buffers of one training step until memory runs out.
func (d *demo) step(ctx context.Context, compute, loader *vram.Stream, random *rand.Rand, live *[]vram.Buffer) error {
	batch, err := loader.AllocFor(ctx, vram.Request{Bytes: d.unit * 6, Tag: "batch"})
	if err == nil { // the loader is done with it; the computation uses it for a while
		err = errors.Join(d.work(compute, 24*demoStep), batch.RecordStream(compute), batch.Free())
	}
	for i := 0; err == nil && i < 18; i++ {
		for _, bytes := range []int64{d.unit*int64(1+i%4) + random.Int64N(d.unit), 512 << (i % 6)} {
			var b vram.Buffer
			if b, err = compute.AllocFor(ctx, vram.Request{Bytes: bytes, Tag: "activations"}); err != nil {
				break
			}
			*live = append(*live, b)
		}
		d.pause(ctx, demoStep)
	}
	if errors.Is(err, vram.ErrOutOfMemory) {
		return nil
	}
	return err
}

// serve answers requests, more of them at a time as the load rises.
func (d *demo) serve(ctx context.Context, number int) (err error) {
	s, err := d.device.NewStream() //nolint:contextcheck // a stream outlives the call
	if err != nil {
		return err
	}
	tenant, err := d.device.Tenant(fmt.Sprintf("model %c", 'A'+number), vram.Quota{ShareBytes: 40 * d.unit})
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(2, uint64(number))) //nolint:gosec // lengths
	var answered sync.WaitGroup
	defer answered.Wait()
	answering := make(chan struct{}, demoRequests)
	failures := make(chan error, demoRequests)
	for d.pause(ctx, demoStep*time.Duration(1+random.IntN(4))) {
		if float64(len(answering)) > 2+d.load()*(demoRequests-3) {
			continue
		}
		bytes, time := d.unit+random.Int64N(11*d.unit), demoStep*time.Duration(20+random.IntN(60))
		answering <- struct{}{}
		answered.Go(func() {
			if err := guarded(func() error { return d.answer(ctx, s, tenant, bytes, time) }); err != nil {
				failures <- err
			}
			<-answering
		})
		select {
		case err := <-failures:
			return err
		default:
		}
	}
	return nil
}

// answer holds a cache for the duration of its request. It waits for memory.
func (d *demo) answer(ctx context.Context, s *vram.Stream, tenant *vram.Tenant, bytes int64, time time.Duration) error {
	b, err := s.AllocFor(ctx, vram.Request{Bytes: bytes, Tag: "kv-cache", Wait: true, Tenant: tenant})
	switch {
	case err == nil:
		d.pause(ctx, time)
		return b.Free()
	case errors.Is(err, vram.ErrWouldDeadlock), errors.Is(err, vram.ErrOutOfMemory):
		return nil // the request is refused
	default:
		return ended(ctx, err)
	}
}

// ended returns nil if ctx has ended, which ends the demonstration.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // that ends the demonstration
	}
	return err
}

func freeBuffers(all []vram.Buffer) error {
	var errs []error
	for _, b := range all {
		errs = append(errs, b.Free())
	}
	return errors.Join(errs...)
}
