package interp_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
)

// tableRow is a row of docs/ptx.md, which a test of package ptx holds to the table of instructions.
type tableRow struct {
	group, name, operands string
	gone                  bool // from text for sm_70
}

// op returns the name up to its first modifier or type.
func (r tableRow) op() string {
	if end := strings.IndexAny(r.name, ".["); end >= 0 {
		return r.name[:end]
	}
	return r.name
}

// table reads docs/ptx.md.
func table(tb testing.TB) (rows []tableRow) {
	tb.Helper()
	page, err := os.ReadFile("../../../docs/ptx.md")
	require.NoError(tb, err)
	sets := map[string]string{}
	group, inside := "", false
	for line := range strings.Lines(string(page)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "## "):
			group = line[3:]
		case strings.HasPrefix(line, "```"):
			inside = !inside
		case inside && group == "Sets":
			name, members, _ := strings.Cut(line, " ")
			sets[name] = strings.TrimSpace(members)
		case inside && group != "Modifiers that need more" && group != "Special registers":
			name, rest, _ := strings.Cut(line, " ")
			fields := strings.Split(strings.TrimSpace(rest), "  ")
			if strings.Contains(fields[0], " sm_") {
				fields[0] = "" // the row's needs: it has no operands
			}
			rows = append(rows, tableRow{group, expandSets(name, sets), strings.TrimSpace(fields[0]), strings.HasSuffix(line, " gone")})
		}
	}
	require.Greater(tb, len(rows), 150)
	return rows
}

// expandSets replaces names of sets between angle brackets.
func expandSets(name string, sets map[string]string) string {
	var b strings.Builder
	for name != "" {
		start := strings.IndexByte(name, '<')
		if start < 0 {
			b.WriteString(name)
			break
		}
		end := strings.IndexByte(name, '>')
		b.WriteString(name[:start+1])
		for n, choice := range strings.Split(name[start+1:end], "|") {
			if n > 0 {
				b.WriteByte('|')
			}
			if members, ok := sets[choice]; ok {
				choice = members
			}
			b.WriteString(choice)
		}
		b.WriteByte('>')
		name = name[end+1:]
	}
	return b.String()
}

// names are the instructions of a row: all of them, or so many by chance that have each choice.
func (r tableRow) names(rnd *rand.Rand, most int) []string {
	names := []string{""}
	for rest := r.name; rest != ""; {
		var choices []string
		switch start := strings.IndexAny(rest, "[<"); {
		case start != 0:
			if start < 0 {
				start = len(rest)
			}
			choices, rest = []string{rest[:start]}, rest[start:]
		case rest[0] == '[':
			end := strings.IndexByte(rest, ']')
			choices = append([]string{""}, alternatives(rest[1:end])...)
			rest = rest[end+1:]
		default:
			end := strings.IndexByte(rest, '>')
			choices, rest = alternatives(rest[:end+1]), rest[end+1:]
		}
		var longer []string
		if len(names)*len(choices) > most {
			rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
			for n := range max(most, len(names), len(choices)) {
				longer = append(longer, names[n%len(names)]+choices[n%len(choices)])
			}
		} else {
			for _, name := range names {
				for _, choice := range choices {
					longer = append(longer, name+choice)
				}
			}
		}
		names = longer
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// alternatives of ".<a|b>" are ".a" and ".b".
func alternatives(text string) (all []string) {
	start, end := strings.IndexByte(text, '<'), strings.IndexByte(text, '>')
	if start < 0 {
		return []string{text}
	}
	for choice := range strings.SplitSeq(text[start+1:end], "|") {
		all = append(all, text[:start]+choice+text[end+1:])
	}
	return all
}

// bits are the widths of types by name.
func bits(typ string) int {
	switch typ {
	case "pred":
		return 1
	case "f16x2", "bf16x2", "tf32":
		return 32
	case "bf16":
		return 16
	}
	n := 0
	if _, err := fmt.Sscanf(typ[1:], "%d", &n); err != nil {
		return 0
	}
	return n
}

// typesOf are the types of a name.
func typesOf(name string) (types []string) {
	parts := strings.Split(name, ".")
	for _, part := range parts[1:] {
		if isType(part) {
			types = append(types, part)
		}
	}
	return types
}

func isType(part string) bool {
	switch part {
	case "pred", "f16x2", "bf16x2", "tf32", "bf16", "f16", "f32", "f64":
		return true
	}
	return len(part) >= 2 && strings.Contains("bus", part[:1]) && part[1] >= '1' && part[1] <= '9' && bits(part) > 0
}

// line is an instruction with the operands of a row, and the names of its registers: operands of registers of fitting types.
func (r tableRow) line(name string) string {
	types := typesOf(name)
	var operands []string
	for n, word := range strings.Split(r.operands, ", ") {
		if word == "" || strings.HasSuffix(word, "?") {
			continue
		}
		operands = append(operands, operand(n, word, name, types))
	}
	return name + " " + strings.Join(operands, ", ") + ";"
}

func operand(n int, word, name string, types []string) string {
	word, result := strings.CutPrefix(word, "=")
	word = strings.TrimLeft(word, "_!")
	if typ, _, limited := strings.Cut(word, "("); limited && typ != "int" {
		word = typ
	}
	paired := strings.HasSuffix(word, "|")
	vector := strings.HasSuffix(word, "*") && (strings.Contains(name, ".v2") || strings.Contains(name, ".v4"))
	word = strings.TrimRight(word, "|*~&")
	switch {
	case word == "label":
		return "end"
	case word == "call":
		return "(result), callee, (argument)"
	case strings.HasPrefix(word, "["):
		return "[" + base(word, name) + "]"
	case strings.HasPrefix(word, "int("):
		return map[string]string{"int(4|8|16)": "4", "int(16)": "16"}[word] + strings.Repeat("0", btoi(!strings.Contains(word, "|") && word != "int(16)"))
	case strings.HasPrefix(word, "{}"):
		half := bits(types[0]) / 2
		return fmt.Sprintf("{%%b%d_%d, %%b%d_%d}", half, n, half, n+4)
	case strings.HasPrefix(word, "{"):
		count := int(word[1] - '0')
		return group(count, 32, min(n*4, 16-count))
	}
	width := 0
	switch word {
	case "T", "U", "V", "W":
		width = bits(types[strings.Index("TUVW", word)])
	case "2T":
		width = 2 * bits(types[0])
	default:
		width = bits(word)
	}
	if vector {
		return group(2+2*btoi(strings.Contains(name, ".v4")), max(width, 16), n*4)
	}
	if width == 1 {
		return fmt.Sprintf("%%p%d", n)
	}
	one := fmt.Sprintf("%%b%d_%d", max(width, 16), n)
	if paired && result {
		return one + "|%p7"
	}
	return one
}

func btoi(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func group(count, width, first int) string {
	var names []string
	for k := range count {
		names = append(names, fmt.Sprintf("%%b%d_%d", width, first+k))
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// base is a register with an address in the space of an instruction.
func base(word, name string) string {
	switch {
	case (strings.HasPrefix(name, "ldmatrix") || strings.Contains(name, "mbarrier")) && !strings.Contains(name, ".shared"):
		return "%generic"
	case word == "[shared]" || word == "[]" && strings.Contains(name, ".shared"):
		return "%shared"
	case word == "[global]" || strings.Contains(name, ".global"):
		return "%global"
	case strings.Contains(name, ".local"):
		return "%local"
	case strings.Contains(name, ".const"):
		return "%const"
	case strings.Contains(name, ".param"):
		return "%param"
	}
	return "%global"
}

// declarations are registers of all widths, the memory of all spaces, and values in all of them.
func declarations() string {
	var b strings.Builder
	b.WriteString(".reg .pred %p<8>; .reg .b16 %b16_<16>; .reg .b32 %b32_<16>, %shared32; .reg .b64 %generic; .reg .b64 %b64_<16>, %shared, %global, %local, %const, %param, %lane;\n")
	b.WriteString(".reg .b8 %b8_<16>;\n")
	b.WriteString(".shared .align 16 .b8 s[8192]; .local .align 16 .b8 l[64];\n")
	b.WriteString(".param .align 16 .b8 big[32]; .param .b32 argument; .param .b32 result;\n")
	b.WriteString("mov.u32 %b32_0, %tid.x; cvt.u64.u32 %lane, %b32_0; shl.b64 %lane, %lane, 5;\n")
	b.WriteString("ld.param.u64 %global, [in]; add.u64 %global, %global, %lane;\n")
	b.WriteString("mov.u64 %shared, s; add.u64 %shared, %shared, %lane; cvta.shared.u64 %generic, %shared; mov.u64 %local, l; mov.u64 %const, c; mov.u64 %param, 0;\n")
	for n := range 4 {
		fmt.Fprintf(&b, "st.shared.u64 [%%shared+%d], %%lane; st.local.u64 [%%local+%d], %%lane;\n", 8*n, 8*n)
	}
	for n := range 16 {
		fmt.Fprintf(&b, "mov.b16 %%b16_%d, %d; mov.b32 %%b32_%d, %d; mov.b64 %%b64_%d, %d;\n", n, n+1, n, n+1, n, n+1)
	}
	for n := range 16 {
		fmt.Fprintf(&b, "ld.shared.b8 %%b8_%d, [%%shared+%d];\n", n, n)
	}
	for n := range 8 {
		fmt.Fprintf(&b, "setp.eq.u32 %%p%d, 1, %d;\n", n, n%2)
	}
	b.WriteString("st.param.b32 [argument], 1;\n")
	return b.String()
}

// shorter returns how many of count random cases the tests run: a fourth in the short form.
func shorter(count int) int {
	if testing.Short() {
		return count / 4
	}
	return count
}

// Every instruction of the table is executed: at least one of each choice of each row.
func TestEveryRowRuns(t *testing.T) {
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	executed := map[string]bool{}
	for _, row := range table(t) {
		for _, name := range row.names(rnd, shorter(60)) {
			if strings.HasPrefix(name, "wgmma") || strings.HasPrefix(name, "setmaxnreg") {
				executed[row.name] = runsInWarpgroup(t, row, name) || executed[row.name]
				continue
			}
			line := row.line(name)
			switch {
			case strings.HasPrefix(name, "trap"), strings.HasPrefix(name, "brkpt"):
				continue // TestFaults has them
			case strings.HasPrefix(name, "cp.async.bulk.tensor"):
				executed[row.name] = true // TestBulkCopiesOfTensors has each rank
				continue
			case strings.HasPrefix(name, "ld") && strings.Contains(name, ".v4") && strings.Contains(name, "64"),
				strings.HasPrefix(name, "st") && strings.Contains(name, ".v4") && strings.Contains(name, "64"):
				continue // longer than a vector may be
			}
			if strings.Contains(name, ".sync") && !strings.HasPrefix(name, "bar.") && !strings.HasPrefix(name, "barrier") && !strings.HasPrefix(name, "wmma") {
				line = withMask(line)
			}
			if strings.HasPrefix(name, "bar") {
				line = strings.NewReplacer("%b32_1", "64", "%b32_2", "64").Replace(line)
				line = strings.Replace(line, "64", "1", 1)
				if strings.Contains(name, ".arrive") {
					line = name + " 1, 64;"
				}
				if strings.HasPrefix(name, "bar.warp") {
					line = name + " 0xffffffff;"
				}
				if strings.Contains(name, ".red") {
					line = barRed(row, name)
				}
			}
			threads := uint32(64)
			if strings.Contains(name, "mbarrier") {
				line = "mbarrier.init.shared.b64 [%shared], 100;\n" + line
			}
			if strings.HasPrefix(name, "wmma") { // a whole warp, and one matrix
				threads = 32
				line = "bar.sync 0; ld.param.u64 %global, [in]; mov.u64 %shared, s;\n" + line
			}
			if strings.HasPrefix(name, "st.") && strings.Contains(name, ".param") {
				line = strings.Replace(line, "%param", "big", 1)
			}
			target := ".version 8.6\n.target sm_100a"
			if row.gone {
				target = ".version 6.0\n.target sm_60"
			}
			text := target + "\n.address_size 64\n.const .align 16 .b8 c[64];\n" +
				".func (.param .b32 r) callee(.param .b32 a) { st.param.b32 [r], 1; ret; }\n" +
				".visible .entry k(.param .u64 in, .param .u64 pad) {\n" + declarations() + line + "\nend: ret; }\n"
			m, err := ptx.Parse(text)
			require.NoError(t, err, line)
			k, err := interp.Compile(m, "k")
			if !assert.NoError(t, err, line) {
				continue
			}
			err = k.Run(interp.Launch{
				Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: threads, Y: 1, Z: 1},
				Params: params(uint64(0x10000), uint64(0)), Memory: interp.Bytes{0x10000: make([]byte, 4096)},
			})
			if assert.NoError(t, err, line) {
				executed[row.name] = true
			}
		}
	}
	for _, row := range table(t) {
		if !strings.HasPrefix(row.name, "trap") && !strings.HasPrefix(row.name, "brkpt") {
			assert.True(t, executed[row.name], row.name)
		}
	}
}

// runsInWarpgroup executes an instruction of a warpgroup: on that architecture alone, with four warps, after the fences
// that it needs.
func runsInWarpgroup(t *testing.T, row tableRow, name string) bool {
	t.Helper()
	columns := 0
	_, _ = fmt.Sscanf(name, "wgmma.mma_async.sync.aligned.m64n%dk", &columns)
	var operands []string
	for word := range strings.SplitSeq(row.operands, ", ") {
		if word == "" {
			continue
		}
		operand := map[string]string{
			"+{n/2:f32}": strings.ReplaceAll(group(columns/2, 32, 0), "%b32", "%d"), "{4:b32}": group(4, 32, 0), "{4:u32}": group(4, 32, 0), "u64": "%b64_0", "!pred": "%p0",
			"int(-1|1)": "-1", "int(0|1)": "1", "int(0..2147483647)": "0",
		}[word]
		if strings.HasPrefix(name, "setmaxnreg") {
			operand = "24"
		}
		require.NotEmpty(t, operand, word)
		operands = append(operands, operand)
	}
	line := strings.TrimSpace(name + " " + strings.Join(operands, ", "))
	text := ".version 8.0\n.target sm_90a\n.address_size 64\n.const .align 16 .b8 c[64];\n.visible .entry k(.param .u64 in, .param .u64 pad) {\n.reg .f32 %d_<128>;\n" +
		declarations() + "bar.sync 0; mov.b64 %b64_0, 0; setp.ne.b32 %p0, 0, 0; mov.u64 %shared, s; mul.lo.u64 %lane, %lane, 2; add.u64 %shared, %shared, %lane;\n"
	var stores strings.Builder
	for n := range 8 {
		fmt.Fprintf(&stores, "st.shared.u64 [%%shared+%d], %%lane;\n", 8*n)
	}
	text += stores.String() + "fence.proxy.async; bar.sync 0; wgmma.fence.sync.aligned;\n" + line + ";\nret; }\n"
	m, err := ptx.Parse(text)
	require.NoError(t, err, line)
	k, err := interp.Compile(m, "k")
	if !assert.NoError(t, err, line) {
		return false
	}
	err = k.Run(interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 128, Y: 1, Z: 1},
		Params: params(uint64(0x10000), uint64(0)), Memory: interp.Bytes{0x10000: make([]byte, 8192)},
	})
	return assert.NoError(t, err, line)
}

// withMask replaces the last register by the mask of all threads.
func withMask(line string) string {
	if strings.HasPrefix(line, "mma") || strings.HasPrefix(line, "ldmatrix") {
		return line
	}
	last := strings.LastIndex(line, ", ")
	if last < 0 {
		return line
	}
	return line[:last] + ", 0xffffffff;"
}

func barRed(row tableRow, name string) string {
	result := "%b32_0"
	if strings.HasSuffix(name, "pred") {
		result = "%p0"
	}
	if strings.Count(row.operands, "b32") == 2 {
		return name + " " + result + ", 1, 64, %p1;"
	}
	return name + " " + result + ", 1, %p1;"
}
