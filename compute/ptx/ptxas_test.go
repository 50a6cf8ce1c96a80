package ptx

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// instructionRows is the whole table.
func instructionRows() (all []row) {
	for _, rows := range rowGroups() {
		all = append(all, rows...)
	}
	return all
}

// samples are instructions of a row: each choice of each slot once, with the first choices elsewhere, and each slot left out.
func (r row) samples(t *testing.T) (all []*Instruction) {
	t.Helper()
	f, err := r.compile()
	require.NoError(t, err)
	seen := map[string]bool{}
	for n := range f.slots {
		for choice := range f.slots[n].choices {
			for _, full := range []bool{false, true} {
				i := &Instruction{Op: r.op}
				for at, s := range f.slots {
					p := s.choices[0]
					switch {
					case at == n:
						p = s.choices[choice]
					case s.optional && !full:
						continue
					}
					if p.mod != NoModifier {
						i.Mods = append(i.Mods, p.mod)
					} else {
						i.Types = append(i.Types, p.typ)
					}
				}
				if !seen[i.name()] && i.accessBytes() <= maxVectorBytes {
					seen[i.name()] = true
					all = append(all, i)
				}
			}
		}
	}
	if len(f.slots) == 0 {
		all = append(all, &Instruction{Op: r.op})
	}
	return all
}

// isSampled reports whether a kernel of one instruction can have the sample: parameters, functions and registers of 8 bits are
// missing there.
func isSampled(r row, i *Instruction) bool {
	isPack := strings.HasSuffix(r.operands, "{}T") || strings.HasPrefix(r.operands, "={}T")
	memory := strings.Contains(r.operands, "[")
	return r.op != OpCall && (!memory || i.Space() != Param) && (!isPack || i.Type(0) != B16)
}

// sampled is the text of kernels with one instruction each, and what these need.
type sampled struct {
	text  strings.Builder
	needs needs
}

// add adds a kernel with one sample of a row in it, whose operands are new registers or constants.
func (s *sampled) add(t *testing.T, r row, i *Instruction, name string) {
	t.Helper()
	f, err := r.compile()
	require.NoError(t, err)
	s.needs = s.needs.and(f.needsOf(i))
	var declared, operands []string
	register := func(typ Type) string {
		name := fmt.Sprintf("%%x%d", len(declared))
		declared = append(declared, fmt.Sprintf(".reg .%v %s;", typ, name))
		return name
	}
	for _, o := range f.operands {
		operands = append(operands, sampleOperand(i, o, register))
	}
	text := i.name() + " " + strings.Join(operands, ", ") + ";"
	if r.op == OpBra {
		text += "\nL:"
	}
	fmt.Fprintf(&s.text, ".visible .entry %s()\n{\n.shared .align 16 .b8 array[64];\n.reg .b64 %%address;\n%s\n%s\nret;\n}\n", name, strings.Join(declared, "\n"), text)
}

// module returns the text with the oldest version and architecture that have the instructions, from these on.
func (s *sampled) module(least needs) (text string, m *Module, err error) {
	n := s.needs.and(least)
	n.version = n.and(needs{version: targetVersion(Target{SM: n.sm, Variant: n.variant})}).version
	text = fmt.Sprintf(".version %v\n.target %v\n.address_size 64\n%s", n.version, n.target(), s.text.String())
	if m, err = Parse(text); err == nil {
		err = Check(m)
	}
	return text, m, err
}

// sampleOperand returns the text of an operand; register declares a register.
func sampleOperand(i *Instruction, s operandSpec, register func(Type) string) string {
	typ := s.typeIn(i)
	count := s.elements(i)
	switch {
	case s.kind == specLabel:
		return "L"
	case s.kind == specInteger && s.members == nil:
		return fmt.Sprint(s.low)
	case s.kind == specInteger:
		return fmt.Sprint(s.members[len(s.members)-1])
	case s.kind == specMemory:
		if space := i.Space(); s.space == Shared || s.anySpace && space == Shared {
			return "[array]"
		}
		return "[%address]"
	case s.kind == specPack:
		half := map[int]Type{16: B8, 32: B16, 64: B32}[typ.Bits()]
		return "{" + register(half) + ", " + register(half) + "}"
	case count == 0:
		return register(registerType(typ))
	}
	var all []string
	for range count {
		all = append(all, register(registerType(typ)))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// registerType returns the type of a register for values of a type.
func registerType(t Type) Type {
	switch {
	case t == Pred || t == F32 || t == F64:
		return t
	case t.Bits() <= 16:
		return B16
	case t.Bits() <= 32:
		return B32
	}
	return B64
}

// Every row of the table is read, accepts its own samples, and no modifier or type is without a row.
func TestTheTableAcceptsItsSamples(t *testing.T) {
	used, types := map[Modifier]bool{}, map[Type]bool{}
	ops := map[Opcode]bool{}
	for _, r := range instructionRows() {
		ops[r.op] = true
		for _, i := range r.samples(t) {
			for _, m := range i.Mods {
				used[m] = true
			}
			for _, typ := range i.Types {
				types[typ] = true
			}
			if !isSampled(r, i) {
				continue
			}
			var s sampled
			s.add(t, r, i, "sample")
			_, _, err := s.module(oldest)
			assert.NoError(t, err, "%v%s", r.op, r.form)
		}
	}
	for op := UnknownOp + 1; op < opcodeCount; op++ {
		assert.True(t, ops[op], "%v", op)
	}
	for m := NoModifier + 1; m < modifierCount; m++ {
		assert.True(t, used[m], "%v", m)
	}
}

// assembler is ptxas, or the test is skipped. It comes with NVIDIA's toolkit and needs no GPU.
func assembler(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("ptxas")
	if err != nil {
		if path, err = exec.LookPath("/usr/local/cuda/bin/ptxas"); err != nil {
			t.Skip("no ptxas to assemble with") //nolint:forbidigo // the assembler is NVIDIA's and cannot be committed
		}
	}
	return path
}

// assemble gives a text to ptxas for an architecture and returns its complaints.
func assemble(t *testing.T, ptxas, text, architecture string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "text.ptx")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.Command(ptxas, "-arch="+architecture, "-o", os.DevNull, file).CombinedOutput() // a test's own files
	if err != nil {
		return string(out)
	}
	return ""
}

// isUnknown reports whether a complaint of the assembler is that it does not know the architecture: newer ones drop old ones.
func isUnknown(complaint string) bool {
	return strings.Contains(complaint, "is not defined for option 'gpu-name'")
}

func TestAnArchitectureIsUnknown(t *testing.T) {
	assert.True(t, isUnknown("ptxas fatal   : Value 'sm_70' is not defined for option 'gpu-name'\n"))
	assert.False(t, isUnknown("ptxas text.ptx, line 4; fatal   : Parsing error near 'sm_70': syntax error\n"))
	assert.False(t, isUnknown(""))
}

// architectures are some that the assembler knows, in ascending order.
func architectures(t *testing.T, ptxas string) (all []int) {
	t.Helper()
	for _, sm := range []int{70, 75, 80, 90, 100} {
		if !isUnknown(assemble(t, ptxas, "", Target{SM: sm}.String())) {
			all = append(all, sm)
		}
	}
	return all
}

// running lists the architectures that run code for the oldest one.
func running(t *testing.T, known []int, oldest int) []int {
	t.Helper()
	all := slices.DeleteFunc(slices.Clone(known), func(sm int) bool { return sm < oldest })
	require.NotEmpty(t, all, "the assembler knows no architecture for sm_%d", oldest)
	return all
}

// NVIDIA's assembler takes the texts of compilers as this package prints them.
func TestPtxasTakesTheTexts(t *testing.T) {
	ptxas := assembler(t)
	known := architectures(t, ptxas)
	names, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	for _, name := range names {
		text, err := os.ReadFile(name) // a test's own files
		require.NoError(t, err)
		m, err := Parse(string(text))
		require.NoError(t, err)
		able := running(t, known, m.Target.SM)
		if m.Target.Variant != "" {
			able = able[:1] // no other architecture has its instructions
		}
		for _, sm := range able {
			complaints := assemble(t, ptxas, m.String(), Target{SM: sm, Variant: m.Target.Variant}.String())
			if strings.Contains(complaints, "Unsupported .version") {
				t.Logf("%s sm_%d: %s", name, sm, complaints) // the assembler is older than the text
				continue
			}
			assert.Empty(t, complaints, "%s sm_%d", name, sm)
		}
	}
}

// NVIDIA's assembler takes each row of the table, for the oldest architecture that it knows and that the row needs.
func TestPtxasTakesTheTable(t *testing.T) {
	ptxas := assembler(t)
	known := architectures(t, ptxas)
	for _, r := range instructionRows() {
		var all sampled
		for n, i := range r.samples(t) {
			if isSampled(r, i) {
				all.add(t, r, i, fmt.Sprintf("k%d", n))
			}
		}
		if all.text.Len() == 0 {
			continue
		}
		least := needs{version: Version{7, 8}, sm: running(t, known, max(all.needs.sm, 75))[0]}
		text, m, err := all.module(least)
		if !assert.NoError(t, err) {
			continue
		}
		complaints := assemble(t, ptxas, text, m.Target.String())
		lines := strings.Split(complaints, "\n")
		source := strings.Split(text, "\n")
		for n, line := range lines {
			if at := regexp.MustCompile(`line (\d+);`).FindStringSubmatch(line); at != nil {
				var number int
				_, _ = fmt.Sscan(at[1], &number)
				lines[n] += "  <- " + strings.TrimSpace(source[number-1])
			}
		}
		assert.Empty(t, complaints, "%v%s:\n%s", r.op, r.form, strings.Join(slices.Compact(lines), "\n"))
	}
}

// The answers of testdata/neighbours.txt come from NVIDIA's assembler.
func TestPtxasAgreesWithTheNeighbours(t *testing.T) {
	ptxas := assembler(t)
	known := map[string]bool{}
	for _, n := range neighboursOf(t) {
		if _, ok := known[n.head]; !ok {
			complaints := assemble(t, ptxas, n.head, n.target)
			known[n.head] = !isUnknown(complaints) && !strings.Contains(complaints, "Unsupported .version")
		}
		if !known[n.head] {
			continue
		}
		complaints := assemble(t, ptxas, n.text, n.target)
		assert.Equal(t, n.verdict != "no", complaints == "", "%s: %s: %s", n.target, n.line, complaints)
	}
}
