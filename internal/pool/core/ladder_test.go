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
