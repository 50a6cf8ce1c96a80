package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
)

// loadFlags choose the load on the device.
type loadFlags struct {
	deviceFlags
	Trace    string        `placeholder:"TRACE" help:"Play this trace over and over: a file, or the name of an embedded trace. Without it a demonstration runs: training, requests that wait, and pressure."`
	Speed    float64       `default:"1" placeholder:"N" help:"How many times as fast as recorded (default 1)."`
	Limit    limitFlag     `placeholder:"12GB|1.02x" help:"Most memory that may be held: bytes, or times the trace's peak live bytes (default 2GiB for the demonstration, 1.25x for a trace)."`
	Interval time.Duration `default:"1s" placeholder:"1s" help:"Between two samples (default 1s)."`
}

// demoLimitBytes bounds the demonstration. Not more: it runs on GPUs that others use. Not less: its steps would not fit.
const demoLimitBytes = 2 << 30

// check reports invalid flags.
func (f *loadFlags) check() error {
	if !(f.Speed > 0 && f.Speed <= 1000) {
		return fmt.Errorf("--speed %v: want more than 0, and 1000 at most", f.Speed)
	}
	if f.Interval < 0 {
		return fmt.Errorf("--interval %v: want 0 or more", f.Interval)
	}
	return nil
}

// workload is a device and its load.
type workload struct {
	device *vram.Device
	name   string
	play   func(ctx context.Context) error // until ctx ends, which is no error
}

// serveSampleBytes is the sample size of the command serve. Not more: a device of 2 GiB has some thousand samples then, so that
// call stacks are known to within a few percent. Not less: recorded traces allocate a gigabyte in a millisecond.
const serveSampleBytes = 1 << 20

// open opens the device with sampleBytes, unless the environment sets another value; 0: no samples.
func (f *loadFlags) open(p *program, sampleBytes int64) (*workload, error) {
	var recorded *trace.Trace
	if f.Trace != "" {
		var err error
		if recorded, err = trace.Open(f.Trace); err != nil {
			return nil, &usageError{err}
		}
	}
	config, newDriver, err := f.device(p)
	if err != nil {
		return nil, err
	}
	if config.Stats == vram.StatsOff {
		return nil, &usageError{errors.New("VRAM_STATS is off: this command shows the statistics")}
	}
	config.Driver, config.Processes = running(newDriver()), p.reader.Processes
	config.LimitBytes = f.limitBytes(config.LimitBytes, recorded)
	if variable("VRAM_SAMPLE_SIZE") == "" {
		config.SampleBytes = sampleBytes
	}
	dev, err := vram.Open(config)
	if err != nil {
		return nil, err
	}
	if recorded != nil {
		return &workload{dev, "trace " + recorded.Name, func(ctx context.Context) error { return playTrace(ctx, dev, recorded, f.Speed) }}, nil
	}
	return &workload{dev, "demonstration", func(ctx context.Context) error { return newDemo(dev, config, f.Speed).play(ctx) }}, nil
}

// running gives a simulated driver the wall clock, since people watch it, and returns every other driver unchanged.
func running(driver cudadrv.Driver) cudadrv.Driver {
	if _, simulated := driver.(*sim.Driver); simulated {
		return sim.New(sim.Config{Clock: sim.Running})
	}
	return driver
}

// limitBytes returns the flag's limit, else the environment's, else one under which the demonstration has pressure.
func (f *loadFlags) limitBytes(configured int64, recorded *trace.Trace) int64 {
	peakBytes := int64(demoLimitBytes)
	if recorded != nil {
		peakBytes = recorded.Info.PeakLiveBytes
	}
	switch {
	case f.Limit.Limit != replay.Limit{}:
		return f.Limit.For(peakBytes)
	case configured != 0:
		return configured
	case recorded != nil:
		return replay.Limit{TimesPeak: 1.25}.For(peakBytes)
	default:
		return demoLimitBytes
	}
}

// run plays the load and shows the device, until ctx ends or either fails.
func (w *workload) run(ctx context.Context, show func(ctx context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	played := make(chan error, 1)
	go func() {
		err := guarded(func() error { return w.play(ctx) })
		if err != nil {
			stop()
		}
		played <- err
	}()
	err := show(ctx)
	stop()
	playErr := <-played
	if p, ok := errors.AsType[*panicError](playErr); ok {
		panic(p.Error()) // again, after show has restored the terminal
	}
	return errors.Join(err, playErr)
}

// panicError is a panic of a goroutine.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", e.value, e.stack) }

// guarded calls a function and returns its panic as an error. A panic in a goroutine would end the process with the terminal in
// raw mode.
func guarded(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = &panicError{value, debug.Stack()}
		}
	}()
	return call()
}

// close closes the device. Buffers of a trace that was stopped in the middle are live, which is no failure here.
func (w *workload) close() error {
	err := w.device.Close()
	if leak, ok := errors.AsType[*vram.InUseError](err); ok && err == error(leak) { //nolint:errorlint // alone, not joined to other errors
		return nil
	}
	return err
}

// sleep waits, and reports whether ctx has not ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
