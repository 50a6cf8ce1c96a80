package vram

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/pool/core"
)

// The parameters of each mode are the ones that were measured, for pages of any size; at a limit handles are pages. A change is a
// new measurement.
func TestPoliciesOfFootprints(t *testing.T) {
	t.Parallel()
	balanced := core.Policy{
		HandlePages: 64, LongPages: 100, MergePages: 48, SpareBytes: 28 << 20, Step: 16, OverStep: 8, Slack: 85, SteadySlack: 16,
		SharedSlack: 160, MostSharedSlack: 380, PageWorth: 12,
	}
	lean := core.Policy{HandlePages: 1, Slack: 12}
	fast := core.Policy{
		HandlePages: 128, Step: 16, SteadyStep: 64, Slack: 140, SteadySlack: 80, SharedSlack: 380, MostSharedSlack: 380, PageWorth: 4,
	}
	with := func(p core.Policy, handle, long, merge uint32, spareBytes int64) core.Policy {
		p.HandlePages, p.LongPages, p.MergePages, p.SpareBytes = handle, long, merge, spareBytes
		return p
	}
	for _, c := range []struct {
		footprint Footprint
		pageBytes int64
		limited   bool
		want      core.Policy
	}{
		{Balanced, 2 << 20, false, balanced},
		{Balanced, 100<<20 + 1, false, with(balanced, 1, 1, 1, 28<<20)},
		{Balanced, 100 << 20, false, with(balanced, 1, 2, 1, 28<<20)},
		{Balanced, 1 << 20, false, with(balanced, 128, 200, 96, 28<<20)},
		{Balanced, 1 << 40, false, with(balanced, 1, 1, 1, 28<<20)},
		{Balanced, 2 << 20, true, with(balanced, 1, 0, 0, 0)},
		{Lean, 2 << 20, false, lean},
		{Lean, 2 << 20, true, lean},
		{Fast, 2 << 20, false, fast},
		{Fast, 2 << 20, true, with(fast, 1, 0, 0, 0)},
	} {
		assert.Equal(t, c.want, c.footprint.policy(c.pageBytes, c.limited), "%v, pages of %d, limited: %t", c.footprint, c.pageBytes, c.limited)
	}
}
