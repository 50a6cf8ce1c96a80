package acceptance_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// Whichever driver call fails, or panics, a request that failed leaves no buffer, no driver object and no goroutine, and
// opening leaves nothing open.
func TestAFailedCallLeavesNothing(t *testing.T) {
	machine := sim.New(sim.Config{Devices: 2})
	faults := fault.Wrap(machine)
	left := func() map[string]int {
		all := map[string]int{"goroutine": runtime.NumGoroutine()}
		for ordinal := range 2 {
			machine.Device(ordinal).Advance(time.Hour) // the work ends
			for kind, count := range machine.Device(ordinal).Objects() {
				all[kind] += count
			}
		}
		return all
	}
	t.Run("OpenAll", func(t *testing.T) {
		(&eachcall.Bench{Faults: faults, Left: left}).Run(t, func() (func() error, error) {
			set, err := vram.OpenAll(vram.Config{Driver: faults})
			if err != nil {
				return nil, err
			}
			used := false
			defer func() {
				if !used { // also after a panic
					_ = set.Close()
				}
			}()
			for _, dev := range set.Devices() { // the first use opens the driver's device
				if _, err := dev.NewStream(); err != nil {
					return nil, err
				}
			}
			used = true
			return set.Close, nil
		})
	})
	dev, err := vram.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	other, err := dev.NewStream()
	require.NoError(t, err)
	for name, op := range map[string]eachcall.Operation{
		"NewStream": func() (func() error, error) {
			s, err := dev.NewStream()
			if err != nil {
				return nil, err
			}
			return s.Close, nil
		},
		"Alloc": func() (func() error, error) {
			b, err := s.Alloc(8 << 20)
			return b.Free, err
		},
		"AllocBatch": func() (func() error, error) {
			all := make([]vram.Buffer, 3)
			err := s.AllocBatch(all, []int64{1 << 20, 4 << 20, 6 << 20})
			return func() (err error) {
				for _, b := range all {
					err = errors.Join(err, b.Free())
				}
				return err
			}, err
		},
		"zeroed": func() (func() error, error) {
			b, err := s.AllocFor(context.Background(), vram.Request{Bytes: 3 << 20, Zero: true})
			return b.Free, err
		},
		"Transfer": func() (func() error, error) {
			b, err := s.Alloc(1 << 20)
			if err != nil {
				return nil, err
			}
			moved, err := b.Transfer(other)
			if err != nil {
				return nil, errors.Join(err, b.Free())
			}
			return moved.Free, nil
		},
		"Use": func() (func() error, error) {
			b, err := s.Alloc(1 << 20)
			if err != nil {
				return nil, err
			}
			use, err := b.Use(other)
			if err == nil {
				err = use.Done()
			}
			return nil, errors.Join(err, b.Free())
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &eachcall.Bench{Faults: faults, Tolerated: []string{"cuStreamIsCapturing", "cuEventRecord"}, Left: func() map[string]int {
				_, _ = dev.Trim(context.Background(), 0)
				all := left()
				_, _ = dev.Trim(context.Background(), 0) // the memory of work that has ended
				all["live byte"] = int(dev.Stats().LiveBytes)
				return all
			}}
			b.Run(t, op)
		})
	}
	require.NoError(t, dev.Close())
}
