package acceptance_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// Calls of all kinds meet each other on the same device, streams and buffers. Each succeeds, and afterwards the books are as before: every
// allocation and free is counted once.
func TestCallsMeetAmongGoroutines(t *testing.T) {
	const goroutineCount, callCount = 4, 120
	x := newState(t, true)
	var allocs, frees atomic.Uint64
	freed := func(b vram.Buffer) error {
		frees.Add(1)
		return b.Free()
	}
	calls := slices.DeleteFunc(append(deviceCalls(), streamCalls()...), func(one stateCall) bool {
		return slices.Contains([]string{ // they end an object, or leave what they make
			"Use.Done", "Buffer.Transfer", "Buffer.Use", "Stream.FreeBatch", "Batch.Free", "Device.Observe", "Device.Reserve", "Device.NewStream", "Device.AdoptStream",
			"Stream.Alloc", "Stream.AllocFor", "Stream.AllocAsync", "Stream.AllocBatch", "Stream.AllocBatchAsync", "Stream.AllocBatchFor", "Stream.AllocBatchForAsync",
		}, one.name)
	})
	for _, bytes := range []int64{512, 100_000, 3 << 20, 64 << 20} {
		calls = append(calls, stateCall{"a buffer", false, func(x *state, _ context.Context) error {
			b, err := x.s.Alloc(bytes)
			if err != nil {
				return err
			}
			allocs.Add(1)
			use, err := b.Use(x.t)
			if err == nil {
				err = use.Done()
			}
			return errors.Join(err, b.RecordStream(x.t), freed(b))
		}}, stateCall{"a transfer", false, func(x *state, ctx context.Context) error {
			b, err := x.t.AllocAsync(ctx, vram.Request{Bytes: bytes, Zero: true, Tenant: x.tenant}).Await(ctx)
			if err != nil {
				return err
			}
			allocs.Add(1)
			moved, err := b.Transfer(x.s)
			if err != nil {
				return errors.Join(err, freed(b))
			}
			return freed(moved)
		}}, stateCall{"a batch", true, func(x *state, ctx context.Context) error {
			batch, err := x.s.AllocBatchForAsync(ctx, vram.BatchRequest{Bytes: []int64{bytes, 1, bytes}}).Await(ctx)
			if err != nil {
				return err
			}
			allocs.Add(3)
			frees.Add(3)
			return batch.Free()
		}})
	}
	calls = append(calls, []stateCall{
		{"a stream", false, func(x *state, _ context.Context) error {
			s, err := x.dev.NewStream()
			if err != nil {
				return err
			}
			b, err := s.Alloc(1 << 20)
			if err != nil {
				return errors.Join(err, s.Close())
			}
			allocs.Add(1)
			return errors.Join(b.RecordStream(x.s), freed(b), s.Close())
		}},
		{"a reservation", true, func(x *state, ctx context.Context) error {
			r, err := x.dev.Reserve(ctx, 1<<20)
			if err != nil {
				return err
			}
			r.Release()
			return nil
		}},
		{"an observer", false, func(x *state, _ context.Context) error {
			stop, err := x.dev.Observe(vram.Observer{Allocated: func(vram.BufferEvent) {}, Freed: func(vram.BufferEvent) {}})
			if err == nil {
				stop()
			}
			return err
		}},
		{"the figures", false, func(x *state, _ context.Context) error {
			x.dev.ResetPeaks()
			stats := x.dev.Stats()
			if stats.LiveBytes < 0 || stats.PendingBytes < 0 || stats.ReservedBytes < stats.LiveBytes {
				return errors.New("wrong")
			}
			return nil
		}},
	}...)
	before := x.dev.Stats()
	var group sync.WaitGroup
	for g := range goroutineCount {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1)) //nolint:gosec // a test
			for range callCount {
				one := calls[random.IntN(len(calls))]
				assert.NoError(t, one.call(x, t.Context()), one.name)
			}
		})
	}
	group.Wait()
	for _, one := range calls {
		assert.NoError(t, one.call(x, t.Context()), one.name)
	}
	after := x.dev.Stats()
	assert.Equal(t, before.LiveBytes, after.LiveBytes)
	assert.Equal(t, allocs.Load(), after.AllocCount-before.AllocCount)
	assert.Equal(t, frees.Load(), after.FreeCount-before.FreeCount)
	require.NoError(t, second(x.dev.Trim(t.Context(), 0)))
}
