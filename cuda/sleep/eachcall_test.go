package sleep_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// Whichever driver call fails, or panics, an arena that was closed leaves no memory of the device or the host, no stream, no event
// and no goroutine.
func TestAFailedCallLeavesNothing(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true, TimedKernels: true})
	faults := fault.Wrap(machine)
	dev, err := vram.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	// with performs something with an arena that has a buffer.
	with := func(do func(a *sleep.Arena, b cuda.Buffer) error) eachcall.Operation {
		return func() (_ func() error, err error) {
			a, err := sleep.New(c, sleep.Options{BlockBytes: 96 << 10})
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, eachcall.Closes(faults, a.Close)) }()
			b, err := a.Alloc(160 << 10)
			if err != nil {
				return nil, err
			}
			defer func() {
				err = errors.Join(err, eachcall.Closes(faults, func() error {
					if !b.Live() {
						return nil
					}
					return b.Free()
				}))
			}()
			if err := c.Fill8(cuda.Whole(b), 1); err != nil {
				return nil, err
			}
			return nil, do(a, b)
		}
	}
	ctx := context.Background()
	for name, op := range map[string]eachcall.Operation{
		"Sleep and Wake": with(func(a *sleep.Arena, _ cuda.Buffer) error {
			if err := a.Sleep(ctx, sleep.Save); err != nil {
				return err
			}
			return a.Wake(ctx)
		}),
		"Sleep": with(func(a *sleep.Arena, _ cuda.Buffer) error { return a.Sleep(ctx, sleep.Save) }),
		"Free asleep": with(func(a *sleep.Arena, b cuda.Buffer) error {
			if err := a.Sleep(ctx, sleep.Drop); err != nil {
				return err
			}
			return errors.Join(b.Free(), a.Wake(ctx))
		}),
		"Stats": with(func(a *sleep.Arena, _ cuda.Buffer) error {
			_, err := a.Stats(ctx)
			return err
		}),
	} {
		t.Run(name, func(t *testing.T) {
			(&eachcall.Bench{Faults: faults, Tolerated: []string{"cuStreamIsCapturing", "cuEventRecord", "cuEventQuery"}, Left: func() map[string]int {
				machine.Device(0).Advance(time.Hour) // the work ends
				_, _ = dev.Trim(ctx, 0)
				all := machine.Device(0).Objects()
				all["goroutine"], all["live byte"] = runtime.NumGoroutine(), int(dev.Stats().LiveBytes)
				all["sleeping byte"] = int(dev.Stats().SleepingBytes)
				return all
			}}).Run(t, op)
		})
	}
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}

func TestEachOperationIsTried(t *testing.T) {
	eachcall.Operations(t, "../../api/vram.txt", "sleep", "eachcall_test.go", nil)
}
