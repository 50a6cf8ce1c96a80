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

// sampleKernel is a kernel with one sample of a row in it, whose operands are new registers or constants.
func sampleKernel(t *testing.T, r row, i *Instruction, name string) *Kernel {
	t.Helper()
	f, err := r.compile()
	require.NoError(t, err)
	k := NewKernel(name)
	address, shared := k.Reg(B64), k.Shared("array", B8, 64)
	var operands []Operand
	for _, s := range f.operands {
		operands = append(operands, k.sampleOperand(i, s, address, shared))
	}
	k.Do(i.name(), operands...)
	if r.op == OpBra {
		k.Place(operands[0])
	}
	return k
}

func (k *Kernel) sampleOperand(i *Instruction, s operandSpec, address Operand, shared *Variable) Operand {
	typ := s.typeIn(i)
	count := s.elements(i)
	switch {
	case s.kind == specLabel:
		return k.NewLabel()
	case s.kind == specInteger && s.members == nil:
		return Integer(s.low)
	case s.kind == specInteger:
		return Integer(s.members[len(s.members)-1])
	case s.kind == specMemory:
		if s.tensor {
			o, place := Memory(address.Register, 0), Vector()
			for range i.Rank() {
				place.Elements = append(place.Elements, k.Reg(S32))
			}
			o.Elements = []Operand{place}
			return o
		}
		if space := i.Space(); s.space == Shared || s.anySpace && space == Shared {
			return MemoryOf(shared, 0)
		}
		return Memory(address.Register, 0)
	case s.kind == specPack:
		half := map[int]Type{16: B8, 32: B16, 64: B32}[typ.Bits()]
		return Vector(k.Reg(half), k.Reg(half))
	case count == 0:
		return k.Reg(typ)
	}
	v := Operand{Kind: OperandVector}
	for range count {
		v.Elements = append(v.Elements, k.Reg(typ))
	}
	return v
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
			_, err := sampleKernel(t, r, i, "sample").Build()
			if strings.HasSuffix(r.needs, " gone") {
				assert.ErrorContains(t, err, "only for architectures before sm_70", "%v%s", r.op, r.form)
				continue
			}
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

// NVIDIA's assembler takes the golden texts, and compilers' texts as this package prints them.
func TestPtxasTakesTheTexts(t *testing.T) {
	ptxas := assembler(t)
	known := architectures(t, ptxas)
	for _, pattern := range []string{"testdata/*.ptx", "testdata/built/*.ptx"} {
		names, err := filepath.Glob(pattern)
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
}

// NVIDIA's assembler takes each row of the table, for the oldest architecture that it knows and that the row needs.
func TestPtxasTakesTheTable(t *testing.T) {
	ptxas := assembler(t)
	known := architectures(t, ptxas)
	for _, r := range instructionRows() {
		var kernels []*Kernel
		for n, i := range r.samples(t) {
			if isSampled(r, i) && !strings.HasSuffix(r.needs, " gone") {
				kernels = append(kernels, sampleKernel(t, r, i, fmt.Sprintf("k%d", n)))
			}
		}
		if len(kernels) == 0 {
			continue
		}
		m, err := Build(kernels...)
		if !assert.NoError(t, err) {
			continue
		}
		if m.Target.SM = running(t, known, max(m.Target.SM, 75))[0]; m.Version.Before(Version{7, 8}) {
			m.Version = Version{7, 8}
		}
		complaints := assemble(t, ptxas, m.String(), m.Target.String())
		lines := strings.Split(complaints, "\n")
		text := strings.Split(m.String(), "\n")
		for n, line := range lines {
			if at := regexp.MustCompile(`line (\d+);`).FindStringSubmatch(line); at != nil {
				var number int
				_, _ = fmt.Sscan(at[1], &number)
				lines[n] += "  <- " + strings.TrimSpace(text[number-1])
			}
		}
		assert.Empty(t, complaints, "%v%s:\n%s", r.op, r.form, strings.Join(slices.Compact(lines), "\n"))
	}
}

// The answers of testdata/neighbours.txt come from NVIDIA's assembler, release 12.4.
func TestPtxasAgreesWithTheNeighbours(t *testing.T) {
	ptxas := assembler(t)
	version, err := exec.CommandContext(t.Context(), ptxas, "--version").Output()
	require.NoError(t, err)
	other := !strings.Contains(string(version), "release 12.4")
	known := map[string]bool{}
	for i, n := range neighboursOf(t) {
		if testing.Short() && i%16 != 0 { // each takes 0.1 s
			continue
		}
		if _, ok := known[n.head]; !ok {
			complaints := assemble(t, ptxas, n.head, n.target)
			known[n.head] = !isUnknown(complaints) && !strings.Contains(complaints, "Unsupported .version")
		}
		if !known[n.head] {
			continue
		}
		complaints := assemble(t, ptxas, n.text, n.target)
		if other && n.verdict != "no" && strings.Contains(complaints, "uses too much shared data") {
			t.Logf("%s: %s: %s", n.target, n.line, complaints) // versions of the assembler differ in how much a kernel may have
			continue
		}
		assert.Equal(t, n.verdict != "no", complaints == "", "%s: %s: %s", n.target, n.line, complaints)
	}
}
