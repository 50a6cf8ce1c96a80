package streams

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// BenchmarkRecord measures an allocation, an announced use and the free, and the same without the use.
// The simulated device's calls include the cost of its mutex and maps.
func BenchmarkRecord(b *testing.B) {
	for _, bytes := range []int64{4 * kib, mib} {
		for _, uses := range []int{0, 1, 2} {
			b.Run(fmt.Sprintf("bytes=%d/uses=%d", bytes, uses), func(b *testing.B) {
				r := newRig(b, 512*mib)
				home := r.stream(core.Budget{})
				others := []*Stream{r.stream(core.Budget{}), r.stream(core.Budget{})}
				b.ReportAllocs()
				for b.Loop() {
					x, err := home.Alloc(bytes)
					for _, s := range others[:uses] {
						_ = x.RecordStream(s)
					}
					if err != nil || x.Free() != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				require.NoError(b, control(home).Check(b.Context()))
			})
		}
	}
}
