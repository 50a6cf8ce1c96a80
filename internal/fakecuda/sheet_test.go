//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is the answer to one question.
type answer struct {
	key    string // the question
	nth    int    // how many questions with this key were before it
	value  string
	reason string // why it is not asked of hardware; "": it is
}

// sheet is the answers to a part of the questions, in order.
type sheet struct {
	name    string
	answers []answer
	reasons *sheet // the sheet of the table, for the reasons; nil in the table and in a new part
}

func (s *sheet) add(key, value string) {
	a := answer{key: key, value: value}
	for _, earlier := range s.answers {
		if earlier.key == key {
			a.nth++
		}
	}
	if s.reasons != nil {
		if known, found := s.reasons.find(key, a.nth); found {
			a.reason = known.reason
		}
	}
	s.answers = append(s.answers, a)
}

// find is the answer to the question with this key that has nth before it.
func (s *sheet) find(key string, nth int) (a answer, found bool) {
	for _, a := range s.answers {
		if a.key == key && a.nth == nth {
			return a, true
		}
	}
	return answer{}, false
}

// differences describes, one a line, the answers of s that differ from want, are missing, or are additional.
func (s *sheet) differences(want *sheet) []string {
	if want == nil {
		want = &sheet{}
	}
	var lines []string
	for _, w := range want.answers {
		switch got, found := s.find(w.key, w.nth); {
		case !found:
			lines = append(lines, fmt.Sprintf("%s: %s: %s in the table, not answered", s.name, w.key, w.value))
		case got.value != w.value:
			lines = append(lines, fmt.Sprintf("%s: %s: %s in the table, answered %s", s.name, w.key, w.value, got.value))
		}
	}
	for _, got := range s.answers {
		if _, found := want.find(got.key, got.nth); !found {
			lines = append(lines, fmt.Sprintf("%s: %s: not in the table, answered %s", s.name, got.key, got.value))
		}
	}
	return lines
}

// tableOf writes sheets as a table: a line "# NAME" before each, "KEY: VALUE" in it, and "* KEY: VALUE # REASON" where
// there is a reason.
func tableOf(sheets []*sheet) string {
	var text strings.Builder
	for _, s := range sheets {
		fmt.Fprintf(&text, "# %s\n", s.name)
		for _, a := range s.answers {
			if a.reason != "" {
				fmt.Fprintf(&text, "* %s: %s # %s\n", a.key, a.value, a.reason)
				continue
			}
			fmt.Fprintf(&text, "%s: %s\n", a.key, a.value)
		}
	}
	return text.String()
}

// readTable is tableOf backwards.
func readTable(t *testing.T, text string) map[string]*sheet {
	t.Helper()
	sheets := map[string]*sheet{}
	var s *sheet
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if name, isName := strings.CutPrefix(line, "# "); isName {
			s = &sheet{name: name}
			sheets[name] = s
			continue
		}
		require.NotNil(t, s, "a line before the first part: %s", line)
		line, starred := strings.CutPrefix(line, "* ")
		reason := ""
		if starred {
			line, reason, _ = strings.Cut(line, " # ")
			require.NotEmpty(t, reason, "a star without a reason: %s", line)
		}
		key, value, found := strings.Cut(line, ": ")
		require.True(t, found, "no answer: %s", line)
		s.add(key, value)
		s.answers[len(s.answers)-1].reason = reason
	}
	return sheets
}

func TestTablesAreReadAsWritten(t *testing.T) {
	const text = "# one\na, cuA: X\na, cuA: Y\n* b, cuB: Z # it crashes\n# two\na, cuA: 1: 2\n"
	sheets := readTable(t, text)
	assert.Equal(t, text, tableOf([]*sheet{sheets["one"], sheets["two"]}))

	got := &sheet{name: "one", reasons: sheets["one"]}
	got.add("a, cuA", "X")
	got.add("b, cuB", "crash")
	got.add("c, cuC", "X")
	assert.Equal(t, []string{
		"one: a, cuA: Y in the table, not answered",
		"one: b, cuB: Z in the table, answered crash",
		"one: c, cuC: not in the table, answered X",
	}, got.differences(sheets["one"]))
	assert.Equal(t, "# one\na, cuA: X\n* b, cuB: crash # it crashes\nc, cuC: X\n", tableOf([]*sheet{got}))
}
