package ptx

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const pageName = "../docs/ptx.md"

const pageHead = `# PTX: the supported instructions

This page is written by ` + "`go test ./ptx -update`" + ` from the table that ` + "`ptx.Check`" + ` holds modules against. The package's
comment says how text, tree and table belong together.

A row is the name of an instruction, its operands, and the oldest version of PTX and architecture that have it; a row without
those is older than PTX 6.0 and sm_70, or as old. A row that needs sm_90a is for that architecture alone: no later one has it. ` + "`.x`" + ` is required, ` + "`[.x]`" + ` may be left out, ` + "`<x|y>`" + ` is one of several,
and a name of the first table stands for its members. A module for an older version or architecture is refused: the table does
not say what those lack. So are versions behind 9.0, that of CUDA 13.0.

| operand | meaning |
|---|---|
| T, U | a register or a constant of the first, the second type of the name |
| 2T | the integer of twice the width |
| b32, pred | a register or a constant of that type; b32 is any type of 32 bits |
| = in front | the result |
| + in front | read and written |
| ? behind | may be left out |
| ! in front | a predicate that may be negated |
| \| behind | may have a predicate beside it: ` + "`%r1\\|%p1`" + ` |
| ~ behind | may be a wider register |
| * behind | a vector where the name has .v2 or .v4 |
| & behind | also a special register, or the address of a variable or a function |
| {4:b32}, {n/2:f32} | a vector of four registers, of half as many as the shape has columns |
| {}T | a vector of registers that are as wide as T together |
| [] | memory in the space that the name has |
| [shared] | memory in that space |
| int(0..255), int(4\|8\|16) | a constant |
| label, call | a label; a function with results in front and arguments behind |

`

// page is docs/ptx.md.
func page() string {
	var b strings.Builder
	b.WriteString(pageHead + "## Sets\n\n```\n")
	for _, name := range slices.Sorted(maps.Keys(namedSets)) {
		fmt.Fprintf(&b, "%-10s %s\n", name, namedSets[name])
	}
	b.WriteString("```\n")
	for _, group := range []struct {
		title string
		rows  []row
	}{
		{"Arithmetic of integers", arithmeticRows},
		{"Arithmetic of floating-point numbers", floatRows},
		{"Logic, comparisons, choices", logicRows},
		{"Copies between registers, conversions", conversionRows},
		{"Memory", memoryRows},
		{"Atomic operations, order of memory", atomicRows},
		{"Barriers, warps, matrices", warpRows},
		{"Matrices of warpgroups", warpgroupRows},
		{"Control", controlRows},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n```\n", group.title)
		for _, r := range group.rows {
			line := fmt.Sprintf("%-68s %-37s  %s", r.op.String()+r.form, r.operands, r.needs) // two spaces end the operands
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
		b.WriteString("```\n")
	}
	b.WriteString("\n## Modifiers that need more\n\n```\n")
	for _, m := range slices.Sorted(maps.Keys(modifierNeeds)) {
		fmt.Fprintf(&b, ".%-20v %v sm_%d\n", m, modifierNeeds[m].version, modifierNeeds[m].sm)
	}
	b.WriteString("```\n\n## Special registers\n\n```\n")
	for s := NoSpecial + 1; s < specialCount; s++ {
		fmt.Fprintf(&b, "%-20v %v\n", s, s.Type())
	}
	b.WriteString("```\n")
	return b.String()
}

// The page lists the table.
func TestThePageListsTheTable(t *testing.T) {
	if flag.Lookup("update").Value.String() == "true" {
		require.NoError(t, os.WriteFile(pageName, []byte(page()), 0o600))
	}
	text, err := os.ReadFile(pageName)
	require.NoError(t, err)
	assert.Equal(t, page(), string(text), "go test ./ptx -update writes it anew")
}
