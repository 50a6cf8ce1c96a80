// Package api holds the list of the names that this module promises to its users: vram.txt, in the form of Go's own api/*.txt.
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
	"path"
	"regexp"
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

// forUsers are the packages whose exported names are for programs that use this module; the header of vram.txt describes them.
var forUsers = []string{
	"", "futures", "warm", "vramtest", "host", "cuda", "cuda/share", "cuda/sleep", "cuda/gemm", "cuda/cublaslt", "compute/kernel/attention", "compute/kernel/matmul",
	"compute/tensor", "compute/tensor/half", "compute/tensor/layout", "compute/tensor/safetensors", "compute/kernel", "compute/kernel/expr", "compute/kernel/plan", "compute/kernel/elementary", "cuda/nvrtc", "compute/kernel/store",
	"compute/kernel/tune", "compute/kernel/tune/tables", "compute/ops", "monitor/snapshot",
	"cudadrv", "cudadrv/dynamic", "cudadrv/sim", "cudadrv/fault", "cudadrv/hazard", "cudadrv/drivertest", "cudadrv/site",
	"cudadrv/sim/ptxrun", "cudadrv/cpu", "compute/ptx", "compute/ptx/interp", "monitor/heapprofile", "monitor/heapprofile/handler", "monitor/history", "monitor/page",
	"monitor/metrics", "monitor/expvars", "monitor/regions", "monitor/gpus",
}

// shared are the packages below the root whose types appear in the root's signatures and fields. Their other names are not for
// users.
var shared = []string{"pool", "streams", "cudadrv/meter"}

const header = `# The exported names of the packages that programs import: functions, methods, fields, constants and variables.
#
# For users: the module's root, whose aliases are listed with the methods and fields of their types; futures, for its types; warm;
# vramtest; host; cuda with its subpackages; compute/tensor, compute/kernel, compute/ops and compute/ptx with their
# subpackages except internal ones; monitor/snapshot, monitor/history, monitor/page, monitor/metrics, monitor/expvars, monitor/regions, monitor/gpus
# and monitor/heapprofile with its handler; of the drivers cudadrv, cudadrv/dynamic, cudadrv/sim with cudadrv/sim/ptxrun, cudadrv/cpu, cudadrv/fault, cudadrv/hazard (the
# reports of vramtest), cudadrv/site (places in errors) and cudadrv/drivertest (tests for a driver of your own).
#
# Types of pool, streams and cudadrv/meter that the root's signatures and fields reach are public, too: they are listed under their
# packages, with the constants of these types.
#
# Not for users, though they can be imported, and free to change: actors, batch, the other names of pool, streams and cudadrv/meter, and
# the packages below them. cudadrv/gorgonia is for users and not listed, since it compiles only with its build tag and the headers of CUDA.
#
# A change of this file is a change that callers see: go test ./api -update writes it, and CHANGELOG.md explains it.
`

var update = flag.Bool("update", false, "write vram.txt")

// The list equals the names that the packages export.
func TestExportedNames(t *testing.T) {
	var text bytes.Buffer
	text.WriteString(header)
	exports := load(t)
	for _, p := range forUsers {
		writePackage(&text, exports[p])
	}
	writeReachable(&text, exports)
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

// Every type in the root's signatures and fields can be named by a caller, and is listed.
func TestTheRootShowsNamedTypes(t *testing.T) {
	var text bytes.Buffer
	exports := load(t)
	writePackage(&text, exports[""])
	writeReachable(&text, exports)
	all := text.String()
	for _, line := range lines(all) {
		_, is, _ := strings.Cut(line, ", ")
		for _, inside := range []string{"internal/", "actors.", "batch."} {
			assert.NotContains(t, is, inside, "a caller cannot name this type, or should not need it")
		}
		for _, name := range regexp.MustCompile(`(pool|streams|cudadrv/meter)\.(\w+)`).FindAllStringSubmatch(is, -1) {
			assert.Contains(t, all, "\npkg "+path.Base(name[1])+", type "+name[2]+" ", line)
		}
	}
	assert.Contains(t, all, "\npkg pool, type Holder struct, HeldBytes int64\n")
	assert.Contains(t, all, "\npkg pool, const RaiseLimit RemedyKind\n")
}

// A name that was removed, renamed or changed appears as a missing line.
func TestDifference(t *testing.T) {
	gone, added := difference([]string{"a", "b", "c"}, []string{"a", "c2", "d"})
	assert.Equal(t, []string{"b", "c"}, gone)
	assert.Equal(t, []string{"c2", "d"}, added)
}

func lines(text string) []string { return strings.Split(strings.TrimSpace(text), "\n") }

// difference returns the lines that only one of the lists has.
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
	all := slices.Concat(forUsers, shared)
	for _, p := range all {
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
		importPath, file, _ := strings.Cut(line, "\t")
		files[importPath] = file
	}
	compiled := importer.ForCompiler(token.NewFileSet(), "gc", func(p string) (io.ReadCloser, error) { return os.Open(files[p]) })
	packages := map[string]*types.Package{}
	for _, p := range all {
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

func newLister(p *types.Package, shared ...*types.Package) *lister {
	l := &lister{pkg: p, aliases: map[*types.TypeName]string{}}
	for _, of := range slices.Concat([]*types.Package{p}, shared) {
		for name, o := range aliasesOf(of) {
			if of != p {
				name = folderOf(of) + "." + name
			}
			if l.aliases[o] == "" {
				l.aliases[o] = name
			}
		}
	}
	return l
}

// aliasesOf returns the types of other packages for which a package has a name.
func aliasesOf(p *types.Package) map[string]*types.TypeName {
	all := map[string]*types.TypeName{}
	for _, name := range p.Scope().Names() {
		o, ok := p.Scope().Lookup(name).(*types.TypeName)
		if ok && o.Exported() && o.IsAlias() {
			if of, ok := types.Unalias(o.Type()).(*types.Named); ok {
				all[name] = of.Origin().Obj()
			}
		}
	}
	return all
}

func folderOf(p *types.Package) string {
	return strings.TrimPrefix(strings.TrimPrefix(p.Path(), module), "/")
}

func writePackage(w io.Writer, p *types.Package) {
	l := newLister(p, sharedOf(p)...)
	for _, name := range p.Scope().Names() {
		if o := p.Scope().Lookup(name); o.Exported() {
			l.object(o)
		}
	}
	l.write(w)
}

// sharedOf returns the shared packages among the imports of p.
func sharedOf(p *types.Package) (found []*types.Package) {
	for _, of := range p.Imports() {
		if slices.Contains(shared, folderOf(of)) {
			found = append(found, of)
		}
	}
	return found
}

// writeReachable lists the types of shared packages that the root reaches and has no alias for, with their constants.
func writeReachable(w io.Writer, exports map[string]*types.Package) {
	root := exports[""]
	found := reached{seen: map[*types.TypeName]bool{}}
	for _, name := range root.Scope().Names() {
		if o := root.Scope().Lookup(name); o.Exported() {
			found.visit(o.Type())
		}
	}
	for _, o := range aliasesOf(root) {
		delete(found.seen, o)
	}
	listed := map[*types.TypeName]bool{}
	for _, folder := range shared {
		p := exports[folder]
		l := newLister(p, sharedOf(p)...)
		for _, name := range p.Scope().Names() {
			o := p.Scope().Lookup(name)
			of, named := types.Unalias(o.Type()).(*types.Named)
			if !o.Exported() || !named || !found.seen[of.Origin().Obj()] {
				continue
			}
			switch o := o.(type) {
			case *types.Const:
				l.object(o)
			case *types.TypeName:
				if t := of.Origin().Obj(); !listed[t] && (o == t || !slices.Contains(shared, folderOf(t.Pkg()))) {
					listed[t] = true // pool's name, where streams has one, too
					l.typeName(o)
				}
			}
		}
		l.write(w)
	}
}

// reached collects the named types of this module that a caller of the root gets at through exported fields, methods and
// signatures.
type reached struct{ seen map[*types.TypeName]bool }

func (r *reached) visit(t types.Type) {
	switch t := types.Unalias(t).(type) {
	case *types.Named:
		r.named(t)
	case *types.Map:
		r.visit(t.Key())
		r.visit(t.Elem())
	case interface{ Elem() types.Type }: // pointers, slices, arrays and channels
		r.visit(t.Elem())
	case *types.Signature:
		for v := range t.Params().Variables() {
			r.visit(v.Type())
		}
		for v := range t.Results().Variables() {
			r.visit(v.Type())
		}
	case *types.Struct:
		for f := range t.Fields() {
			if f.Exported() {
				r.visit(f.Type())
			}
		}
	case *types.Interface:
		for m := range t.Methods() {
			r.visit(m.Type())
		}
	}
}

func (r *reached) named(t *types.Named) {
	for of := range t.TypeArgs().Types() {
		r.visit(of)
	}
	o := t.Origin().Obj()
	if o.Pkg() == nil || !strings.HasPrefix(o.Pkg().Path(), module) || r.seen[o] {
		return
	}
	folder := folderOf(o.Pkg())
	if slices.Contains(forUsers, folder) && folder != "" {
		return // listed with its package
	}
	r.seen[o] = true
	r.visit(t.Underlying())
	for m := range types.NewMethodSet(types.NewPointer(t)).Methods() {
		if m.Obj().Exported() {
			r.visit(m.Obj().Type())
		}
	}
}

func (l *lister) write(w io.Writer) {
	slices.Sort(l.out)
	fmt.Fprintln(w)
	for _, line := range l.out {
		fmt.Fprintf(w, "pkg %s, %s\n", l.pkg.Name(), line)
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

// typeName lists a type, or the type of an alias, with its fields and methods.
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

// text prints a type with the package's names.
func (l *lister) text(t types.Type) string {
	s := types.TypeString(t, func(p *types.Package) string {
		if p == l.pkg {
			return ""
		}
		return folderOf(p)
	})
	for of, name := range l.aliases {
		s = replaceWord(s, folderOf(of.Pkg())+"."+of.Name(), name)
	}
	return s
}

// replaceWord replaces a qualified name where no letter, digit or underscore follows.
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

// signature prints the signature of a function without the names of parameters.
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

// parameterNames prints the type parameters of a generic type, as in Future[T].
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

// typeParameters prints the type parameters of a generic function with their constraints, as in [T any].
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
