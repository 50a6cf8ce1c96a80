package host

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/eachcall"
)

// Whichever driver call fails, or panics, no page-locked memory, no event and no goroutine is left: with a block that the
// caller frees again where the driver has refused.
func TestAFailedCallLeavesNothing(t *testing.T) {
	r := newRig(t)
	s := r.stream()
	source, err := PageLockedSource(r.device)
	require.NoError(t, err)
	free := func(b Block) error {
		return eachcall.Closes(r.faults, func() error {
			if !b.Live() {
				return nil
			}
			return b.Free()
		})
	}
	for name, op := range map[string]eachcall.Operation{
		"source": func() (func() error, error) {
			b, err := source.Alloc(10_000, 8192)
			return func() error { return free(b) }, err
		},
		"zeroed": func() (func() error, error) {
			b, err := source.AllocZeroed(10_000, 0)
			return func() error { return free(b) }, err
		},
		"wrapped": func() (_ func() error, err error) {
			inner, err := PageLockedSource(r.device) // which Close closes
			if err != nil {
				return nil, err
			}
			p, err := Pooled(inner, PoolConfig{Device: r.device})
			if err != nil {
				return nil, err
			}
			zero, zeroed := Zeroed(p)
			track, tracked := Tracked(zero)
			log, logged := Logged(track, slog.New(slog.DiscardHandler))
			limit, limited := Limited(log, Bounds{Blocks: 4})
			if err := errors.Join(zeroed, tracked, logged, limited); err != nil {
				return nil, err
			}
			defer func() {
				err = errors.Join(err, eachcall.Closes(r.faults, func() error { return limit.Close(context.Background()) }))
			}()
			var all []Block
			defer func() {
				for _, b := range all {
					err = errors.Join(err, free(b))
				}
			}()
			for range 3 {
				b, err := limit.Alloc(10_000, 0)
				if err != nil {
					return nil, err
				}
				all = append(all, b)
				if err := b.Use(s); err != nil {
					return nil, err
				}
			}
			if err := FreeAll(all...); err != nil {
				return nil, err
			}
			_, err = Trim(context.Background(), limit)
			return nil, err
		},
		"by name": func() (_ func() error, err error) {
			a, err := ByName("cuda:0/pinned", Options{Driver: r.faults})
			if err != nil {
				return nil, err
			}
			defer func() {
				err = errors.Join(err, eachcall.Closes(r.faults, func() error { return a.Close(context.Background()) }))
			}()
			b, err := a.Alloc(10_000, 0)
			if err != nil {
				return nil, err
			}
			return nil, free(b)
		},
		"cache": func() (_ func() error, err error) {
			p := r.cache(0)
			defer func() {
				err = errors.Join(err, eachcall.Closes(r.faults, func() error { return p.Close(context.Background()) }))
			}()
			b, err := p.Alloc(10_000, 0)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, free(b)) }()
			return nil, b.Use(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &eachcall.Bench{Faults: r.faults, Tolerated: []string{"cuEventQuery"}, Left: func() map[string]int {
				r.sim.Advance(time.Hour) // the work ends
				return r.sim.Objects()
			}}
			b.Run(t, op)
		})
	}
	require.NoError(t, r.device.StreamDestroy(s))
	require.NoError(t, r.device.Close())
}
