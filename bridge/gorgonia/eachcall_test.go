package gorgonia_test

import (
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	host "gorgonia.org/tensor"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/bridge/gorgonia"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each driver call that fails or panics leaves no buffer, no driver object and no goroutine.
func TestAFailedCallLeavesNothing(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	faults := fault.Wrap(machine)
	dev, err := vram.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	r := newRigOn(t, dev)
	x, y, out := numbers[float32](r, 40, 30).device, numbers[float32](r, 30, 20).device, numbers[float32](r, 40, 20).device
	for name, do := range map[string]func(e *gorgonia.Engine) error{
		"new":     func(e *gorgonia.Engine) error { return second(e.New(host.Float32, 1000)) },
		"alloc":   func(e *gorgonia.Engine) error { return second(e.Alloc(1000)) },
		"from":    func(e *gorgonia.Engine) error { return second(gorgonia.From(e, []float32{1, 2})) },
		"read":    func(*gorgonia.Engine) error { return second(gorgonia.Read[float32](x)) },
		"add":     func(*gorgonia.Engine) error { return second(host.Add(x, x)) },
		"scalar":  func(*gorgonia.Engine) error { return second(host.Sub(float32(2), x)) },
		"incr":    func(*gorgonia.Engine) error { return second(host.Mul(x, x, host.WithIncr(x))) },
		"product": func(e *gorgonia.Engine) error { return second(e.Product(x, y)) },
		"matmul":  func(e *gorgonia.Engine) error { return e.MatMul(x, y, out) },
		"sum":     func(*gorgonia.Engine) error { return second(x.Sum(0)) },
		"memcpy":  func(e *gorgonia.Engine) error { return e.Memcpy(out, out) },
		"memset":  func(e *gorgonia.Engine) error { return e.Memset(out, float32(1)) },
		"memclr":  func(e *gorgonia.Engine) error { e.Memclr(out); return nil },
		"a scope of a new engine": func(*gorgonia.Engine) (err error) {
			e, err := gorgonia.New(r.c, r.o)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.Close()) }()
			return e.Scoped(func() error {
				t, err := gorgonia.From(e, []float64{1, 2, 3})
				if err != nil {
					return err
				}
				return e.Keep(t)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &eachcall.Bench{Faults: faults, Tolerated: []string{"cuStreamIsCapturing"}, Left: func() map[string]int {
				machine.Device(0).Advance(time.Hour) // the work ends
				_, _ = dev.Trim(t.Context(), 0)
				all := machine.Device(0).Objects()
				all["goroutine"], all["live byte"] = runtime.NumGoroutine(), int(dev.Stats().LiveBytes)
				return all
			}}
			b.Run(t, func() (undo func() error, err error) {
				return nil, r.e.Scoped(func() error { return do(r.e) })
			})
		})
	}
}
