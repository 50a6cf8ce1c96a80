package mutate

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// number stands for a mutant's number in the texts of wraps. No source has this byte.
const number = "\x01"

// overlayFile is the name of the file with the switches, in each changed package.
const overlayFile = "mutants_overlay.go"

// Schemata is the source of packages with mutants, each under a switch. The number of a mutant is its index, from 1.
type Schemata struct {
	Mutants []*Mutant
	Dropped []*Mutant         // their text does not compile
	Texts   map[string]string // of the changed files, by their absolute paths
}

// Schemata writes all these mutants into their packages.
func (p *Program) Schemata(mutants []*Mutant) (*Schemata, error) {
	s := &Schemata{Mutants: mutants, Texts: map[string]string{}}
	numbers := map[*Mutant]int{}
	byFile := map[*source][]*Mutant{}
	for i, m := range mutants {
		numbers[m] = i + 1
		byFile[m.file] = append(byFile[m.file], m)
	}
	for _, of := range p.packages {
		if !slices.ContainsFunc(of.files, func(f *source) bool { return len(byFile[f]) > 0 }) {
			continue
		}
		if err := s.write(p, of, byFile, numbers); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// write writes a package, and drops mutants until it compiles.
func (s *Schemata) write(p *Program, of *pkg, byFile map[*source][]*Mutant, numbers map[*Mutant]int) error {
	const rounds = 30 // each takes the innermost mutant at every error; a mutant contains few others
	helper := strings.Replace(helpers, "package mutants", "package "+of.name, 1)
	for range rounds {
		texts := map[string]string{}
		ranges := map[string][]written{}
		for _, f := range of.files {
			texts[f.path], ranges[f.path] = f.rewrite(byFile[f], numbers)
		}
		folder := filepath.Dir(of.files[0].path)
		texts[filepath.Join(folder, overlayFile)] = helper
		wrong := p.compile(of, texts)
		if len(wrong) == 0 {
			maps.Copy(s.Texts, texts)
			return nil
		}
		dropped := 0
		for _, at := range wrong {
			m := innermost(ranges[at.Filename], at.Offset)
			if m == nil {
				continue
			}
			if i := slices.Index(byFile[m.file], m); i >= 0 {
				byFile[m.file] = slices.Delete(byFile[m.file], i, i+1)
				s.Dropped = append(s.Dropped, m)
				dropped++
			}
		}
		if dropped == 0 {
			return fmt.Errorf("mutate: %s: %v: a text that does not compile belongs to no mutant", of.dir, wrong[0])
		}
	}
	return fmt.Errorf("mutate: %s does not compile after %d rounds", of.dir, rounds)
}

// written is where a mutant's text is in a rewritten file.
type written struct {
	m          *Mutant
	begin, end int
}

func innermost(all []written, at int) (m *Mutant) {
	least := -1
	for _, w := range all {
		if length := w.end - w.begin; w.begin <= at && at <= w.end && (least < 0 || length < least) {
			m, least = w.m, length
		}
	}
	return m
}

// edit is one insertion, or the replacement of a token.
type edit struct {
	at, remove int
	text       string
	m          *Mutant
	order      [4]int // of edits at one place
	opens      bool
	wrap       int
}

// rewrite returns the file with its mutants. At one place texts that end a part come first, inner parts before outer ones; then
// those that begin a part, outer parts first.
func (f *source) rewrite(mutants []*Mutant, numbers map[*Mutant]int) (string, []written) {
	var edits []edit
	for _, m := range mutants {
		name := strconv.Itoa(numbers[m])
		for i, w := range m.wraps {
			before, after := strings.ReplaceAll(w.before, number, name), strings.ReplaceAll(w.after, number, name)
			length := w.end - w.begin
			inner := 0
			if w.token[1] > 0 {
				inner = 1 // nothing may come between the helper and the parts around its comma
				edits = append(edits, edit{w.token[0], w.token[1] - w.token[0], ",", nil, [4]int{2}, false, i})
			}
			edits = append(edits, edit{w.begin, 0, before, m, [4]int{1, -length, inner, numbers[m]}, true, i})
			if length > 0 {
				edits = append(edits, edit{w.end, 0, after, m, [4]int{0, length, -inner, -numbers[m]}, false, i})
			}
		}
	}
	slices.SortFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at, b.at), slices.Compare(a.order[:], b.order[:]))
	})
	var out strings.Builder
	var all []written
	open := map[edit]int{}
	last := 0
	for _, e := range edits {
		out.WriteString(f.text[last:e.at])
		last = e.at + e.remove
		key := edit{m: e.m, wrap: e.wrap}
		if e.opens {
			open[key] = out.Len()
		}
		out.WriteString(e.text)
		if e.m != nil {
			all = append(all, written{e.m, open[key], out.Len()})
		}
	}
	out.WriteString(f.text[last:])
	return out.String(), all
}

// compile returns the places where the texts of a package are wrong.
func (p *Program) compile(of *pkg, texts map[string]string) (wrong []token.Position) {
	fset := token.NewFileSet()
	var trees []*ast.File
	for _, path := range slices.Sorted(maps.Keys(texts)) {
		tree, err := parser.ParseFile(fset, path, texts[path], parser.SkipObjectResolution)
		var list scanner.ErrorList
		if errors.As(err, &list) {
			for _, e := range list {
				wrong = append(wrong, e.Pos)
			}
		}
		trees = append(trees, tree)
	}
	if len(wrong) > 0 {
		return wrong
	}
	config := types.Config{Importer: p.importer, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e) {
			wrong = append(wrong, fset.Position(e.Pos))
		}
	}}
	_, _ = config.Check(of.path, fset, trees, nil) // Error has all of them
	return wrong
}
