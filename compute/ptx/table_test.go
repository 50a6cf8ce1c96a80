package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// releases are the architectures of the release notes of PTX: the version that has each first, and the bytes of static shared memory that
// ptxas takes. The variants follow, with their own first versions.
const releases = `
sm_20 2.0 233472
sm_21 2.0 233472
sm_30 3.0 233472
sm_32 4.0 233472
sm_35 3.1 233472
sm_37 4.1 233472
sm_50 4.0 65536
sm_52 4.1 98304
sm_53 4.2 65536
sm_60 5.0 65536
sm_61 5.0 98304
sm_62 5.0 65536
sm_70 6.0 98304
sm_72 6.1 65536
sm_75 6.3 65536
sm_80 7.0 167936
sm_86 7.1 102400
sm_87 7.4 167936
sm_88 9.0 233472
sm_89 7.8 167936
sm_90 7.8 233472 a 8.0
sm_100 8.6 233472 a 8.6 f 8.8
sm_101 8.6 233472 a 8.6 f 8.8
sm_103 8.8 233472 a 8.8 f 8.8
sm_110 9.0 233472 a 9.0 f 9.0
sm_120 8.7 233472 a 8.7 f 8.8
sm_121 8.8 233472 a 8.8 f 8.8`

// versionOf reads a version.
func versionOf(t *testing.T, text string) (v Version) {
	t.Helper()
	_, err := fmt.Sscanf(text, "%d.%d", &v.Major, &v.Minor)
	require.NoError(t, err)
	return v
}

// checkText parses and checks a module.
func checkText(t *testing.T, text string) error {
	t.Helper()
	m, err := Parse(text)
	require.NoError(t, err, text)
	return Check(m)
}

// Each architecture and variant is known from its first version on, each version is known up to the last minor one, and nothing else is.
func TestVersionsOfArchitectures(t *testing.T) {
	t.Parallel()
	first := map[string]Version{}
	for line := range strings.Lines(strings.TrimSpace(releases)) {
		words := strings.Fields(line)
		first[words[0]] = versionOf(t, words[1])
		for n := 3; n < len(words); n += 2 {
			first[words[0]+words[n]] = versionOf(t, words[n+1])
		}
	}
	require.Len(t, first, 27+7+6)
	last := map[int]int{2: 3, 3: 2, 4: 3, 5: 0, 6: 5, 7: 8, 8: 8, 9: 0}
	check := func(name string, v Version, want bool) {
		var target Target
		_, err := fmt.Sscanf(name, "sm_%d%s", &target.SM, &target.Variant)
		require.True(t, err == nil || target.Variant == "", name)
		if err = Check(&Module{Version: v, Target: target, AddressSize: 64}); want != (err == nil) {
			require.Failf(t, "another answer", "%s with PTX %v: %v", name, v, err)
		}
	}
	for sm := range 130 {
		for _, variant := range []string{"", "a", "f"} {
			name := fmt.Sprintf("sm_%d%s", sm, variant)
			since, known := first[name]
			if !known {
				check(name, Version{9, 0}, false)
				continue
			}
			for major := range 11 {
				minors, released := last[major]
				for minor := range minors + 2 {
					v := Version{major, minor}
					check(name, v, released && minor <= minors && !v.Before(since))
				}
			}
		}
	}
}

// manual has instructions with the version and the architecture that the manual of PTX names for them. "gone" after these: PTX 6.4
// and later does not have the instruction for sm_70 and later.
const manual = `
2.0 sm_20: add.u32 %r1, %r2, %r3;
2.0 sm_20: atom.global.add.u32 %r1, [%rd1], %r2;
5.0 sm_60: atom.global.cta.add.u32 %r1, [%rd1], %r2;
5.0 sm_60: atom.shared.gpu.cas.b32 %r1, [tile], %r2, %r3;
5.0 sm_60: atom.sys.exch.b64 %rd1, [%rd2], %rd3;
5.0 sm_60: red.global.cta.add.u32 [%rd1], %r2;
5.0 sm_60: red.gpu.max.s64 [%rd1], %rd2;
5.0 sm_60: red.sys.add.f32 [%rd1], %f2;
5.0 sm_60: atom.global.add.f64 %d1, [%rd1], %d2;
6.0 sm_70: atom.relaxed.gpu.global.add.u32 %r1, [%rd1], %r2;
6.0 sm_70: atom.acquire.global.add.u32 %r1, [%rd1], %r2;
6.0 sm_70: red.release.sys.add.u32 [%rd1], %r2;
6.2 sm_60: atom.add.noftz.f16x2 %r1, [%rd1], %r2;
6.3 sm_70: atom.add.noftz.f16 %h1, [%rd1], %h2;
6.3 sm_70: atom.cas.b16 %h1, [%rd1], %h2, %h3;
7.8 sm_90: atom.add.noftz.bf16 %h1, [%rd1], %h2;
3.1 sm_32: ld.global.nc.f32 %f1, [%rd1];
6.0 sm_70: ld.acquire.gpu.global.u32 %r1, [%rd1];
6.0 sm_70: st.release.cta.u32 [%rd1], %r1;
7.4 sm_70: ld.global.L1::no_allocate.u32 %r1, [%rd1];
7.4 sm_70: st.global.L1::evict_first.u32 [%rd1], %r1;
7.4 sm_75: ld.global.L2::64B.u32 %r1, [%rd1];
7.4 sm_75: ld.global.L2::128B.u32 %r1, [%rd1];
7.4 sm_80: ld.global.L2::256B.u32 %r1, [%rd1];
7.4 sm_80: ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;
7.8 sm_30: ld.shared::cta.u32 %r1, [tile];
4.3 sm_50: lop3.b32 %r1, %r2, %r3, %r4, 7;
3.1 sm_32: shf.l.wrap.b32 %r1, %r2, %r3, %r4;
5.0 sm_61: dp4a.u32.u32 %r1, %r2, %r3, %r4;
2.0 sm_20: add.cc.u32 %r1, %r2, %r3;
2.0 sm_20: subc.s32 %r1, %r2, %r3;
3.0 sm_20: mad.lo.cc.u32 %r1, %r2, %r3, %r4;
3.0 sm_20: madc.hi.s32 %r1, %r2, %r3, %r4;
4.3 sm_20: add.cc.u64 %rd1, %rd2, %rd3;
4.3 sm_20: addc.s64 %rd1, %rd2, %rd3;
4.3 sm_20: madc.hi.cc.u64 %rd1, %rd2, %rd3, %rd4;
4.2 sm_53: add.f16 %h1, %h2, %h3;
4.2 sm_53: fma.rn.f16x2 %r1, %r2, %r3, %r4;
6.0 sm_53: neg.f16 %h1, %h2;
6.5 sm_53: abs.f16 %h1, %h2;
7.0 sm_80: neg.bf16 %h1, %h2;
7.0 sm_80: fma.rn.relu.f16 %h1, %h2, %h3, %h4;
7.0 sm_80: fma.rn.bf16 %h1, %h2, %h3, %h4;
7.0 sm_80: min.f16 %h1, %h2, %h3;
7.0 sm_80: max.NaN.f32 %f1, %f2, %f3;
7.2 sm_86: min.xorsign.abs.f32 %f1, %f2, %f3;
7.8 sm_90: add.bf16 %h1, %h2, %h3;
7.0 sm_75: ex2.approx.f16 %h1, %h2;
7.0 sm_75: tanh.approx.f32 %f1, %f2;
7.8 sm_90: ex2.approx.ftz.bf16 %h1, %h2;
7.8 sm_90: tanh.approx.bf16x2 %r1, %r2;
4.2 sm_53: setp.eq.f16 %p1, %h1, %h2;
7.8 sm_90: setp.eq.bf16 %p1, %h1, %h2;
6.5 sm_53: set.eq.u32.f16 %r1, %h1, %h2;
7.0 sm_80: cvt.rn.bf16.f32 %h1, %f1;
7.0 sm_80: cvt.rn.f16x2.f32 %r1, %f1, %f2;
7.1 sm_80: cvt.f32.bf16 %f1, %h1;
7.8 sm_90: cvt.rn.bf16.f16 %h1, %h2;
7.7 sm_70: cvta.param.u64 %rd1, %rd2;
7.7 sm_70: isspacep.param %p1, %rd1;
7.0 sm_80: cp.async.ca.shared.global [tile], [%rd1], 4;
7.0 sm_80: cp.async.wait_all;
7.4 sm_80: createpolicy.fractional.L2::evict_last.b64 %rd1, 1.0;
7.0 sm_80: mbarrier.init.shared.b64 [tile], %r1;
7.1 sm_80: mbarrier.test_wait.parity.shared.b64 %p1, [tile], 1;
7.8 sm_90: mbarrier.try_wait.shared.b64 %p1, [tile], %rd1;
7.0 sm_80: redux.sync.add.u32 %r1, %r2, -1;
6.0 sm_30: bar.warp.sync -1;
6.0 sm_30: barrier.sync 0;
6.0 sm_30: shfl.sync.idx.b32 %r1, %r2, 0, 31, -1;
3.0 sm_30 gone: shfl.idx.b32 %r1, %r2, 0, 31;
6.0 sm_30: vote.sync.ballot.b32 %r1, %p1, -1;
2.0 sm_20 gone: vote.ballot.b32 %r1, %p1;
6.2 sm_30: activemask.b32 %r1;
6.0 sm_70: match.any.sync.b32 %r1, %r2, -1;
6.0 sm_70: fence.acq_rel.gpu;
8.0 sm_90: fence.proxy.async;
2.0 sm_20: membar.sys;
6.3 sm_70: nanosleep.u32 %r1;
6.5 sm_75: ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [tile];
6.5 sm_75: mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r6, %r7};
7.0 sm_80: mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, %f3, %f4};
8.0 sm_90a: wgmma.fence.sync.aligned;
8.0 sm_90a: setmaxnreg.inc.sync.aligned.u32 24;`

// An instruction is right from its version and its architecture on, and not before either, nor for an architecture without the variant.
func TestNeedsOfInstructions(t *testing.T) {
	t.Parallel()
	var targets []Target
	for line := range strings.Lines(strings.TrimSpace(releases)) {
		var one Target
		_, err := fmt.Sscanf(line, "sm_%d", &one.SM)
		require.NoError(t, err)
		targets = append(targets, one)
	}
	targets = append(targets, Target{SM: 90, Variant: "a"}, Target{SM: 100, Variant: "a"})
	versions := []Version{{2, 0}, {2, 3}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}, {4, 3}, {5, 0}, {6, 0}, {6, 1}, {6, 2}, {6, 3}, {6, 4}, {6, 5}}
	versions = append(versions, []Version{{7, 0}, {7, 1}, {7, 2}, {7, 3}, {7, 4}, {7, 6}, {7, 7}, {7, 8}, {8, 0}, {9, 0}}...)
	for line := range strings.Lines(strings.TrimSpace(manual)) {
		needs, statement, _ := strings.Cut(strings.TrimSpace(line), ": ")
		words := strings.Fields(needs)
		since, gone := versionOf(t, words[0]), len(words) > 2
		var least Target
		_, err := fmt.Sscanf(words[1]+" ", "sm_%d%s", &least.SM, &least.Variant)
		require.True(t, err == nil || least.Variant == "", needs)
		m, err := Parse(bodyOf(".version 9.0\n.target sm_90\n", statement))
		require.NoError(t, err, statement)
		first := slices.Index(versions, since)
		require.GreaterOrEqual(t, first, 0, needs)
		near := []Version{versions[max(first-1, 0)], since, {6, 3}, {6, 4}, {9, 0}}
		for _, target := range targets {
			for _, v := range near {
				if v.Before(targetVersion(target)) {
					continue
				}
				m.Version, m.Target = v, target
				want := !v.Before(since) && target.SM >= least.SM && (least.Variant == "" || target.SM == least.SM && target.Variant == least.Variant)
				if gone && target.SM >= 70 && !v.Before(Version{6, 4}) {
					want = false
				}
				if err := Check(m); want != (err == nil) {
					require.Failf(t, "another answer", "PTX %v, %v: %s %v", v, target, statement, err)
				}
			}
		}
	}
}

// An instruction without a form is a mistake if no version of PTX has other forms of it; others may be newer than the table.
func TestFormsThatNewerVersionsMayHave(t *testing.T) {
	t.Parallel()
	const all = "addc subc madc div rem sad copysign testp and or xor not cnot shl shr shf bfe bfi bfind brev clz popc prmt selp slct setp " +
		"bra ret exit trap brkpt nanosleep bar.sync bar.arrive bar.red bar.warp.sync shfl shfl.sync vote vote.sync activemask match"
	const integers = "add sub min max abs neg mul mad"
	for op := UnknownOp + 1; op < opcodeCount; op++ {
		for _, typ := range []string{"u32", "f32"} {
			statement := op.String() + ".ftz.cg." + typ + " %r1, %r2;"
			err := checkText(t, bodyOf(".version 9.0\n.target sm_90a\n", statement))
			require.ErrorContains(t, err, "has no form with these modifiers and types", statement)
			complete := slices.Contains(strings.Fields(all), op.String()) || typ == "u32" && slices.Contains(strings.Fields(integers), op.String())
			assert.Equal(t, complete, !lackingAlone(err), statement)
		}
	}
}

// A vector of a load or a store has 16 bytes at most, of each type and length.
func TestBytesOfVectors(t *testing.T) {
	t.Parallel()
	for bytes, types := range map[int]string{1: "b8 u8 s8", 2: "b16 u16 s16", 4: "b32 u32 s32 f32", 8: "b64 u64 s64 f64"} {
		register := map[int]string{1: "%h1", 2: "%h1", 4: "%r1", 8: "%rd1"}[bytes]
		for typ := range strings.FieldsSeq(types) {
			for _, count := range []int{2, 4} {
				name, vector := fmt.Sprintf(".global.v%d.%s ", count, typ), "{"+strings.Repeat(register+", ", count-1)+register+"}"
				for _, statement := range []string{"ld" + name + vector + ", [%rd1];", "ldu" + name + vector + ", [%rd1];", "st" + name + "[%rd1], " + vector + ";"} {
					err := checkText(t, bodyOf(".version 8.0\n.target sm_80\n.address_size 64\n", statement))
					assert.Equal(t, bytes*count <= 16, err == nil, "%s %v", statement, err)
				}
			}
		}
	}
}

// A special register goes to integers of its width and of 16 bits, and the number of the grid to integers of 32 bits. Only one whose
// type is bits goes to a floating-point number, and none to a predicate.
func TestTypesOfSpecialRegisters(t *testing.T) {
	t.Parallel()
	for special := NoSpecial + 1; special < specialCount; special++ {
		if special == WarpSize { // a constant
			continue
		}
		for typ, register := range map[Type]string{
			Pred: "%p1", B16: "%h1", U16: "%h1", S16: "%h1", B32: "%r1", U32: "%r1", S32: "%r1", B64: "%rd1", U64: "%rd1", S64: "%rd1", F32: "%f1", F64: "%d1",
		} {
			statement := fmt.Sprintf("mov.%v %s, %v;", typ, register, special)
			bits, of := typ.Bits(), special.Type()
			want := typ != Pred && typ.Class() != Float && (bits == of.Bits() || bits == 16 || special == Gridid && bits == 32)
			want = want || typ.Class() == Float && of.Class() == Untyped && bits == of.Bits()
			err := checkText(t, bodyOf(".version 9.0\n.target sm_90\n.address_size 64\n", statement))
			assert.Equal(t, want, err == nil, "%s %v", statement, err)
		}
	}
}

// A mistake in the table of instructions is an error, wherever it stands in a row.
func TestMistakesInTheTable(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"u32", ".strange", ".<u32|strange>", ".u32.", ".<int|strange>"} {
		_, err := row{OpAdd, form, "=T, T, T", ""}.compile()
		require.ErrorContains(t, err, "table of instructions: add"+form, form)
	}
	for _, operand := range []string{
		"strange", "2strange", "b32(x)", "b32(0..x)", "[strange]", "int(x)", "int(1|x)", "int()", "{x:b32}", "{4:strange}", "{n/2:strange}", "{}strange", "b32*x",
	} {
		f, err := row{OpAdd, ".u32", "=T, " + operand, ""}.compile()
		require.ErrorContains(t, err, fmt.Sprintf("operand %q", operand), operand)
		require.Equal(t, form{}, f)
	}
	for _, needs := range []string{"7", "7.0", "sm_80", "7.x sm_80", "7.0 sm"} {
		_, err := row{OpAdd, ".u32", "=T, T, T", needs}.compile()
		require.Error(t, err, needs)
	}
}

// A name with more types than the key of the forms has is not the shorter one.
func TestLongNamesAreNoShortOnes(t *testing.T) {
	t.Parallel()
	const name, operands = "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", " {%r1, %r2}, {%r3, %r4}, {%r5}, {%r6, %r7}; "
	head := ".version 8.0\n.target sm_80\n.address_size 64\n"
	require.NoError(t, checkText(t, bodyOf(head, name+operands+name+operands)))
	for _, more := range []string{".f16", ".row", ".f16.row"} {
		err := checkText(t, bodyOf(head, name+operands+name+more+operands))
		require.ErrorContains(t, err, "has no form with these modifiers and types", more)
	}
	err := checkText(t, bodyOf(head, "add"+strings.Repeat(".cg", 70)+".u32 %r1, %r2, %r3;"))
	require.ErrorContains(t, err, "has no form with these modifiers and types")
}

// A block has as many bytes of static shared memory as its architecture, and not one more.
func TestSharedMemoryOfArchitectures(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(strings.TrimSpace(releases)) {
		words := strings.Fields(line)
		limit, err := strconv.Atoi(words[2])
		require.NoError(t, err)
		for more, right := range map[int]bool{-1: true, 0: true, 1: false} {
			err := checkText(t, fmt.Sprintf(".version %s\n.target %s\n.address_size 64\n.entry k() { .reg .b32 r; .shared .b8 a[100]; .shared .b8 b[%d]; mov.u32 r, a; mov.u32 r, b; ret; }",
				words[1], words[0], limit-100+more))
			assert.Equal(t, right, err == nil, "%s, %d more: %v", words[0], more, err)
		}
	}
}

// The size, the class and the lanes of each type follow from its name, and each is found by its name.
func TestTypesFollowTheirNames(t *testing.T) {
	t.Parallel()
	classes := map[byte]Class{'b': Untyped, 'u': Unsigned, 's': Signed, 'f': Float, 't': Float}
	for typ := NoType + 1; typ < typeCount; typ++ {
		name := typ.String()
		assert.Equal(t, typ, typeByName[name], name)
		if strings.HasSuffix(name, "ref") || typ == Pred {
			bits, class := 64, Opaque
			if typ == Pred {
				bits, class = 1, Predicate
			}
			assert.Equal(t, [...]any{bits, bits / 8, class, 1, false}, [...]any{typ.Bits(), typ.Bytes(), typ.Class(), typ.Lanes(), typ.IsInteger()}, name)
			continue
		}
		one, paired := strings.CutSuffix(name, "x2")
		bits, err := strconv.Atoi(strings.TrimLeft(one, "bustf"))
		require.NoError(t, err)
		class, lanes := classes[name[0]], 1
		if strings.HasPrefix(name, "bf") {
			class = Float
		}
		if paired {
			bits, lanes = 2*bits, 2
		}
		assert.Equal(t, [...]any{bits, bits / 8, class, lanes, class == Signed || class == Unsigned}, [...]any{typ.Bits(), typ.Bytes(), typ.Class(), typ.Lanes(), typ.IsInteger()}, name)
	}
	for _, typ := range []Type{NoType, typeCount, typeCount + 1, 255} {
		assert.Equal(t, [...]any{"", 0, NoClass, 0}, [...]any{typ.String(), typ.Bits(), typ.Class(), typ.Lanes()})
	}
}

// Modifiers of which an instruction has one, as the table of instructions lists them, are of one kind; other numbers name nothing.
func TestModifiersThatExcludeEachOtherAreOfOneKind(t *testing.T) {
	t.Parallel()
	kinds := map[ModifierKind]bool{}
	check := func(name, set string) {
		var first Modifier
		for word := range strings.SplitSeq(set, "|") {
			m, ok := modifierByName[word]
			switch {
			case !ok: // a type
			case first == NoModifier:
				first = m
			default:
				assert.Equal(t, first.Kind(), m.Kind(), "%s: %v and %v", name, first, m)
			}
		}
		kinds[first.Kind()] = true
	}
	for name, set := range namedSets {
		check(name, set)
	}
	for _, rows := range rowGroups() {
		for _, r := range rows {
			for rest := r.form; ; {
				_, after, ok := strings.Cut(rest, "<")
				if !ok {
					break
				}
				set, after, _ := strings.Cut(after, ">")
				for name, members := range namedSets {
					if set == name {
						set = members
					}
				}
				check(r.op.String()+r.form, set)
				rest = after
			}
		}
	}
	require.Greater(t, len(kinds), 10)
	for _, m := range []Modifier{NoModifier, modifierCount} {
		assert.Equal(t, [...]any{"", KindFlag}, [...]any{m.String(), m.Kind()})
	}
}

// An access to a variable is right if all of its bytes are the variable's and it is aligned: for each size of both and each offset.
func TestAccessesAreInsideTheirVariables(t *testing.T) {
	t.Parallel()
	for _, space := range []string{"global", "local"} {
		for _, bytes := range []int{1, 2, 4, 8, 9, 16} {
			for size := 1; size <= 8; size *= 2 {
				for vector := 1; vector*size <= 16 && vector <= 4; vector *= 2 {
					for offset := -size; offset <= bytes; offset++ {
						operand, suffix := "v0", ""
						if vector > 1 {
							operand, suffix = map[int]string{2: "{v0, v1}", 4: "{v0, v1, v2, v3}"}[vector], fmt.Sprintf(".v%d", vector)
						}
						statement := fmt.Sprintf("ld.%s%s.u%d %s, [a+%d];", space, suffix, 8*size, operand, offset)
						variable := fmt.Sprintf(".%s .align 16 .b8 a[%d];", space, bytes)
						module, body := variable, ""
						if space == "local" {
							module, body = "", variable
						}
						err := checkText(t, fmt.Sprintf(".version 8.0\n.target sm_80\n.address_size 64\n%s\n.entry k() { .reg .b64 v<4>; %s %s ret; }", module, body, statement))
						want := offset >= 0 && offset+size*vector <= bytes && offset%(size*vector) == 0
						if want != (err == nil) {
							require.Failf(t, "another answer", "%s of %d bytes: %v", statement, bytes, err)
						}
					}
				}
			}
		}
	}
}
