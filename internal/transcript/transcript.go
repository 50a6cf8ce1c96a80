// Package transcript plays scripts against a state machine and compares its answers word for word.
//
// A script is a text file of blocks with empty lines between. A block is commands, a line "----", and the
// answer; a block without such a line is a remark, as is a line that begins with #. With UPDATE_TRANSCRIPTS=1
// in the environment the answers are rewritten; review them before they are kept.
//
// It is only for tests. Scripts run in parallel.
package transcript

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Machine executes the commands of a script.
type Machine struct {
	// Obey executes one command, given as words, and returns its output, possibly empty. A missing line end
	// is added.
	Obey func(words []string) string
	// Check is called after the last command of each block; may be nil.
	Check func()
}

// Run plays every script in testdata. begin returns a new machine for each.
func Run(t *testing.T, begin func(t *testing.T) Machine) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			want := split(string(text))
			got := play(want, begin(t))
			if os.Getenv("UPDATE_TRANSCRIPTS") != "" {
				require.NoError(t, os.WriteFile(file, []byte(join(got)), 0o600))
				return
			}
			line := 1
			for i, block := range want {
				assert.Equal(t, block, got[i], "%s:%d; UPDATE_TRANSCRIPTS=1 rewrites the answers", file, line)
				line += strings.Count(block, "\n") + 2
			}
		})
	}
}

// split returns the blocks of a script.
func split(text string) (blocks []string) {
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n\n")
}

// join returns the script of blocks.
func join(blocks []string) string { return strings.Join(blocks, "\n\n") + "\n" }

// play returns the blocks of a script with their answers.
func play(blocks []string, machine Machine) []string {
	played := make([]string, len(blocks))
	for i, block := range blocks {
		commands, _, isBlock := strings.Cut(block, "\n----")
		played[i] = commands
		if isBlock {
			var out strings.Builder
			out.WriteString(commands + "\n----\n")
			machine.answer(commands, &out)
			played[i] = strings.TrimSuffix(out.String(), "\n")
		}
	}
	return played
}

// answer executes the commands of a block.
func (m Machine) answer(commands string, out *strings.Builder) {
	for line := range strings.SplitSeq(commands, "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		answer := m.Obey(strings.Fields(line))
		out.WriteString(answer)
		if answer != "" && !strings.HasSuffix(answer, "\n") {
			out.WriteString("\n")
		}
	}
	if m.Check != nil {
		m.Check()
	}
}

// Number parses a number of a command.
func Number(t *testing.T, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err)
	return n
}

// Option returns the value of the word name=value, if the command has one.
func Option(words []string, name string) (value string, found bool) {
	for _, word := range words {
		if value, found = strings.CutPrefix(word, name+"="); found {
			return value, true
		}
	}
	return "", false
}
