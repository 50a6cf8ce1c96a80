package transcript

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Blocks are answered, remarks are kept, and wrong answers are replaced.
func TestPlayAnswersBlocksAndKeepsRemarks(t *testing.T) {
	script := "A remark.\n\nsay a\n# nothing\nsay b=2\n----\nold answer\n\nquiet\n----\n"
	checks := 0
	machine := Machine{
		Obey: func(words []string) string {
			if words[0] != "say" {
				return ""
			}
			if value, found := Option(words, "b"); found {
				assert.Equal(t, int64(2), Number(t, value))
				return "two lines\nb\n"
			}
			return words[1]
		},
		Check: func() { checks++ },
	}
	got := join(play(split(script), machine))
	assert.Equal(t, "A remark.\n\nsay a\n# nothing\nsay b=2\n----\na\ntwo lines\nb\n\nquiet\n----\n", got)
	assert.Equal(t, 2, checks, "one a block")
	assert.Equal(t, got, join(play(split(got), machine)), "what was written is stable")
}

// An option may be any word of a command, and its value is all that follows the first sign.
func TestOptionsMayBeAnyWord(t *testing.T) {
	words := []string{"a=1", "b=2=3", "c="}
	for name, want := range map[string]string{"a": "1", "b": "2=3", "c": ""} {
		value, found := Option(words, name)
		assert.True(t, found, name)
		assert.Equal(t, want, value, name)
	}
	_, found := Option(words, "d")
	assert.False(t, found)
}
