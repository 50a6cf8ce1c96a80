package sim

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Joined texts have one header, with the highest version and target, and the first one's lines keep their numbers.
func TestJoinedTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ texts, want []string }{
		"one text": {[]string{".version 7.0\n.target sm_70\n.address_size 64\nA"}, []string{".version 7.0\n.target sm_70\n.address_size 64\nA"}},
		"the first is highest": {
			[]string{"// a comment\n.version 8.1 .target sm_90a\n.address_size 64\nA", ".version 7.0\n.target sm_90\n.address_size 64\nB"},
			[]string{"// a comment\n.version 8.1 .target sm_90a\n.address_size 64\nA", "\n\n\nB"},
		},
		"a later one has instructions of its own": {
			[]string{".version 7.0\n.target sm_90\nA", ".version 7.0\n.target sm_90a\nB", ".version 7.0\n.target sm_90\nC"},
			[]string{".version 7.0\n.target sm_90a\nA", "\n\nB", "\n\nC"},
		},
		"a later one is higher": {
			[]string{".version 7.0\n.target sm_70\nA", ".version 8.1 .target sm_90, texmode_independent B", ".version 8.0\n.target sm_80\nC"},
			[]string{".version 8.1\n.target sm_90\nA", "  B", "\n\nC"},
		},
		"comments stay": {
			[]string{".version 7.0\n.target sm_70\nA", "/* .version 9.0 */ .version 7.1\n.target sm_70 // .target sm_90\nB"},
			[]string{".version 7.1\n.target sm_70\nA", "/* .version 9.0 */ \n // .target sm_90\nB"},
		},
	} {
		var want strings.Builder
		want.WriteString(c.want[0])
		for _, more := range c.want[1:] {
			want.WriteString("\n" + more)
		}
		assert.Equal(t, want.String(), joined(c.texts), name)
	}
}

// Versions and targets have an order, and the lowest of all is a text that is neither.
func TestNumbersOfHeaders(t *testing.T) {
	t.Parallel()
	for _, same := range [][]string{
		{"", "7.x", "7.0.1", "8.0.0", "sm_", "sm_x", "sm_9.0.0", "compute_90"},
		{"6.5"},
		{"sm_70", "7.0"},
		{"sm_89"},
		{"9.0", "sm_90", "sm_90f"},
		{"sm_90a"},
		{"sm_100"},
	} {
		for _, of := range same {
			assert.Equal(t, number(same[0]), number(of), of)
		}
	}
	ascending := []string{"", "6.5", "7.0", "8.9", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_101"}
	for i, of := range ascending[1:] {
		assert.Greater(t, number(of), number(ascending[i]), of)
	}
}

// A text may end anywhere, also within its header: no word is read beyond it, what it has stays, and each directive of the header that
// is whole is read and cut.
func TestTextsThatEndEarly(t *testing.T) {
	t.Parallel()
	const first, version, target, size = ".version 7.0\n.target sm_70\nA", ".version 7.1", "\n.target sm_70, texmode_independent, debug", "\n.address_size 64"
	const text = version + target + size + "\nB"
	for end := range len(text) + 1 {
		assert.NotPanics(t, func() {
			assert.Contains(t, joined([]string{first, text[:end]}), "sm_70\nA\n")
			joined([]string{text[:end], first})
		}, "%q", text[:end])
	}
	for _, c := range []struct {
		text, rest string
		header     header
	}{
		{version, "", header{"7.1", ""}},
		{version + "\n.target sm_70", "\n", header{"7.1", "sm_70"}},
		{version + "\n.target sm_70, debug", "\n", header{"7.1", "sm_70"}},
		{version + target, "\n", header{"7.1", "sm_70"}},
		{version + target + size, "\n\n", header{"7.1", "sm_70"}},
		{text, "\n\n\nB", header{"7.1", "sm_70"}},
	} {
		got, rest := cutHeader(c.text, false)
		assert.Equal(t, c.header, got, "%q", c.text)
		assert.Equal(t, c.rest, rest, "%q", c.text)
	}
}
