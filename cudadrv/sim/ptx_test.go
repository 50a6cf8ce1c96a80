package sim

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every text is read or refused, and the kernels of a text that was read can be called.
func TestNoTextBreaksTheReader(t *testing.T) {
	words := []string{
		".version", "7", ".0", ".entry", "name", "(", ")", ",", "{", "}", "[", "]", ".param", ".align", "8", ".b8", ".u64", ".ptr", ".global",
		".maxntid", "1024", "/*", "*/", "//", "\n", "\"", ";", "-", "é",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := ".version 7.0 " + strings.Join(rapid.SliceOf(rapid.SampledFrom(words)).Draw(t, "words"), " ")
		p, err := parse([]byte(text))
		if err != nil {
			return
		}
		joined([]string{text, text}) // as a linker does
		for name, k := range p.kernels {
			assert.Equal(t, name, k.name)
			end := int64(0)
			for _, param := range k.params {
				assert.GreaterOrEqual(t, param.offsetBytes, end)
				end = param.offsetBytes + param.bytes
			}
			assert.Equal(t, end, k.paramBytes)
			assert.Positive(t, k.maxThreads)
		}
	})
}

// Control characters other than white space are no text, except zeros at the end.
func TestControlCharactersAreNoText(t *testing.T) {
	for b := range byte(' ') {
		_, err := parse([]byte(".version 7.0" + string(rune(b)) + "\n.target sm_70"))
		if strings.ContainsRune("\t\n\v\f\r", rune(b)) {
			require.NoError(t, err, "%#x", b)
		} else {
			require.ErrorIs(t, err, errNoText, "%#x", b)
		}
	}
	_, err := parse([]byte(".version 7.0\n.target sm_70\x00\x00"))
	require.NoError(t, err)
}

// A quotation that does not end is refused with the line on which it begins.
func TestAQuotationWithoutAnEnd(t *testing.T) {
	_, err := parse([]byte(".version 7.0\n.version\n\"ends\nnowhere"))
	require.ErrorContains(t, err, "line 3: ")
}

func TestWordsOfPTX(t *testing.T) {
	var words []string
	for r := newReader("ld.param.u64 %rd1,[a_b$+4];/**/\"quoted .entry\" // .entry\n.x/*/ */"); r.peek() != ""; {
		words = append(words, r.next())
	}
	require.Equal(t, []string{"ld", ".param", ".u64", "%rd1", ",", "[", "a_b$", "+", "4", "]", ";", `"`, ".x"}, words)
}

// A header without the name of a target is refused; any other that parse accepts is joined with another text, as the first one and as the second.
func TestHeadersThatLackSomething(t *testing.T) {
	for _, header := range []string{".target .address_size 64", ".target", ".target .version 7.1", ".target, sm_70"} {
		_, err := parse([]byte(".version 7.0 " + header))
		require.ErrorIs(t, err, errSyntax, header)
	}
	for _, header := range []string{".address_size", ".target sm_70,", ".target sm_70, debug .address_size 64", ".address_size .target sm_70", ""} {
		header = ".version 7.0 " + header
		_, err := parse([]byte(header))
		require.NoError(t, err, header)
		for _, texts := range [][]string{{header, ".version 7.0 .target sm_80 .address_size 64 .entry f() {}"}, {".version 7.0 .target sm_80 .entry f() {}", header}} {
			p, err := parse([]byte(joined(texts)))
			require.NoError(t, err, texts)
			require.Contains(t, p.kernels, "f", texts)
		}
	}
}

// A variable ends within the address space, also one whose length times its elements does not fit into 64 bits.
func TestBoundsOfVariables(t *testing.T) {
	for variable, bytes := range map[string]int64{ // -1: it is refused
		".u8 a[1]": 1, ".u64 a[3]": 24, ".v4 .u32 a[2][3]": 96, ".u8 a[]": 1, ".u8 a[0]": -1, ".u8 a[-1]": -1,
		fmt.Sprintf(".u8 a[%d]", int64(spaceEnd)): spaceEnd, fmt.Sprintf(".u8 a[%d]", int64(spaceEnd)+1): -1, fmt.Sprintf(".u64 a[%d]", int64(spaceEnd)): -1,
		".u64 a[2305843009213693953]": -1, ".u64 a[1152921504606846977]": -1, ".u16 a[9223372036854775807]": -1, ".u8 a[9223372036854775808]": -1,
		".u64 a[4294967296][4294967297]": -1,
	} {
		p, err := parse([]byte(".version 7.0 .target sm_70 .global " + variable + ";"))
		if bytes < 0 {
			require.ErrorIs(t, err, errSyntax, variable)
			continue
		}
		require.NoError(t, err, variable)
		assert.Equal(t, bytes, p.variables["a"], variable)
	}
}

// Numbers of a parameter have bounds, which are allowed themselves.
func TestBoundsOfParameters(t *testing.T) {
	for param, offset := range map[string]int64{ // after one byte; -1: it is refused
		".param .align 0 .u8 a": -1, ".param .align 1 .u8 a": 1, ".param .align 2 .u8 a": 2, ".param .align 3 .u8 a": -1,
		".param .align 128 .u8 a": 128, ".param .align 256 .u8 a": -1, ".param .align x .u8 a": -1, ".param .align 2 .u64 a": 8,
		".param .u64 .ptr .align 128 a": 8, ".param .u64 .ptr .global .align 16 a": 8, ".param .u64 .global a": -1,
		".param .u8 a[0]": -1, ".param .u8 a[1]": 1, ".param .u8 a[0x10]": 1, ".param .u8 a[32763]": 1, ".param .u8 a[32764]": -1,
		".param .u8 a[-1]": -1, ".param .u8 a[2": -1, ".param .u16 a[16381]": 2, ".param .u16 a[16382]": -1,
		".param .b128 a": 16, ".param a": -1, ".param .u8": -1, ".u8 a": -1, ".param .u8 [2]": -1,
	} {
		p, err := parse([]byte(".version 7.0 .entry f(.param .u8 first, " + param + ") {}"))
		if offset < 0 {
			require.ErrorIs(t, err, errSyntax, param)
			continue
		}
		require.NoError(t, err, param)
		require.Len(t, p.kernels["f"].params, 2)
		assert.Equal(t, offset, p.kernels["f"].params[1].offsetBytes, param)
	}
}
