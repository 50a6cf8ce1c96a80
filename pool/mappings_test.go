package pool

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
)

// The ranges of a report hold the mapped bytes in their order: none is lost, and two are one exactly if the second begins at the
// end of the first and neither was unmapped.
func TestMappedRangesSideBySideAreOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var r JobReport
		var want []Mapping
		at := cudadrv.Ptr(8)
		for range rapid.IntRange(0, 8).Draw(t, "ranges") {
			at += rapid.SampledFrom([]cudadrv.Ptr{0, 0, 0, 1, 5}).Draw(t, "hole")
			bytes := rapid.Int64Range(1, 3).Draw(t, "bytes")
			if rapid.IntRange(0, 4).Draw(t, "unmapped") == 0 {
				r.Mappings = append(r.Mappings, Mapping{at, -bytes})
				want = append(want, Mapping{at, -bytes})
				continue
			}
			n := len(want)
			r.mapped(at, bytes)
			if n > 0 && want[n-1].ChangeBytes > 0 && want[n-1].At+cudadrv.Ptr(want[n-1].ChangeBytes) == at {
				want[n-1].ChangeBytes += bytes
			} else {
				want = append(want, Mapping{at, bytes})
			}
			at += cudadrv.Ptr(bytes)
		}
		require.Equal(t, want, r.Mappings)
	})
}

// Reports name the addresses that were mapped, as one range where pages lie side by side, and those that were unmapped.
func TestReportsNameWhatIsMapped(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.prepare(t)
		var all [][]Mapping
		h.observer.JobDone = func(r JobReport) { all = append(all, r.Mappings) }
		h.open(roomy(32))
		c := h.testClient(1)
		run := c.must(6)
		at := h.pool.at(run.First)
		c.free(run)
		_, err := h.pool.Trim(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, h.pool.Close())
		require.NotEmpty(t, all)
		assert.Equal(t, []Mapping{{at, 6 * page}}, all[0])
		unmapped := map[cudadrv.Ptr]int64{}
		for _, m := range slices.Concat(all[1:]...) {
			unmapped[m.At] -= m.ChangeBytes
		}
		for end := at + cudadrv.Ptr(6*page); at < end; at += cudadrv.Ptr(unmapped[at]) { // in one call or several
			require.Positive(t, unmapped[at], "%v", all)
		}
	})
}
