package trace_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/trace"
)

// The buffers at the peak are those that live then, by size, the longest first: they are as many bytes as the peak has.
func TestBuffersAtThePeak(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, live, sizes := strings.Builder{}, []int{}, []int64{}
		var held, peak int64
		atPeak := map[int64]int{}
		for range rapid.IntRange(1, 40).Draw(t, "rows") {
			if len(live) > 0 && rapid.Bool().Draw(t, "free") {
				i := rapid.IntRange(0, len(live)-1).Draw(t, "which")
				fmt.Fprintf(&text, "0,f,%d,%d,0\n", live[i], sizes[live[i]])
				held -= sizes[live[i]]
				live = append(live[:i], live[i+1:]...)
				continue
			}
			bytes := rapid.Int64Range(1, 4).Draw(t, "bytes")
			fmt.Fprintf(&text, "0,a,%d,%d,0\n", len(sizes), bytes)
			live, sizes = append(live, len(sizes)), append(sizes, bytes)
			if held += bytes; held > peak {
				peak = held
				clear(atPeak)
				for _, id := range live {
					atPeak[sizes[id]]++
				}
			}
		}
		read, err := trace.Read("a.csv", strings.NewReader(head+text.String()))
		require.NoError(t, err)
		assert.Equal(t, peak, read.Info.PeakLiveBytes)
		var want []trace.Held
		for bytes := int64(4); bytes > 0; bytes-- {
			if count := atPeak[bytes]; count > 0 {
				want = append(want, trace.Held{Bytes: bytes, Count: count})
			}
		}
		assert.Equal(t, want, read.AtPeak())
	})
}
