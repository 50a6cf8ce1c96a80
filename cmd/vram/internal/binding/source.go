package binding

import (
	"regexp"
	"strings"
)

// declaration is a kernel's declaration in CUDA C++.
type declaration struct{ parameters []declared }

// declared is a parameter of a declaration: its name, "" if it has none, and its type without qualifiers.
type declared struct{ name, inCPP string }

// declarations are kernels by name, without namespaces and template arguments. Overloads have one name.
type declarations map[string][]declaration

var (
	comment    = regexp.MustCompile(`(?s)//[^\n]*|/\*.*?\*/`)
	identifier = regexp.MustCompile(`[A-Za-z_]\w*`)
	lastName   = regexp.MustCompile(`^(.*[^\w])([A-Za-z_]\w*)\s*(\[[^\]]*\])?$`)
)

// qualifiers say nothing about the Go type of a parameter.
//
//nolint:gochecknoglobals // constant table of words
var qualifiers = map[string]bool{
	"const": true, "volatile": true, "__restrict__": true, "__restrict": true, "restrict": true, "__grid_constant__": true, "struct": true, "std": true,
}

// declarationsIn finds the kernels that a source declares. Macros are not expanded: a declaration that needs them is left out, or
// has types that Generate does not know.
func declarationsIn(source string) declarations {
	all := declarations{}
	for n, text := range strings.Split(comment.ReplaceAllString(source, " "), "__global__") {
		if n == 0 {
			continue // text before the first kernel
		}
		if name, parameters, ok := declarationAt(text); ok {
			all[name] = append(all[name], declaration{parameters})
		}
	}
	return all
}

// declarationAt reads the declaration that follows __global__, up to the next kernel. Attributes, as __launch_bounds__(256), come before the name.
func declarationAt(text string) (name string, parameters []declared, ok bool) {
	for {
		head, rest, found := strings.Cut(text, "(")
		if !found || strings.ContainsAny(head, ";{}") {
			return "", nil, false
		}
		inside, after, closed := balanced(rest)
		words := identifier.FindAllString(head, -1)
		if !closed || len(words) == 0 {
			return "", nil, false
		}
		if name = words[len(words)-1]; strings.HasPrefix(name, "__") {
			text = after
			continue
		}
		for _, one := range split(inside) {
			parameters = append(parameters, newDeclared(one))
		}
		return name, parameters, true
	}
}

// balanced cuts a text at the parenthesis that closes it.
func balanced(text string) (inside, after string, closed bool) {
	depth := 1
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			return text[:i], text[i+1:], true
		}
	}
	return text, "", false
}

// split cuts a list at its commas, outside template arguments and calls.
func split(list string) (all []string) {
	depth, begin := 0, 0
	for i, r := range list {
		switch r {
		case '(', '<', '[':
			depth++
		case ')', '>', ']':
			depth--
		case ',':
			if depth == 0 {
				all, begin = append(all, list[begin:i]), i+1
			}
		}
	}
	if last := strings.TrimSpace(list[begin:]); last != "" && last != "void" || len(all) > 0 {
		all = append(all, list[begin:])
	}
	return all
}

// newDeclared reads a parameter, as const float *__restrict__ x.
func newDeclared(text string) declared {
	text, _, _ = strings.Cut(text, "=")
	text = " " + strings.TrimSpace(text)
	var d declared
	if found := lastName.FindStringSubmatch(text); found != nil && identifier.MatchString(withoutQualifiers(found[1])) && !qualifiers[found[2]] {
		d.name = found[2]
		if text = found[1]; found[3] != "" {
			text += "*"
		}
	}
	d.inCPP = withoutQualifiers(text)
	return d
}

// withoutQualifiers returns a type with one space between its words.
func withoutQualifiers(inCPP string) string {
	var words []string
	for w := range strings.FieldsSeq(strings.NewReplacer("*", " * ", "&", " & ", "::", " ").Replace(inCPP)) {
		if !qualifiers[w] {
			words = append(words, w)
		}
	}
	return strings.Join(words, " ")
}

// of returns the declaration of a kernel with a number of parameters; kernel is its name in C++.
func (all declarations) of(kernel string, parameters int) (d declaration) {
	kernel, _, _ = strings.Cut(kernel, "<")
	kernel = kernel[strings.LastIndex(kernel, ":")+1:]
	for _, d := range all[kernel] {
		if len(d.parameters) == parameters {
			return d
		}
	}
	return declaration{make([]declared, parameters)}
}
