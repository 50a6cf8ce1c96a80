package magazine

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The functions on the path of every allocation and list step are inlined.
func TestSmallStepsAreInlined(t *testing.T) {
	t.Parallel()
	const here = "github.com/go-vram/vram/internal/stream/magazine"
	told, err := exec.CommandContext(t.Context(), "go", "build", "-gcflags="+here+"=-m", here).CombinedOutput()
	require.NoError(t, err, "%s", told)
	for _, step := range []string{
		"(*Magazine).Take", "(*Magazine).At", "(*Magazine).Span", "(*Magazine).Exact", "(*Home).slot", "(*Slot).name",
		"(*Owner).Pass", "(*Loose).Put", "(*Spans).At", "(*Exacts).At",
	} {
		assert.Contains(t, string(told), "can inline "+step+"\n")
	}
}
