package transcript

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Blocks are answered, remarks are kept, and a wrong answer is replaced.
func TestPlayAnswersBlocksAndKeepsRemarks(t *testing.T) {
	script := "A remark.\n\nsay a\nsay b\n----\nold answer\n\nquiet\n----\n"
	got := play(script, func(commands []string) string {
		var out strings.Builder
		for _, c := range commands {
			if word, ok := strings.CutPrefix(c, "say "); ok {
				out.WriteString(word + "\n")
			}
		}
		return out.String()
	})
	assert.Equal(t, "A remark.\n\nsay a\nsay b\n----\na\nb\n\nquiet\n----\n", got)
	assert.Equal(t, got, play(got, func(commands []string) string {
		if len(commands) == 2 {
			return "a\nb\n"
		}
		return ""
	}), "what was written is stable")
}
