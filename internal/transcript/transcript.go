// Package transcript plays scripts against a state machine and compares what it says, word for word.
//
// A script is a text file of blocks with empty lines between. A block is commands, a line "----", and the
// answer; a block without such a line is a remark. With UPDATE_TRANSCRIPTS=1 in the environment the
// answers are written anew, to be read before they are kept.
//
// It is for tests only. Each script is played by itself; several at once.
package transcript

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Answer plays the commands of one block, line by line, and says what came of them. The text ends with a
// line end, or is empty.
type Answer func(commands []string) string

// Run plays every script in testdata. begin makes a fresh machine for each.
func Run(t *testing.T, begin func(t *testing.T) Answer) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(string(text), begin(t))
			if os.Getenv("UPDATE_TRANSCRIPTS") != "" {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			assert.Equal(t, string(text), got)
		})
	}
}

// play answers every block of a script.
func play(text string, answer Answer) string {
	var out strings.Builder
	for block := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n\n") {
		commands, _, isBlock := strings.Cut(block, "\n----")
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		out.WriteString(commands + "\n")
		if isBlock {
			out.WriteString("----\n" + answer(strings.Split(commands, "\n")))
		}
	}
	return out.String()
}
