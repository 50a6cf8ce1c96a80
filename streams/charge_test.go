package streams

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// A claim that is cancelled is refunded once, even while it gets the quota that it waited for.
func TestAQuotaThatComesToACancelledClaimIsRefunded(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	const never = "it is not given up"
	for _, moment := range []string{"before", "while it is charged", "once it is charged", "behind", never} {
		for _, batch := range []bool{false, true} {
			owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 4 * mib})
			control := (*pool.TenantControl)(owner)
			require.True(t, control.Charge(3*mib)) // by others
			var c *claim
			var cancel func() bool
			if batch {
				b := s.batching(nil, []int64{2 * mib})
				b.Waits = true
				require.NoError(t, b.charge(owner, 2*mib))
				watch(context.Background(), &b.claim, &b.promise)
				c, cancel = &b.claim, b.promise.Future().Cancel
			} else {
				a := s.request(Request{Bytes: 2 * mib, Tenant: owner, Wait: true})
				require.NoError(t, a.charge(owner, 2*mib))
				watch(context.Background(), &a.claim, &a.promise)
				c, cancel = &a.claim, a.promise.Future().Cancel
			}
			require.True(t, c.Owes())
			control.Refund(3 * mib)
			if moment == "before" {
				require.True(t, cancel())
			}
			taken, gone := c.Take(func(bytes int64) bool {
				if moment == "while it is charged" {
					require.True(t, cancel())
				}
				require.True(t, control.Charge(bytes))
				if moment == "once it is charged" {
					require.True(t, cancel())
				}
				return true
			})
			given := moment != "behind" && moment != never
			assert.Equal(t, !given, taken, moment)
			assert.Equal(t, given, gone, moment)
			if moment == "behind" {
				require.True(t, cancel())
			}
			want := int64(0)
			if moment == never {
				want = 2 * mib
			}
			assert.Equal(t, want, owner.Stats().ChargedBytes, "%s, batch: %t", moment, batch)
			assert.Equal(t, want > 0, !c.Owes(), "%s, batch: %t", moment, batch)
		}
	}
}

// A quota that does not allow a claim leaves it waiting, and charges nothing.
func TestAClaimThatIsNotAllowedGoesOnWaiting(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	a := r.stream(core.Budget{}).request(Request{Bytes: mib, Wait: true})
	owner := pool.NewTenant("owner", 1, pool.Quota{LimitBytes: 4 * mib})
	require.True(t, (*pool.TenantControl)(owner).Charge(4*mib))
	require.NoError(t, a.charge(owner, mib))
	taken, gone := a.Take(func(int64) bool { return false })
	assert.False(t, taken)
	assert.False(t, gone)
	assert.True(t, a.Owes())
	assert.Equal(t, 4*mib, owner.Stats().ChargedBytes)
}

// A stream belongs to tenants alone if it has live buffers and all are charged; a stream without
// live buffers holds its memory itself.
func TestAStreamLetsWhatLivesThere(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{kib, 3 * mib} {
		r := newRig(t, 64*mib)
		s := r.stream(core.Budget{})
		owner := pool.NewTenant("owner", 1, pool.Quota{})
		r.pool.AddTenants(owner)
		charged := func() Buffer {
			b, err := s.AllocFor(context.Background(), Request{Bytes: bytes, Tenant: owner})
			require.NoError(t, err)
			return b
		}
		lets := func() bool {
			leave := r.occupy(s)
			defer leave()
			s.turn.state.core.Drain()
			s.turn.state.wanted = true // else it looks at nothing
			defer func() { s.turn.state.wanted = false }()
			return s.turn.state.tenantsOnly()
		}
		assert.False(t, lets(), "there is nothing")
		plain := must(t, s, bytes)
		assert.False(t, lets(), "nothing was ever charged")
		b := charged()
		assert.False(t, lets(), "one of two is not charged")
		require.NoError(t, plain.Free())
		assert.True(t, lets())
		pending, user := must(t, s, bytes), r.stream(core.Budget{})
		require.NoError(t, pending.RecordStream(user))
		r.work(user, time.Second)
		require.NoError(t, pending.Free())
		assert.False(t, lets(), "its own memory is pending")
		r.gpu.Advance(time.Second)
		require.NoError(t, control(s).Sweep(t.Context()))
		assert.True(t, lets())
		other := charged()
		assert.True(t, lets())
		require.NoError(t, b.Free())
		assert.True(t, lets())
		require.NoError(t, other.Free())
		assert.False(t, lets(), "what was charged is free")
		plain = must(t, s, bytes)
		assert.False(t, lets(), "the same memory, of nobody's account")
		require.NoError(t, plain.Free())
	}
}
