package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A buffer has the tag and the tenant of its request, in each way to request it, from a magazine and from new memory.
func TestEveryWayOfARequestNamesItsBuffers(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, bytes := range []int64{kib, 3 * mib} {
		for _, owner := range []*pool.Tenant{nil, pool.NewTenant("owner", 1, pool.Quota{})} {
			r := newRig(t, 64*mib)
			if owner != nil {
				r.pool.AddTenants(owner)
			}
			s := r.stream(core.Budget{})
			want := Request{Bytes: bytes, Tag: "named", Tenant: owner}
			many := BatchRequest{Bytes: []int64{bytes, bytes}, Tag: "named", Tenant: owner}
			for name, request := range map[string]func() ([]Buffer, error){
				"AllocFor": func() ([]Buffer, error) {
					b, err := s.AllocFor(ctx, want)
					return []Buffer{b}, err
				},
				"AllocAsync": func() ([]Buffer, error) {
					b, err := s.AllocAsync(ctx, want).Await(ctx)
					return []Buffer{b}, err
				},
				"AllocBatchFor": func() ([]Buffer, error) {
					all, err := s.AllocBatchFor(ctx, many)
					return all.Buffers(), err
				},
				"AllocBatchForAsync": func() ([]Buffer, error) {
					all, err := s.AllocBatchForAsync(ctx, many).Await(ctx)
					return all.Buffers(), err
				},
			} {
				for range 3 {
					buffers, err := request()
					require.NoError(t, err, name)
					list := control(s).LiveBuffers()
					require.Len(t, list, len(buffers), name)
					for _, b := range list {
						assert.Equal(t, [...]string{"named", owner.Name()}, [...]string{b.Tag, b.Tenant}, name)
					}
					for _, b := range buffers {
						assert.Equal(t, uintptr(bytes), b.MemSize()) //nolint:gosec // positive
						require.NoError(t, b.Free())
					}
				}
			}
		}
	}
}

// An observer hears the tag and the tenant of each buffer, at its allocation and its free.
func TestAnObserverHearsTagAndTenant(t *testing.T) {
	t.Parallel()
	owner := pool.NewTenant("owner", 1, pool.Quota{})
	r := newRig(t, 64*mib)
	r.pool.AddTenants(owner)
	d := &diary{}
	s := r.watched(d)
	for _, bytes := range []int64{kib, 3 * mib} {
		b, err := s.AllocFor(t.Context(), Request{Bytes: bytes, Tag: "named", Tenant: owner})
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	require.Len(t, d.allocated, 2)
	require.Len(t, d.freed, 2)
	for _, e := range append(d.allocated, d.freed...) {
		assert.Equal(t, [...]string{"named", "owner"}, [...]string{e.Tag, e.Tenant})
	}
}

// A context that has ended refuses a request in each way that has one, also where a magazine or the stream has memory for it.
func TestEveryWayOfARequestLooksAtItsContext(t *testing.T) {
	t.Parallel()
	s := newRig(t, 64*mib).stream(core.Budget{})
	require.NoError(t, must(t, s, 9*mib).Free()) // the stream has memory that serves the requests at once
	require.NoError(t, must(t, s, kib).Free())   // and a magazine that does
	ended, end := context.WithCancel(context.Background())
	end()
	for _, bytes := range []int64{kib, 3 * mib} {
		for name, request := range map[string]func() error{
			"AllocFor": func() error {
				_, err := s.AllocFor(ended, Request{Bytes: bytes})
				return err
			},
			"AllocAsync": func() error {
				_, err := s.AllocAsync(ended, Request{Bytes: bytes}).Await(context.Background())
				return err
			},
			"AllocBatchFor": func() error {
				_, err := s.AllocBatchFor(ended, BatchRequest{Bytes: []int64{bytes}})
				return err
			},
			"AllocBatchForAsync": func() error {
				_, err := s.AllocBatchForAsync(ended, BatchRequest{Bytes: []int64{bytes}}).Await(context.Background())
				return err
			},
		} {
			require.ErrorIs(t, request(), context.Canceled, "%s of %d bytes", name, bytes)
			assert.Empty(t, control(s).LiveBuffers(), name)
		}
	}
}
