package ptx

import (
	"fmt"
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
