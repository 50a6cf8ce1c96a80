package core

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheLadderIsAsDocumented holds names, order, preconditions and next rungs of the table in docs/architecture.md against the
// ladder.
func TestTheLadderIsAsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n## The ladder\n.*?\n## `).FindString(string(page))
	line := regexp.MustCompile(`(?m)^\| ([a-z ]+) \| ([^|]+) \| [^|]+ \| ([^|]+) \|$`)
	documented := line.FindAllStringSubmatch(section, -1)[1:] // without the head
	rows := New(pageBytes, 1, Settings{}).scheduler.ladder.rows
	require.Len(t, documented, len(rows))
	for i, s := range rows {
		then := string(s.then)
		switch {
		case then != "":
		case i+1 < len(rows):
			then = string(rows[i+1].name)
		default:
			then = "–"
		}
		if s.or != "" {
			then += ", or " + string(s.or)
		}
		const differs = "rung %q: the table in docs/architecture.md differs from internal/pool/core.(*ladder).table"
		assert.Equal(t, string(s.name), documented[i][1], differs, s.name)
		assert.Equal(t, s.when == nil, documented[i][2] == "–", differs, s.name)
		assert.Equal(t, then, documented[i][3], differs, s.name)
	}
}

// TestTheLadderNamesItsRungs holds the names in the table against each other: a rung that follows has a row, no two rows have
// one name, and the last row always applies.
func TestTheLadderNamesItsRungs(t *testing.T) {
	t.Parallel()
	rows := New(pageBytes, 1, Settings{}).scheduler.ladder.rows
	has := map[rung]bool{"": true}
	for _, s := range rows {
		assert.False(t, has[s.name], s.name)
		has[s.name] = true
	}
	for _, s := range rows {
		assert.True(t, has[s.then] && has[s.or], s.name)
	}
	for _, event := range []rung{rungOffer, rungLook, rungJoin, rungAskAll, rungDeny} { // see ladder
		assert.True(t, has[event], event)
	}
	assert.Nil(t, rows[len(rows)-1].when)
}

// Each verdict sets the next rung: the row below or the one in then, the same, the one in or. A row whose precondition fails is
// skipped, and is not tried again where the row after it repeats.
func TestVerdictsSetTheNextRung(t *testing.T) {
	t.Parallel()
	applies := false
	verdicts := map[rung]verdict{}
	var tried []rung
	l := &ladder{}
	name := func(at rung) func(*request) verdict {
		return func(*request) verdict {
			tried = append(tried, at)
			return verdicts[at]
		}
	}
	l.rows = []row{
		{name: "a", when: func(*request) bool { return applies }, try: name("a")},
		{name: "b", try: name("b"), or: "d"},
		{name: "c", try: name("c"), then: "e"},
		{name: "d", try: name("d")},
		{name: "e", try: name("e")},
	}
	for title, c := range map[string]struct {
		from, tried rung
		verdict     verdict
		next        rung
		leaves      bool
	}{
		"onward to the row below":    {"d", "d", onward, "e", false},
		"onward to another":          {"c", "c", onward, "e", false},
		"onward from a skipped row":  {"a", "b", onward, "c", false},
		"again":                      {"c", "c", again, "c", false},
		"again after a skipped row":  {"a", "b", again, "b", false},
		"branch":                     {"b", "b", branch, "d", false},
		"branch after a skipped row": {"a", "b", branch, "d", false},
		"leave":                      {"e", "e", leave, "e", true},
	} {
		verdicts, tried, applies = map[rung]verdict{c.tried: c.verdict}, nil, false
		r := &request{ascent: ascent{rung: c.from}}
		assert.Equal(t, c.leaves, l.climb(r), title)
		assert.Equal(t, []rung{c.tried}, tried, title)
		assert.Equal(t, c.next, r.rung, title)
		if applies = true; c.verdict == again {
			l.climb(r)
			assert.Equal(t, []rung{c.tried, c.tried}, tried, title)
		}
		r.done, r.rung = true, "d"
		assert.True(t, l.climb(r), "it was answered: %s", title)
	}
}
