package api_test

import (
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Each package that imports vram compiles all methods of all generic types that the imported types refer to, also by unexported fields and
// methods: see docs/decisions/032-compile-time-of-importers.md. The bound is for compute/ops, which has the most.
func TestTypesReferToFewGenericTypes(t *testing.T) {
	for _, p := range forUsers {
		w := genericTypes{seen: map[string]bool{}, methods: map[string]int{}, ways: map[string]string{}}
		for _, name := range load(t)[p].Scope().Names() {
			if o, ok := load(t)[p].Scope().Lookup(name).(*types.TypeName); ok && o.Exported() {
				w.visit(o.Type(), o.Name())
			}
		}
		sum, list := 0, ""
		for _, generic := range slices.Sorted(maps.Keys(w.methods)) {
			sum += w.methods[generic]
			list += fmt.Sprintf("%4d of %s by %s\n", w.methods[generic], generic, w.ways[generic])
		}
		assert.LessOrEqual(t, sum, 520, "methods of generic types that each package which imports %q compiles:\n%s", p, list)
	}
}

// genericTypes finds the instances of generic types with methods that a type refers to.
type genericTypes struct {
	seen    map[string]bool
	methods map[string]int    // of all instances of a generic type
	ways    map[string]string // to the first one
}

func (w *genericTypes) visit(of types.Type, way string) {
	switch of := of.(type) {
	case *types.Alias:
		w.visit(types.Unalias(of), way)
	case *types.Named:
		w.named(of, way)
	case *types.Signature:
		if of.TypeParams() == nil {
			w.visit(of.Params(), way)
			w.visit(of.Results(), way)
		}
	case *types.Tuple:
		for v := range of.Variables() {
			w.visit(v.Type(), way)
		}
	case *types.Struct:
		for f := range of.Fields() {
			w.visit(f.Type(), way+"."+f.Name())
		}
	case *types.Interface:
		for m := range of.Methods() {
			w.visit(m.Type(), way+"."+m.Name())
		}
	case *types.Map:
		w.visit(of.Key(), way)
		w.visit(of.Elem(), way)
	case interface{ Elem() types.Type }:
		w.visit(of.Elem(), way)
	}
}

// named visits the parts of a type with a name. A generic type without arguments has none that are compiled here.
func (w *genericTypes) named(of *types.Named, way string) {
	text := of.String()
	if w.seen[text] || of.TypeArgs().Len() == 0 && of.TypeParams().Len() > 0 {
		return
	}
	w.seen[text] = true
	if of.TypeArgs().Len() > 0 && of.NumMethods() > 0 {
		generic, _, _ := strings.Cut(of.Origin().String(), "[")
		if w.methods[generic] == 0 {
			w.ways[generic] = way
		}
		w.methods[generic] += of.NumMethods()
	}
	for a := range of.TypeArgs().Types() {
		w.visit(a, way)
	}
	w.visit(of.Underlying(), way)
	for m := range of.Methods() {
		w.visit(m.Type(), way+"."+m.Name())
	}
}
