package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// checkExported finds exported names of public packages without a comment. revive checks most of them, too, but no methods of
// interfaces, and a //nolint silences it. Fields need no comment of their own.
func checkExported(t *tree) []finding {
	c := &commentCheck{tree: t}
	for _, s := range t.shipped() {
		if isPublic(s) {
			for _, d := range s.file.Decls {
				c.declaration(d)
			}
		}
	}
	return c.found
}

// isPublic reports whether other modules can import the package.
func isPublic(s source) bool {
	for folder := range strings.SplitSeq(s.dir, "/") {
		if folder == "internal" {
			return false
		}
	}
	return s.file.Name.Name != "main" && !within(s.dir, "examples")
}

type commentCheck struct {
	tree  *tree
	found []finding
}

func (c *commentCheck) want(name *ast.Ident, comments ...*ast.CommentGroup) {
	if !name.IsExported() {
		return
	}
	for _, comment := range comments {
		if comment.Text() != "" {
			return
		}
	}
	c.found = append(c.found, finding{c.tree.place(name), fmt.Sprintf("%s is exported and has no comment", name.Name)})
}

func (c *commentCheck) declaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || ast.IsExported(receiver(d)) {
			c.want(d.Name, d.Doc)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			c.spec(d, spec)
		}
	}
}

// receiver returns the name of a method's type.
func receiver(d *ast.FuncDecl) string {
	of := d.Recv.List[0].Type
	for {
		switch x := of.(type) {
		case *ast.StarExpr:
			of = x.X
		case *ast.IndexExpr:
			of = x.X
		case *ast.IndexListExpr:
			of = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// spec checks one type, or the values of one line: a group of constants or variables may share one comment.
func (c *commentCheck) spec(d *ast.GenDecl, spec ast.Spec) {
	switch spec := spec.(type) {
	case *ast.TypeSpec:
		if d.Lparen == token.NoPos {
			c.want(spec.Name, d.Doc, spec.Doc, spec.Comment)
		} else {
			c.want(spec.Name, spec.Doc, spec.Comment)
		}
		if !spec.Name.IsExported() {
			return
		}
		if of, ok := spec.Type.(*ast.InterfaceType); ok && of.Methods.NumFields() > 1 { // the type's comment describes a single method
			c.methods(of.Methods)
		}
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			c.want(name, d.Doc, spec.Doc, spec.Comment)
		}
	}
}

// methods checks the methods of an interface. One comment serves a paragraph: the lines below it up to an empty one.
func (c *commentCheck) methods(list *ast.FieldList) {
	var above *ast.CommentGroup // of the paragraph
	end := -1
	for _, m := range list.List {
		if m.Doc != nil {
			above = m.Doc
		} else if c.line(m.Pos()) != end+1 {
			above = nil
		}
		if above == nil {
			above = m.Comment
		}
		for _, name := range m.Names {
			c.want(name, above)
		}
		end = c.line(m.End())
	}
}

func (c *commentCheck) line(p token.Pos) int { return c.tree.fset.Position(p).Line }
