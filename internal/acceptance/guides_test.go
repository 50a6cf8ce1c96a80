package acceptance_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/monitor/history"
	"github.com/go-vram/vram/vramtest"
	"github.com/go-vram/vram/warm"
)

// Docs/concepts.md: one buffer through its states.
func TestConceptsOfStates(t *testing.T) {
	dev := vramtest.Open(t)
	load, step := dev.Stream(), dev.Stream()
	states := func() (live, cached, pending bool) {
		s := dev.Stats()
		return s.LiveBytes > 0, s.CachedBytes > 0, s.PendingBytes > 0
	}
	check := func(wantLive, wantCached, wantPending bool) {
		t.Helper()
		live, cached, pending := states()
		assert.Equal(t, []bool{wantLive, wantCached, wantPending}, []bool{live, cached, pending})
	}

	batch, err := load.Alloc(64 << 20) // live
	require.NoError(t, err)
	check(true, false, false)
	require.NoError(t, batch.Free()) // cached, by the stream load
	check(false, true, false)

	batch, err = load.Alloc(64 << 20) // live again, at the same address
	require.NoError(t, err)
	dev.Launch(load, time.Millisecond, vramtest.Writes(batch))
	filled := dev.Record(load)
	require.NoError(t, batch.RecordStream(step)) // another stream is going to use it
	dev.Wait(step, filled)
	dev.Launch(step, time.Millisecond, vramtest.Reads(batch))
	require.NoError(t, batch.Free()) // pending: step has not finished with it
	check(false, false, true)

	_, err = dev.Trim(t.Context(), 64<<20) // looks for uses that have finished: none yet
	require.NoError(t, err)
	dev.Advance(time.Second)               // step has finished
	_, err = dev.Trim(t.Context(), 64<<20) // looks again, and keeps it
	require.NoError(t, err)
	_, _, pending := states()
	assert.False(t, pending)
	assert.Equal(t, int64(64<<20), dev.Stats().CachedBytes+dev.Stats().FreeBytes) // free, in the stream or in the pool
}

// serve is the request of docs/guide-services.md: all that it needs, or an answer in time.
func serve(ctx context.Context, s *vram.Stream, customer *vram.Tenant, sizes []int64, run func([]vram.Buffer) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // the customer does not wait longer
	defer cancel()
	memory, err := s.AllocBatchFor(ctx, vram.BatchRequest{Bytes: sizes, Tenant: customer, Wait: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Free()) }() // the last kernel has been submitted by then
	return run(memory.Buffers())
}

// busy is the answer of a service where memory is short.
func busy(err error) (status int) {
	var quota *vram.QuotaError
	var wait *vram.WaitError
	switch {
	case errors.As(err, &quota), errors.Is(err, vram.ErrTooLarge): // more than this customer, or the device, can ever have
		return 413
	case errors.Is(err, vram.ErrQuota): // the customer's own requests had it for as long as this one would wait
		return 429
	case errors.As(err, &wait), errors.Is(err, vram.ErrClosed): // others had it for that long, or the service shuts down
		return 503
	case errors.Is(err, vram.ErrOutOfMemory): // nobody is going to free so much
		return 507
	}
	return 500
}

// Docs/guide-services.md: a customer's requests run, and one that is too large is refused.
func TestGuideToServices(t *testing.T) {
	cfg, err := vram.ConfigFromEnv(vram.Config{
		Driver:     sim.New(sim.Config{}),
		LimitBytes: 1 << 30,
		Warm:       []vram.Demand{{Bytes: 32 << 20, Count: 16}}, // mapped before the first request comes
	})
	require.NoError(t, err)
	dev, err := vram.Open(cfg)
	require.NoError(t, err)
	gold, err := dev.Tenant("gold", vram.Quota{ShareBytes: 768 << 20})
	require.NoError(t, err)
	guest, err := dev.Tenant("guest", vram.Quota{ShareBytes: 128 << 20, LimitBytes: 256 << 20})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)

	for _, customer := range []*vram.Tenant{gold, guest} {
		require.NoError(t, serve(t.Context(), s, customer, []int64{32 << 20, 32 << 20, 4 << 20}, func(memory []vram.Buffer) error {
			assert.Len(t, memory, 3)
			return nil
		}))
	}
	err = serve(t.Context(), s, guest, []int64{512 << 20}, func([]vram.Buffer) error { return nil })
	require.Error(t, err)
	assert.Equal(t, 413, busy(err))
	err = serve(t.Context(), s, gold, []int64{512 << 20, 1 << 30}, func([]vram.Buffer) error { return nil })
	assert.Equal(t, 413, busy(err), "more than the device's limit: %v", err)

	whoLeaves := func() context.Context {
		impatient, cancel := context.WithCancel(t.Context())
		go func() {
			for dev.Stats().Waits.Waiting == 0 {
				runtime.Gosched()
			}
			cancel()
		}()
		return impatient
	}
	own, err := s.AllocFor(t.Context(), vram.Request{Bytes: 200 << 20, Tenant: guest})
	require.NoError(t, err)
	err = serve(whoLeaves(), s, guest, []int64{100 << 20}, func([]vram.Buffer) error { return nil })
	assert.Equal(t, 429, busy(err), "its own buffers have its quota, and most of the device is free: %v", err)
	require.NoError(t, own.Free())

	all, err := s.Alloc(900 << 20)
	require.NoError(t, err)
	err = serve(whoLeaves(), s, gold, []int64{512 << 20}, func([]vram.Buffer) error { return nil })
	assert.Equal(t, 503, busy(err))
	_, err = s.Alloc(512 << 20)
	assert.Equal(t, 507, busy(err))
	assert.Equal(t, 500, busy(io.EOF))
	require.NoError(t, all.Free())
	require.NoError(t, dev.Close())
	err = serve(t.Context(), s, gold, []int64{4 << 20}, func([]vram.Buffer) error { return nil })
	assert.Equal(t, 503, busy(err))
}

// train is the loop of docs/guide-training.md.
func train(ctx context.Context, dev *vram.Device, shape warm.Transformer, steps int) (err error) {
	want, err := shape.Training()
	if err != nil {
		return err
	}
	if err := dev.Warm(ctx, want...); err != nil { // no driver call in the first step
		return err
	}
	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	parameters, err := allocate(s, shape.Parameters)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.FreeBatch(parameters)) }()
	for range steps {
		saved, err := allocate(s, shape.Activations) // forward
		if err != nil {
			return err
		}
		gradients, err := allocate(s, shape.Gradients) // backward
		if err != nil {
			return errors.Join(err, s.FreeBatch(saved))
		}
		if err := errors.Join(s.FreeBatch(saved), s.FreeBatch(gradients)); err != nil { // their last kernels are submitted
			return err
		}
	}
	return nil
}

// allocate takes all buffers of a part of the model, or none.
func allocate(s *vram.Stream, part func() ([]vram.Demand, error)) ([]vram.Buffer, error) {
	want, err := part()
	if err != nil {
		return nil, err
	}
	var sizes []int64
	for _, d := range want {
		for range d.Count {
			sizes = append(sizes, d.Bytes)
		}
	}
	buffers := make([]vram.Buffer, len(sizes))
	return buffers, s.AllocBatch(buffers, sizes)
}

// Docs/guide-training.md: the loop makes no driver call once its memory is mapped, and its recording is a trace of all that it
// allocated.
func TestGuideToTraining(t *testing.T) {
	shape := warm.Transformer{
		Batch: 2, Sequence: 256, Hidden: 256, Heads: 4, Layers: 4, Vocabulary: 8000, Positions: 256, Type: warm.BFloat16, Mixed: true,
	}
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	var rows bytes.Buffer
	require.NoError(t, record(dev, func() error { return train(t.Context(), dev, shape, 5) }, &rows))
	s := dev.Stats()
	assert.Zero(t, s.DriverMisses, "all was mapped ahead")
	require.NoError(t, dev.Close())

	tr, err := trace.Read("training", &rows)
	require.NoError(t, err)
	assert.Equal(t, s.AllocCount, uint64(tr.Info.AllocCount))
	assert.Zero(t, tr.Info.LeftoverBytes)
}

// record writes the allocations and frees of some steps as a trace.
func record(dev *vram.Device, steps func() error, out io.Writer) error {
	recording, err := history.Start(dev, history.Options{Events: 1 << 16})
	if err != nil {
		return err
	}
	defer recording.Stop()
	if err := steps(); err != nil {
		return err
	}
	return recording.WriteTrace(out) // for vram replay, vram analyze and vram compare
}

// dumping opens a device that writes its memory once, when a request finds none.
func dumping(cfg vram.Config, out, report io.Writer, dumped func(error)) (*vram.Device, *history.Recorder, error) {
	var started atomic.Pointer[history.Recorder] // nil before the device is recorded
	var once sync.Once
	cfg.Events.OutOfMemory = func(short *vram.OutOfMemoryError) {
		if recorder := started.Load(); recorder != nil {
			once.Do(func() {
				fmt.Fprint(report, short.Report())
				dumped(recorder.WriteMemory(context.Background(), out))
			})
		}
	}
	dev, err := vram.Open(cfg)
	if err != nil {
		return nil, nil, err
	}
	recorder, err := history.Start(dev, history.Options{Stacks: true}) // with the call stacks of the live buffers
	started.Store(recorder)
	return dev, recorder, err
}

// Docs/guide-training.md: a request that finds no memory leaves a dump of it, and a report.
func TestADumpWhenMemoryRunsOut(t *testing.T) {
	var dump, report bytes.Buffer
	dumped := make(chan error, 1)
	dev, recorder, err := dumping(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: 64 << 20}, &dump, &report, func(err error) { dumped <- err })
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(48 << 20)
	require.NoError(t, err)
	_, err = s.Alloc(32 << 20)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	require.NoError(t, <-dumped)
	assert.Contains(t, report.String(), "out of memory: requested 32 MiB")
	assert.Contains(t, dump.String(), "TestADumpWhenMemoryRunsOut", "the place of the live buffer")
	recorder.Stop()
	require.NoError(t, b.Free())
	require.NoError(t, dev.Close())
}

// Docs/tuning.md: the configuration that an analysis ends with is one.
func TestTuning(t *testing.T) {
	cfg := vram.Config{
		Footprint:  vram.Lean,
		LimitBytes: 14 << 30,
		Warm: []vram.Demand{
			{Bytes: 1646821376, Count: 3},
			{Bytes: 100663296, Count: 36},
		},
	}
	cfg.Driver = sim.New(sim.Config{})
	dev, err := vram.Open(cfg)
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	b, err := s.Alloc(1646821376)
	require.NoError(t, err)
	require.NoError(t, b.Free())
	assert.True(t, strings.HasPrefix(dev.Stats().String(), "live"), dev.Stats().String())
	require.NoError(t, dev.Close())
}
