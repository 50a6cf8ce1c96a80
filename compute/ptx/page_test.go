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

const pageName = "../../docs/ptx.md"

const pageHead = `# PTX: the supported instructions

` + "`go test ./compute/ptx -update`" + ` writes this page from the table that ` + "`ptx.Check`" + ` uses. The package comment describes text, tree and table.

A row has the name of an instruction, its operands, and the oldest version of PTX and architecture that have it. A row without these is as old as
PTX 6.0 and sm_70, or older. A row with sm_90a is only for that architecture, not for later ones; one with gone is not
in PTX 6.4 and later for sm_70 and later. ` + "`.x`" + ` is required, ` + "`[.x]`" + ` is optional, ` + "`<x|y>`" + ` is
one of several, and a name of the first table stands for its members.

Modifiers and types may have any order, as in the driver, except those right after the opcode: ` + "`.lo .hi .wide`" + ` of products, ` + "`.l .r`" + ` of shf, ` + "`.to`" + ` of
cvta. Types keep their own order, and so do state spaces and layouts.

A module for a version older than 2.0 or later than 9.0 (CUDA 13.0), or for an architecture older than sm_20, is refused. A module for an
architecture older than sm_70 is read as one for sm_70, with a remark: the table has the needs of its instructions, and sm_52 lacks instructions
that need sm_53. The threads of a warp run in lockstep there.
` + "`compute/ptx/testdata/neighbours.txt`" + ` has texts on both sides of limits, with the answers of NVIDIA's assembler.

| operand | meaning |
|---|---|
| T, U | a register or a constant of the first, the second type of the name |
| 2T | the integer of twice the width |
| b32, pred | a register or a constant of that type; b32 is any type of 32 bits |
| = in front | the result; =_ is one that may be dropped: ` + "`_`" + ` |
| + in front | read and written |
| ? after | may be left out |
| ! in front | a predicate that may be negated |
| \| after | may be followed by a predicate: ` + "`%r1\\|%p1`" + ` |
| ~ after | may be a wider register: of any type for bits, of an integer or bits for an integer, of bits for a floating-point number |
| * after | a vector where the name has .v2 or .v4, else one register with or without braces |
| & after | also a special register, or the address of a variable or a function |
| {4:b32}, {n/2:f32} | a vector of four registers, of half as many as the shape has columns |
| {}T | a vector of registers that are as wide as T together |
| [] | memory in the space that the name has |
| [shared] | memory in that space |
| [tensor] | a tensor map at a generic address, and as many coordinates as the name says: ` + "`[%rd1, {%r1, %r2}]`" + ` |
| int(0..255), int(4\|8\|16) | a constant |
| b32(0..15), b32(0..96/32), b32(0..@3), f32(fraction) | a register, or a constant within limits; a multiple of 32; at most operand 3; above 0 to 1 |
| label, call | a label; a function with results in front and arguments after |

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
		{"Barriers in shared memory", mbarrierRows},
		{"Matrices in fragments", wmmaRows},
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
	assert.Equal(t, page(), string(text), "go test ./compute/ptx -update writes it again")
}
