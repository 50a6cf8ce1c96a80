package ptx

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// neighbour is a text of testdata/neighbours.txt with its answer.
type neighbour struct {
	verdict string // "yes": taken; "no": refused; "strict": taken by the driver's compiler alone; "lacks": taken by it, and not known here
	line    string
	head    string // version and target
	text    string // the whole module
	target  string
}

// bodyOf is a module with statements in a kernel, which has registers of each kind.
func bodyOf(head, statements string) string {
	return head + `.global .align 4 .b8 table[64];
.func fn() { ret; }
.visible .entry k(.param .u64 a, .param .u32 n)
{
.reg .pred %p<4>; .reg .b16 %h<5>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %d<5>;
.shared .align 16 .b8 tile[256];
` + statements + `
ret;
}
`
}

// neighboursOf are texts that lie close to each other, with the answers of ptxas 12.4. A section begins with a version,
// a target, and whether its lines are modules or statements of a body.
func neighboursOf(t *testing.T) (all []neighbour) {
	t.Helper()
	text, err := os.ReadFile("testdata/neighbours.txt")
	require.NoError(t, err)
	var head, target, kind string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		switch section := strings.Fields(strings.Trim(line, "[]")); {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			head, target, kind = fmt.Sprintf(".version %s\n.target %s\n.address_size 64\n", section[0], section[1]), section[1], section[2]
		default:
			verdict, line, _ := strings.Cut(line, " ")
			n := neighbour{verdict: verdict, line: strings.TrimSpace(line), head: head, target: target}
			if n.text = head + n.line + "\n"; kind == "body" {
				n.text = bodyOf(head, n.line)
			}
			all = append(all, n)
		}
	}
	return all
}

// verdict is the answer of Parse and Check to a text.
func verdict(text string) string {
	m, err := Parse(text)
	if err == nil {
		err = Check(m)
	}
	if err == nil {
		return "yes"
	}
	if m == nil || !lackingAlone(err) {
		return "no"
	}
	return "lacks"
}

// lackingAlone reports whether all findings are about things that this package does not know.
func lackingAlone(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return false
	}
	for _, e := range joined.Unwrap() {
		if finding, ok := errors.AsType[*CheckError](e); !ok || !finding.Lacking {
			return false
		}
	}
	return true
}

// Check takes the texts that the driver's compiler takes, and refuses those that it refuses, on both sides of each limit.
func TestNeighbours(t *testing.T) {
	for _, n := range neighboursOf(t) {
		want := []string{n.verdict}
		switch n.verdict {
		case "no":
			want = []string{"no", "lacks"} // an instruction in another shape is one that the table lacks
		case "strict":
			want = []string{"no"}
		}
		assert.Contains(t, want, verdict(n.text), "%s: %s", n.target, n.line)
	}
}
