package binding_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cmd/vram/internal/binding"
	"github.com/go-vram/vram/compute/ptx"
)

var update = flag.Bool("update", false, "write the golden file again")

// text reads a text of testdata or of another folder.
func text(t *testing.T, path string) binding.Text {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return binding.Text{Name: filepath.Base(path), PTX: string(content)}
}

// The generated package is the one that package golden has, which is compiled and run by its test.
func TestTheGoldenPackage(t *testing.T) {
	const path = "golden/kernels.go"
	texts := []binding.Text{text(t, "testdata/named.ptx"), text(t, "testdata/cpp.ptx")}
	texts[0].Source = "extern \"C\" __global__ void scaled(float *to, const float *by, float times, int n);"
	got, err := binding.Generate("golden", texts)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "go test ./internal/binding -update writes it")
	again, err := binding.Generate("golden", texts)
	require.NoError(t, err)
	assert.Equal(t, string(got), string(again))
}

// Packages for the texts of compilers compile.
func TestPackagesForTextsOfCompilersCompile(t *testing.T) {
	paths, err := filepath.Glob("../../../../compute/ptx/testdata/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	files := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(files, "gc", exports(t))}
	check := func(name string, texts ...binding.Text) {
		source, err := binding.Generate("kern", texts)
		require.NoError(t, err, name)
		file, err := parser.ParseFile(files, name+".go", source, parser.ParseComments)
		require.NoError(t, err, name)
		assert.True(t, ast.IsGenerated(file), name)
		_, err = config.Check("kern", files, []*ast.File{file}, nil)
		require.NoError(t, err, "%s\n%s", name, source)
	}
	for _, path := range paths {
		check(filepath.Base(path), text(t, path))
	}
	for _, entry := range hostile {
		check(entry, binding.Text{Name: "a\nfunc init() {}.ptx", PTX: module(entry)})
	}
}

// exports finds the compiled packages that generated code imports.
func exports(t *testing.T) func(path string) (io.ReadCloser, error) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "errors", "github.com/go-vram/vram/cuda").Output()
	require.NoError(t, err)
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// hostile are names of kernels with parameters whose names and types want care.
var hostile = []string{
	"type(.param .u32 func, .param .u32 range, .param .u32 len, .param .u64 .ptr kernels, .param .u32 geometry, .param .u32 error)",
	"Close(.param .u32 a, .param .u32 A, .param .u32 _a, .param .u32 $a, .param .u32 a2)",
	"On(.param .u32 queued, .param .u64 .ptr queue, .param .u64 .ptr Memory)", "Queued(.param .align 8 .b8 a[16])",
	"Function(.param .u32 Function, .param .u32 cuda, .param .u32 errors, .param .u32 on)",
	"$(.param .u32 _x, .param .u32 %x, .param .u32 $$, .param .u32 __)",
	"load(.param .b8 a[3], .param .align 16 .b8 b[32], .param .align 4 .b8 c[12], .param .align 16 .f32 d[4])",
	"modules(.param .u8 a, .param .s8 b, .param .u16 c, .param .s16 d, .param .f16 e, .param .u32 f, .param .s32 g, .param .u64 h, .param .s64 i, .param .f64 j)",
	"_Z1fIJfdEEvDpT_(.param .f32 x)",
	"_Z3addILi4EEvPKfPfm(.param .u64 a, .param .u64 b, .param .u64 c)",
	"Kernels", "Load",
}

func module(entries ...string) string {
	var head strings.Builder
	head.WriteString(".version 8.0\n.target sm_80\n.address_size 64\n")
	for _, e := range entries {
		head.WriteString(".visible .entry " + e + "\n{\n\tret;\n}\n")
	}
	return head.String()
}

// Types and modes follow the text and the C++ name.
func TestSignatures(t *testing.T) {
	for entry, want := range map[string]string{
		"_Z3addILi4EEvPKfPfm(.param .u64 a, .param .u64 b, .param .u64 c)":                                    "Add4(on *cuda.Context, geometry cuda.Geometry, a, b cuda.Memory, c uint64)",
		"_Z1filjb(.param .u32 f_param_0, .param .u64 f_param_1, .param .u32 f_param_2, .param .u8 f_param_3)": "F(on *cuda.Context, geometry cuda.Geometry, p0 int32, p1 int64, p2 uint32, p3 bool)",
		"_ZN1a1bE6__half(.param .align 2 .b8 x[2])":                                                           "AB(on *cuda.Context, geometry cuda.Geometry, x ABX)",
		"plain(.param .u64 n, .param .u64 .ptr .global p)":                                                    "Plain(on *cuda.Context, geometry cuda.Geometry, n uint64, p cuda.Memory)",
		"_Z1gj(.param .s32 x)":    "G(on *cuda.Context, geometry cuda.Geometry, x int32)",
		"_Zbroken(.param .u32 x)": "Zbroken(on *cuda.Context, geometry cuda.Geometry, x uint32)",
		"q(.param .u32 NCells, .param .u32 HTTPServer, .param .u32 ID, .param .u32 aLUT)":                                                                   "Q(on *cuda.Context, geometry cuda.Geometry, nCells, httpServer, id, aLUT uint32)",
		"r(.param .u32 LUTx, .param .u32 LUTs, .param .u32 LUT_x, .param .u32 LUT2x, .param .u32 Mx, .param .u32 M, .param .u32 _HTx, .param .u32 LUTxLen)": "R(on *cuda.Context, geometry cuda.Geometry, lutX, luts, lutX2, lut2x, mx, m, htX, lutXLen uint32)",
	} {
		got, err := binding.Generate("kern", []binding.Text{{Name: "a.ptx", PTX: module(entry)}})
		require.NoError(t, err, entry)
		assert.Contains(t, string(got), "func (kernels *Kernels) "+want+" error {", entry)
	}
}

// Parameters have the names and types of the source where the text has numbers.
func TestSignaturesOfSources(t *testing.T) {
	const numbers = "(.param .u64 k_param_0, .param .u32 k_param_1, .param .u8 k_param_2)"
	for source, want := range map[string]string{
		"": "p0 uint64, p1 uint32, p2 uint8",
		`extern "C" __global__ void __launch_bounds__(64 * (2)) k(const float* __restrict__ x, int n, bool y)`:                   "x cuda.Memory, n int32, y bool",
		"// __global__ void k(int a, int b, int c);\n/* __global__ */ __global__ void\nk(size_t a, unsigned int b, uint8_t)\n{}": "a uint64, b uint32, p2 uint8",
		"__global__ void k(float x[], signed char type, std::int8_t func = f(1, 2));":                                            "x cuda.Memory, typeValue uint32, funcValue int8",
		"__global__ void k(int n); __global__ void k(long n, float f, MACRO c); __global__ void k(int, int, int)":                "n int64, f uint32, c uint8",
		"__global__ void other(int a, int b, int c); __device__ void k(int a, int b, int c);":                                    "p0 uint64, p1 uint32, p2 uint8",
		"__global__ void k(pair<int, int> *p, int *_, int ___":                                                                   "p0 uint64, p1 uint32, p2 uint8",
		"__global__ void k(pair<int, int> *p, int _, int ___);":                                                                  "p cuda.Memory, p1 int32, p2 uint8",
		"__global__; __global__ void k(": "p0 uint64, p1 uint32, p2 uint8",
	} {
		got, err := binding.Generate("kern", []binding.Text{{Name: "a.ptx", PTX: module("k" + numbers), Source: source}})
		require.NoError(t, err, source)
		assert.Contains(t, string(got), "K(on *cuda.Context, geometry cuda.Geometry, "+want+") error {", source)
	}
	got, err := binding.Generate("kern", []binding.Text{{
		Name: "a.ptx", PTX: module("_ZN2ns3addIfEEvPT_i(.param .u64 f_param_0, .param .u32 f_param_1)"),
		Source: "namespace ns { template <class T> __global__ void add(T *sum, unsigned count) {} }",
	}})
	require.NoError(t, err)
	assert.Contains(t, string(got), "sum cuda.Memory, count int32) error {", "the C++ name has the types")
}

// The text has the names of parameters that the source gives, in their kernel alone, and nothing else of it changes: names that the
// kernel has for another thing get an underscore.
func TestTheTextHasTheNamesOfTheSource(t *testing.T) {
	const text = `.version 8.0
.target sm_80
.address_size 64
.global .u32 table[4];
.visible .entry k(.param .u64 k_param_0, .param .u64 k_param_1, .param .u32 k_param_10, .param .u32 own, .param .u32 k_param_4)
{
	.reg .b64 %d<3>; .reg .b32 %r<3>;
	ld.param.u64 %d1, [k_param_0]; ld.param.u64 %d2, [k_param_1]; ld.param.u32 %r1, [k_param_10+0]; // k_param_1
	mov.u64 %d2, table;
sum:
	st.global.u32 [%d1], %r1;
	ret;
}
.func k_param_1() { ret; }
.visible .entry j(.param .u64 k_param_0)
{
	.reg .b64 %d<3>;
	ld.param.u64 %d1, [k_param_0];
	ret;
}
`
	source := "__global__ void k(float *table, int *sum, int n, int other, int); __global__ void j(float *only);"
	want := strings.NewReplacer( // the first that fits
		"j(.param .u64 k_param_0", "j(.param .u64 only", ";\n\tld.param.u64 %d1, [k_param_0];\n\tret", ";\n\tld.param.u64 %d1, [only];\n\tret",
		"k_param_10", "n", "k_param_0", "table_", "func k_param_1", "func k_param_1", "k_param_1", "sum_",
	).Replace(text)
	got, err := binding.Generate("kern", []binding.Text{{Name: "a.ptx", PTX: text, Source: source}})
	require.NoError(t, err)
	_, after, _ := strings.Cut(string(got), "// text1 is ")
	assert.Equal(t, "a.ptx, with the names of parameters that the source has.\nconst text1 = `"+want+"`\n", after)
	assert.Contains(t, string(got), "table, sum cuda.Memory, n, own, p4 int32")
	m, err := ptx.Parse(want)
	require.NoError(t, err)
	require.NoError(t, ptx.Check(m))
}

// Any source gives a package, in time that its length bounds.
func FuzzSources(f *testing.F) {
	ptx := module("k(.param .u64 k_param_0, .param .u32 k_param_1)")
	want := token.NewFileSet()
	for _, source := range []string{
		"", "__global__ void k(float *x, int n) {}", "__global__ k(,)", "__global__ void __launch_bounds__(1) k(T<int, 2> &x = f(1, 2), int n[3])",
		strings.Repeat("__global__ k(", 1<<12), "/* __global__ void k(", "__global__ void k(int type, int type)", "__global__ void k(int \xff, int é)",
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		got, err := binding.Generate("kern", []binding.Text{{Name: "a.ptx", PTX: ptx, Source: source}})
		require.NoError(t, err)
		_, err = parser.ParseFile(want, "a.go", got, parser.SkipObjectResolution)
		require.NoError(t, err)
		assert.Contains(t, string(got), "func (kernels *Kernels) K(")
	})
}

// A text that cannot be a package is an error that names the file.
func TestTextsThatAreRefused(t *testing.T) {
	one := func(ptx string) []binding.Text { return []binding.Text{{Name: "a.ptx", PTX: ptx}} }
	generate := func(texts []binding.Text) error {
		got, err := binding.Generate("kern", texts)
		assert.Empty(t, got)
		return err
	}
	var syntax *ptx.SyntaxError
	err := generate(one("no PTX"))
	require.ErrorAs(t, err, &syntax)
	require.ErrorContains(t, err, "a.ptx: ")
	var finding *ptx.CheckError
	err = generate(one(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { add.u32 %r1, %r2, 1; ret; }"))
	require.ErrorAs(t, err, &finding)
	require.ErrorIs(t, generate(one(module())), binding.ErrNoKernel)
	require.ErrorIs(t, generate(nil), binding.ErrNoKernel)
	require.ErrorContains(t, generate(one(strings.Replace(module("k"), "64", "32", 1))), "32 bits")
	var duplicate *binding.DuplicateError
	require.ErrorAs(t, generate([]binding.Text{{Name: "a.ptx", PTX: module("k")}, {Name: "b.ptx", PTX: module("j", "k")}}), &duplicate)
	assert.Equal(t, binding.DuplicateError{Kernel: "k", First: "a.ptx", Second: "b.ptx"}, *duplicate)
	var parameter *binding.ParameterError
	err = generate(one(module("k(.param .b8 big[4097])")))
	require.ErrorAs(t, err, &parameter)
	assert.Contains(t, fmt.Sprint(err), "4097 bytes")
	for _, name := range []string{"", "func", "a-b", "A", "main", "a/b", "a\n"} {
		_, err := binding.Generate(name, one(module("k")))
		require.ErrorIs(t, err, binding.ErrPackage, name)
	}
}

// An instruction that package ptx does not know is no reason to refuse a text.
func TestUnknownInstructionsAreTaken(t *testing.T) {
	got, err := binding.Generate("kern", []binding.Text{{Name: "a.ptx", PTX: `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a)
{
	.reg .b64 %d<2>;
	ld.param.u64 %d1, [a];
	strange.new [%d1];
	ret;
}`}})
	require.NoError(t, err)
	assert.Contains(t, string(got), "cuda.Mark(a, cuda.InOut)")
}

// A parameter that may be a pointer or a number is a number if the C++ name says so, and else a buffer.
func TestNumbersThatMayBePointers(t *testing.T) {
	for entry, want := range map[string]string{
		"_Z1fPfm": "cuda.Mark(p, cuda.InOut), cuda.Value(n)",
		"f":       "cuda.Mark(p, cuda.InOut), cuda.Mark(n, cuda.InOut)",
	} {
		got, err := binding.Generate("kern", []binding.Text{{Name: "a.ptx", PTX: `.version 8.0
.target sm_80
.address_size 64
.visible .entry ` + entry + `(.param .u64 p, .param .u64 n)
{
	.reg .b64 %d<4>;
	ld.param.u64 %d1, [p];
	ld.param.u64 %d2, [n];
	add.s64 %d3, %d1, %d2;
	st.global.u64 [%d3], 1;
	ret;
}`}})
		require.NoError(t, err)
		assert.Contains(t, string(got), want)
	}
}
