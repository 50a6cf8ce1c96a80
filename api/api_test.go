// Package api holds the list of what this module promises to its users by name: vram.txt, in the form of Go's own api/*.txt.
package api_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/go-vram/vram"
	golden = "vram.txt"
)

// forUsers are the packages whose exported names are for programs that use this module; the header of vram.txt says the same
// in words.
var forUsers = []string{
	"", "futures", "warm", "vramtest", "host", "cuda", "cuda/share", "cuda/sleep", "cuda/gemm", "cuda/cublaslt", "compute/kernel/matmul",
	"compute/tensor", "compute/tensor/half", "compute/tensor/layout", "compute/kernel", "compute/kernel/expr", "compute/kernel/plan", "compute/kernel/elementary", "compute/kernel/nvrtc", "compute/kernel/store",
	"compute/kernel/tune", "compute/kernel/tune/tables", "compute/ops", "monitor/snapshot",
	"cudadrv", "cudadrv/dynamic", "cudadrv/sim", "cudadrv/fault", "cudadrv/hazard", "cudadrv/drivertest", "cudadrv/site",
	"vramtest/ptxrun", "compute/ptx", "compute/ptx/interp", "monitor/heapprofile", "monitor/heapprofile/handler", "monitor/history", "monitor/page",
	"monitor/metrics", "monitor/expvars", "monitor/regions",
}

const header = `# The exported names of the packages that programs import: functions, methods, fields, constants and variables.
#
# For users: the module's root, whose aliases are listed with the methods and fields of what they stand for; futures, for its types;
# warm; vramtest; host; cuda, with cuda/share, cuda/sleep, cuda/gemm and cuda/cublaslt; tensor, with compute/tensor/half and compute/tensor/layout; kernel,
# with compute/kernel/expr, compute/kernel/plan, compute/kernel/elementary, compute/kernel/nvrtc, compute/kernel/store, compute/kernel/tune, compute/kernel/tune/tables and compute/kernel/matmul; ops; monitor/snapshot; and of the drivers cudadrv, cudadrv/dynamic, cudadrv/sim and cudadrv/fault, with cudadrv/hazard (what vramtest reports),
# cudadrv/site (places in errors), cudadrv/drivertest (tests for a driver of one's own), and vramtest/ptxrun with ptx and
# compute/ptx/interp (kernels as text, and on the simulated device); monitor/heapprofile with its handler, monitor/history, monitor/page,
# monitor/metrics, monitor/expvars and monitor/regions (a program's memory as it runs).
#
# Not for users, though they can be imported, and free to change: actors, batch, pool, streams and cudadrv/meter with the packages
# below them. cudadrv/gorgonia is for users and not listed, since it compiles only with its build tag and the headers of CUDA.
#
# A change of this file is a change that callers see: go test ./api -update writes it anew, and CHANGELOG.md says what it means.
`

var update = flag.Bool("update", false, "write vram.txt anew")

// The list is what the packages export.
func TestExportedNames(t *testing.T) {
	var text bytes.Buffer
	text.WriteString(header)
	exports := load(t)
	for _, p := range forUsers {
		writePackage(&text, exports[p])
	}
	if *update {
		require.NoError(t, os.WriteFile(golden, text.Bytes(), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	gone, added := difference(lines(string(want)), lines(text.String()))
	assert.Empty(t, gone, "names that %s has and the packages do not; go test ./api -update", golden)
	assert.Empty(t, added, "names that the packages have and %s does not; go test ./api -update", golden)
	if len(gone)+len(added) == 0 {
		assert.Equal(t, string(want), text.String(), "the order or the header; go test ./api -update")
	}
}

// What the root shows is made of types that a caller can name: those of the house behind it stay behind it.
func TestTheRootShowsNoTypesOfTheHouse(t *testing.T) {
	var text bytes.Buffer
	writePackage(&text, load(t)[""])
	for _, line := range lines(text.String()) {
		_, is, _ := strings.Cut(line, ", ")
		for _, inside := range []string{"internal/", "actors.", "batch.", "pool.", "pool/", "streams.", "streams/"} {
			assert.NotContains(t, is, inside, "a caller cannot name this type, or ought not to need it")
		}
	}
}

// A name that is taken away, renamed or changed shows as a line that is gone.
func TestDifference(t *testing.T) {
	gone, added := difference([]string{"a", "b", "c"}, []string{"a", "c2", "d"})
	assert.Equal(t, []string{"b", "c"}, gone)
	assert.Equal(t, []string{"c2", "d"}, added)
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// difference is what only the one and only the other list has.
func difference(before, after []string) (gone, added []string) {
	only := func(in, of []string) (rest []string) {
		for _, line := range of {
			if !slices.Contains(in, line) {
				rest = append(rest, line)
			}
		}
		return rest
	}
	return only(after, before), only(before, after)
}

// load compiles the packages, once for all tests, and returns what they export, by folder.
func load(t *testing.T) map[string]*types.Package {
	t.Helper()
	packages, err := loaded()
	require.NoError(t, err)
	return packages
}

var loaded = sync.OnceValues(func() (map[string]*types.Package, error) {
	arguments := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, p := range forUsers {
		arguments = append(arguments, strings.TrimSuffix(module+"/"+p, "/"))
	}
	command := exec.Command("go", arguments...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, line := range lines(string(out)) {
		path, file, _ := strings.Cut(line, "\t")
		files[path] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	packages := map[string]*types.Package{}
	for _, p := range forUsers {
		packages[p], err = compiled.Import(strings.TrimSuffix(module+"/"+p, "/"))
		if err != nil {
			return nil, err
		}
	}
	return packages, nil
})

// lister writes the names of one package.
type lister struct {
	out     []string
	pkg     *types.Package
	aliases map[*types.TypeName]string // names in the package for types of others
}

func writePackage(w io.Writer, p *types.Package) {
	l := &lister{pkg: p, aliases: map[*types.TypeName]string{}}
	for _, name := range p.Scope().Names() {
		o, ok := p.Scope().Lookup(name).(*types.TypeName)
		if ok && o.Exported() && o.IsAlias() {
			if of, ok := types.Unalias(o.Type()).(*types.Named); ok {
				l.aliases[of.Origin().Obj()] = name
			}
		}
	}
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			l.object(o)
		}
	}
	slices.Sort(l.out)
	fmt.Fprintln(w)
	for _, line := range l.out {
		fmt.Fprintf(w, "pkg %s, %s\n", p.Name(), line)
	}
}

func (l *lister) add(format string, args ...any) { l.out = append(l.out, fmt.Sprintf(format, args...)) }

func (l *lister) object(o types.Object) {
	switch o := o.(type) {
	case *types.Const:
		l.add("const %s %s", o.Name(), l.text(o.Type()))
	case *types.Var:
		l.add("var %s %s", o.Name(), l.text(o.Type()))
	case *types.Func:
		l.add("func %s%s", o.Name(), l.signature(o))
	case *types.TypeName:
		l.typeName(o)
	}
}

// typeName lists a type with its fields and methods, also where it is an alias.
func (l *lister) typeName(o *types.TypeName) {
	t := types.Unalias(o.Type())
	name := o.Name()
	if of, ok := t.(*types.Named); ok {
		name += parameterNames(of.TypeParams())
	}
	switch under := t.Underlying().(type) {
	case *types.Struct:
		l.add("type %s struct", name)
		for f := range under.Fields() {
			if f.Exported() {
				l.add("type %s struct, %s %s", name, f.Name(), l.text(f.Type()))
			}
		}
	case *types.Interface:
		l.add("type %s interface", name)
		for m := range under.Methods() {
			if m.Exported() {
				l.add("type %s interface, %s%s", name, m.Name(), l.signature(m))
			}
		}
		return
	default:
		l.add("type %s %s", name, l.text(under))
	}
	value := types.NewMethodSet(t)
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		f, ok := m.Obj().(*types.Func)
		if !ok || !f.Exported() {
			continue
		}
		receiver := "*" + name
		if value.Lookup(f.Pkg(), f.Name()) != nil {
			receiver = name
		}
		l.add("method (%s) %s%s", receiver, f.Name(), l.signature(f))
	}
}

// text is a type with the names that the package has for it.
func (l *lister) text(t types.Type) string {
	s := types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return strings.TrimPrefix(strings.TrimPrefix(p.Path(), module), "/")
	})
	for of, name := range l.aliases {
		folder := strings.TrimPrefix(strings.TrimPrefix(of.Pkg().Path(), module), "/")
		s = replaceWord(s, folder+"."+of.Name(), name)
	}
	return s
}

// replaceWord replaces a qualified name where it does not go on.
func replaceWord(s, old, by string) string {
	var done strings.Builder
	for {
		before, after, found := strings.Cut(s, old)
		done.WriteString(before)
		if !found {
			return done.String()
		}
		if ends := after == "" || !strings.ContainsAny(after[:1], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"); ends {
			done.WriteString(by)
		} else {
			done.WriteString(old)
		}
		s = after
	}
}

// signature is that of a function, without the names of parameters.
func (l *lister) signature(f *types.Func) string {
	s, _ := f.Type().(*types.Signature)
	bare := func(of *types.Tuple) *types.Tuple {
		var all []*types.Var
		for v := range of.Variables() {
			all = append(all, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(all...)
	}
	text := l.text(types.NewSignatureType(nil, nil, nil, bare(s.Params()), bare(s.Results()), s.Variadic()))
	return typeParameters(s.TypeParams()) + strings.TrimPrefix(text, "func")
}

// parameterNames are those of a generic type, as in Future[T].
func parameterNames(of *types.TypeParamList) string {
	var names []string
	for p := range of.TypeParams() {
		names = append(names, p.Obj().Name())
	}
	if len(names) == 0 {
		return ""
	}
	return "[" + strings.Join(names, ", ") + "]"
}

// typeParameters are those of a generic function with what they must be, as in [T any].
func typeParameters(of *types.TypeParamList) string {
	var names []string
	for p := range of.TypeParams() {
		names = append(names, p.Obj().Name()+" "+p.Constraint().String())
	}
	if len(names) == 0 {
		return ""
	}
	return "[" + strings.Join(names, ", ") + "]"
}
