package nvrtc_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cuda/nvrtc"
)

// An excerpt has the lines that are named and two on both sides of each, from the first line to the last.
func TestExcerptsAtTheEndsOfASource(t *testing.T) {
	const lines = 12
	var all []string
	for i := range lines {
		all = append(all, fmt.Sprintf("line %d", i+1))
	}
	source := strings.Join(all, "\n") + "\n"
	for n := -1; n <= lines+2; n++ {
		got := nvrtc.Excerpt(source, []int{n})
		if n < 1 || n > lines {
			assert.Equal(t, nvrtc.Numbered(source), got, "line %d is not there", n)
			continue
		}
		var want strings.Builder
		for i := 1; i <= lines; i++ {
			switch {
			case i >= n-2 && i <= n+2:
				fmt.Fprintf(&want, "%2d  line %d\n", i, i)
			case i == n+3:
				want.WriteString("...\n")
			}
		}
		assert.Equal(t, want.String(), got, "line %d", n)
	}
}
