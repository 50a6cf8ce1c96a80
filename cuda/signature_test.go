package cuda

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
)

// shown prints a signature: the types, names and sizes, and "?" for a parameter that is not understood.
func shown(s signature) string {
	all := []string{}
	for _, p := range s.params {
		if p == (textParam{}) {
			all = append(all, "?")
			continue
		}
		if p.typ == nil {
			all = append(all, "a part of it: "+p.name)
			continue
		}
		all = append(all, p.text()+" "+p.name+":"+strconv.Itoa(int(p.bytes))+"/"+strconv.Itoa(int(p.align)))
	}
	return strings.Join(all, ", ")
}

// A signature has what the text of a parameter says, and nothing of text that it does not understand.
func TestSignaturesInText(t *testing.T) {
	for text, want := range map[string]string{
		".param .u64 x":                                   ".u64 x:8/8",
		".param.f32 x":                                    ".f32 x:4/4",
		".param .u64 .ptr .global .align 16 x":            ".u64 .ptr x:8/8",
		".param .u64 .ptr .align 1 x":                     ".u64 .ptr x:8/8",
		".param .align 8 .b8 x[24]":                       ".align 8 .b8[24] x:24/8",
		".param .b8 x[4096]":                              ".align 1 .b8[4096] x:4096/1",
		".param .align 16 .b8 x [ 0x20 ]":                 ".align 16 .b8[32] x:32/16",
		".param .f32 x[4]":                                ".align 4 .f32[4] x:16/4",
		".param .f32 x[2][3]":                             ".align 4 .f32[6] x:24/4",
		".param .b32 x[3U]":                               ".align 4 .b32[3] x:12/4",
		".param .align 128 .b8 x[1]":                      ".align 128 .b8[1] x:1/128",
		".param .align 64 .u32 x":                         ".u32 x:4/64",
		".param .f16 x, .param .bf16x2 y":                 ".f16 x:2/2, .bf16x2 y:4/4",
		".param /* , ) */ .u8 // )\n x":                   ".u8 x:1/1",
		".param .b8 x[32764]":                             ".align 1 .b8[32764] x:32764/1",
		".param .b128 x":                                  ".b128 x:16/16",
		".param .b8 x[32765]":                             "?",
		".param .u32 x[9000]":                             "?",
		".param .b8 x[99999999999999999999]":              "?",
		".param .b8 x[65536][65536][65536]":               "?",
		".param .b8 x[0]":                                 "?",
		".param .b8 x[]":                                  "?",
		".param .b8 x[-1]":                                "?",
		".param .b8 x[1":                                  "?",
		".param .b8 [4] x":                                "?",
		".param .align 3 .b8 x[4]":                        "?",
		".param .align 0 .b8 x[4]":                        "?",
		".param x[4]":                                     "?",
		".param .align 8 x":                               "?",
		".param .align 256 .b8 x[4]":                      "?",
		".param .align .b8 x[4]":                          "?",
		".param .global .u64 x":                           "?",
		".param .u64":                                     "?",
		".param x":                                        "?",
		".param .u64 .u32 x":                              "?",
		".param .u64 x y":                                 "?",
		".param .u64 1":                                   "?",
		".param .v4 .f32 x":                               "?",
		".param .pred x":                                  "?",
		".param .texref x":                                "?",
		".param .u64 x = 3":                               "?",
		".param .u32 a, .param .texref b, .param .f32 c":  ".u32 a:4/4, ?, .f32 c:4/4",
		".param .u64 .ptr x, .param .s32 y,.param.b64 $z": ".u64 .ptr x:8/8, .s32 y:4/4, .b64 $z:8/8",
	} {
		s, ok := signatures([]byte(".entry k(" + text + ") { ret; }"))["k"]
		require.True(t, ok, text)
		assert.Equal(t, want, shown(s), text)
		assert.Equal(t, strings.Count(text, ".param"), s.count, text)
	}
	for _, text := range []string{"", ".", "x", ".param .u64 x,", ", .param .u64 x", ".param .u64 x, .reg .u32 y", ".paramount .u64 x"} {
		s := signatures([]byte(".entry k(" + text))
		assert.Empty(t, s, text)
		if text != "" {
			assert.Empty(t, signatures([]byte(".entry k("+text+")")), text)
		}
	}
}

// The parameters of a kernel are kept up to the bound, and counted beyond it.
func TestTheMostParametersThatAreKept(t *testing.T) {
	for _, more := range []int{-1, 0, 1, 2} {
		n := maxTextParams + more
		s := signatures([]byte(".entry k(" + strings.Repeat(".param .u8 x,", n-1) + ".param .u8 x) { ret; }"))["k"]
		assert.Equal(t, n, s.count)
		if more > 0 {
			assert.Empty(t, s.params)
		} else {
			assert.Len(t, s.params, n)
		}
	}
}

// A kernel whose list is not understood does not hide the kernels after it.
func TestKernelsAfterOneThatIsNotUnderstood(t *testing.T) {
	for _, bad := range []string{"bad", "bad(.reg .u32 y)", "bad(.param .u64 x, .reg .u32 y)", "bad(.param .u64 x,)", "bad(,)", ""} {
		all := signatures([]byte(".entry " + bad + " { ret; }\n.entry good(.param .u64 x) { ret; }\n"))
		require.Contains(t, all, "good", bad)
		assert.Equal(t, 1, all["good"].count, bad)
	}
}

// Comments and strings have no kernels, and a directive is a whole word.
func TestKernelsAreNotFoundInComments(t *testing.T) {
	const k = ".entry k(.param .u64 x) { ret; }\n"
	for text, want := range map[string]int{
		k: 1, "// " + k: 0, "/* " + k + "*/": 0, "/* " + k: 0, "\"" + k: 0, "\"a.entry b\"" + k: 1, ".file \"x\n" + k: 1, "/" + k: 1, ".visible" + k: 1,
		".entry_point k(.param .u64 x)": 0, "/**/" + k: 1, "/*/" + k: 0, "//*\n" + k: 1,
	} {
		assert.Len(t, signatures([]byte(text)), want, text)
	}
}

// A name has all bytes that PTX allows, at both ends of their ranges.
func TestNamesHaveAllBytes(t *testing.T) {
	const name = "azAZ09_$%mM5"
	for _, first := range []string{"a", "z", "A", "Z", "_", "$", "%"} {
		kernel := first + name
		all := signatures([]byte(".entry " + kernel + "(.param .u32 " + kernel + ") { ret; }\n"))
		require.Len(t, all, 1, kernel)
		assert.Equal(t, ".u32 "+kernel+":4/4", shown(all[kernel]))
	}
	assert.Empty(t, signatures([]byte(".entry a-b(.param .u32 c) { ret; }\n"))["a-b"].params)
}

// Texts that differ leave the count, and parts without text leave the types of others.
func TestSignaturesOfSeveralParts(t *testing.T) {
	text := func(params string) fatPart {
		return fatPart{textPart, linux64, []byte(".entry two(" + params + ") { ret; }")}
	}
	code := fatPart{cubinPart, linux64, cubin(map[string][]byte{"two": append(append([]byte{}, oneParam...), oneParam...)})}
	one, other := text(".param .u64 a, .param .u32 b"), text(".param .u64 a, .param .f32 b")
	for name, tt := range map[string]struct {
		parts []fatPart
		want  string
	}{
		"text":                       {[]fatPart{one}, ".u64 a:8/8, .u32 b:4/4"},
		"the same text":              {[]fatPart{one, one}, ".u64 a:8/8, .u32 b:4/4"},
		"a cubin, then text":         {[]fatPart{code, one}, ".u64 a:8/8, .u32 b:4/4"},
		"text, then a cubin":         {[]fatPart{one, code}, ".u64 a:8/8, .u32 b:4/4"},
		"a cubin":                    {[]fatPart{code}, ""},
		"texts that differ":          {[]fatPart{one, other}, ""},
		"texts that differ, and one": {[]fatPart{one, other, one, code}, ""},
	} {
		s := signatures(fatBinary(64, tt.parts...))["two"]
		assert.Equal(t, 2, s.count, name)
		assert.Equal(t, tt.want, shown(s), name)
	}
}

// The reader finds what the parser of package ptx finds, in all PTX of the module's sources.
func TestSignaturesAgreeWithTheParser(t *testing.T) {
	texts := regexp.MustCompile("(?s)\\.version [5-8]\\..*?`")
	kernels := 0
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".ptx" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all := [][]byte{content}
		if filepath.Ext(path) == ".go" {
			all = texts.FindAll(content, -1)
		}
		for _, text := range all {
			module, err := ptx.Parse(strings.TrimSuffix(string(text), "`"))
			if err != nil {
				continue // for a test of refusals, or with verbs of fmt
			}
			found := signatures(text)
			for _, f := range module.Functions {
				if !f.Entry || module.Function(f.Name) != f {
					continue
				}
				kernels++
				s, ok := found[f.Name]
				require.True(t, ok, "%s: %s", path, f.Name)
				require.Len(t, s.params, len(f.Params), "%s: %s", path, f.Name)
				places := s.places()
				end := 0
				for i, v := range f.Params {
					p := s.params[i]
					require.Equal(t, v.Name, p.name, "%s: %s", path, f.Name)
					require.Equal(t, "."+v.Type.String(), "."+strings.TrimPrefix(p.typ.name, "."), "%s: %s", path, f.Name)
					require.Equal(t, v.Bytes(), int(p.bytes), "%s: %s", path, f.Name)
					require.Equal(t, v.Pointer != nil, p.pointer, "%s: %s", path, f.Name)
					end = alignUp(end, v.Alignment())
					require.Equal(t, end, places[i].offset, "%s: %s", path, f.Name)
					end += v.Bytes()
				}
			}
		}
		return nil
	}))
	assert.Greater(t, kernels, 50)
}

// Text from outside makes no panic, and not much more memory than it has itself.
func FuzzSignatures(f *testing.F) {
	f.Add([]byte(paramText))
	f.Add([]byte(".entry k(.param .align 16 .b8 x[0x20], .param .u64 .ptr .global .align 4 y) { ret; }"))
	f.Add([]byte(".entry k(.param .b8 x[2][3U]"))
	f.Add([]byte(`.file "a.entry" /* */ .entry a .entry b() .entry b(.param.f16x2 $x)`))
	f.Fuzz(func(t *testing.T, text []byte) {
		kept := 0
		for kernel, s := range signatures(text) {
			kept += len(kernel)
			if s.count > len(text)/4 || s.params != nil && len(s.params) != s.count {
				t.Errorf("%q has %d parameters, %d of them with text", kernel, s.count, len(s.params))
			}
			for i := range s.params {
				p := &s.params[i]
				kept += len(p.name) + len(".param")
				if p.typ == nil {
					if *p != (textParam{}) {
						t.Errorf("%q: %+v", kernel, p)
					}
					continue
				}
				if p.bytes < 1 || p.bytes > maxTextBytes || p.align < 1 || p.align > maxTextAlign || p.align&(p.align-1) != 0 || p.name == "" {
					t.Errorf("%q: %+v", kernel, p)
				}
				if takenBy(p.text()) == "nothing" || !p.takes().has(bytes1Kind) && p.array {
					t.Errorf("%q: %s takes %s", kernel, p.text(), takenBy(p.text()))
				}
			}
			if all := s.places(); all != nil && !s.agrees(all) {
				t.Errorf("%q: %+v is not %s", kernel, all, shown(s))
			}
		}
		if kept > len(text) {
			t.Errorf("%d bytes of names in %d bytes of text", kept, len(text))
		}
	})
}
