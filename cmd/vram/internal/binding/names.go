package binding

import (
	"fmt"
	"go/token"
	"regexp"
	"strings"
	"unicode"

	"github.com/ianlancetaylor/demangle"

	"github.com/go-vram/vram/compute/ptx"
)

// signature is the part of a kernel's declaration that its C++ name has.
type signature struct {
	name       string
	parameters []demangle.AST
}

// maxMangled keeps the work of demangling small.
const maxMangled = 4096

// demangled returns the signature of an entry; of one that no C++ compiler has named it has the name alone.
func demangled(entry string) signature {
	if len(entry) > maxMangled {
		return signature{name: entry}
	}
	ast, err := demangle.ToAST(entry, demangle.NoClones)
	if err != nil {
		return signature{name: entry}
	}
	typed, ok := ast.(*demangle.Typed)
	if !ok {
		return signature{name: demangle.ASTToString(ast)}
	}
	s := signature{name: demangle.ASTToString(typed.Name)}
	if f, ok := typed.Type.(*demangle.FunctionType); ok {
		s.parameters = f.Args
	}
	return s
}

// at returns the type of a parameter as C++ writes it, or "".
func (s signature) at(n int) string {
	if n >= len(s.parameters) {
		return ""
	}
	return demangle.ASTToString(s.parameters[n])
}

func isPointer(inCPP string) bool {
	return strings.HasSuffix(strings.TrimRight(strings.ReplaceAll(inCPP, "__restrict", ""), " "), "*")
}

// cppTypes are the types that C++ names and PTX does not tell from others of their size.
//
//nolint:gochecknoglobals // constant table of types
var cppTypes = map[string]struct {
	goType string
	bytes  int
	note   string
}{
	"bool": {"bool", 1, ""}, "char": {"int8", 1, ""}, "signed char": {"int8", 1, ""}, "unsigned char": {"uint8", 1, ""},
	"short": {"int16", 2, ""}, "unsigned short": {"uint16", 2, ""}, "int": {"int32", 4, ""}, "unsigned int": {"uint32", 4, ""},
	"int8_t": {"int8", 1, ""}, "int16_t": {"int16", 2, ""}, "int32_t": {"int32", 4, ""}, "int64_t": {"int64", 8, ""},
	"uint8_t": {"uint8", 1, ""}, "uint16_t": {"uint16", 2, ""}, "uint32_t": {"uint32", 4, ""}, "uint64_t": {"uint64", 8, ""},
	"unsigned": {"uint32", 4, ""}, "size_t": {"uint64", 8, ""}, "ptrdiff_t": {"int64", 8, ""},
	"long": {"int64", 8, ""}, "unsigned long": {"uint64", 8, ""}, "long long": {"int64", 8, ""}, "unsigned long long": {"uint64", 8, ""},
	"__half": {"uint16", 2, "the bits of a __half"}, "__nv_bfloat16": {"uint16", 2, "the bits of a __nv_bfloat16"},
}

var (
	packageName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	numbered    = regexp.MustCompile(`_param_(\d+)$`)
	firstWord   = regexp.MustCompile(`[A-Za-z0-9]+`)
)

func isPackageName(name string) bool {
	return packageName.MatchString(name) && !token.IsKeyword(name) && name != "main"
}

// camel joins the words of a text: "ns::add_all<float>" is NsAddAllFloat. It is "" for a text without letters and digits.
func camel(text string) string {
	var b strings.Builder
	upper := true
	for _, r := range text {
		switch {
		case r == '*':
			b.WriteString("Ptr")
			upper = true
		case r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)):
			if upper {
				r = unicode.ToUpper(r)
			}
			b.WriteRune(r)
			upper = false
		default:
			upper = true
		}
	}
	return b.String()
}

// exported returns an exported Go name for a text.
func exported(text string) string {
	name := camel(text)
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "Kernel" + name
	}
	return name
}

// unexported returns a Go name for a text that is no word of the language, nor one that Go declares or the generated code uses. A
// text that begins with a small letter stays as it is written. Else the capitals at the begin of its first word become small: all of
// an initialism, as of ID, HTTPServer and LUTx, which are id, httpServer and lutX. The last capital before two small letters or more
// begins a word of its own, as in NCells, and one small letter is such a word, but for the s of IDs, which is ids.
func unexported(text string) string {
	name := ""
	if first := firstWord.FindStringIndex(text); first == nil || text[first[0]] >= 'a' {
		name = exported(text)
		name = strings.ToLower(name[:1]) + name[1:]
	} else {
		name = lowered(exported(text[first[0]:first[1]])) + camel(text[first[1]:])
	}
	if token.IsKeyword(name) || reserved[name] {
		name += "Value"
	}
	return name
}

// lowered returns a word with a small initialism at its begin.
func lowered(word string) string {
	capitals := lettersAt(word, 0, unicode.IsUpper)
	small := lettersAt(word, capitals, unicode.IsLower)
	head, tail := word[:capitals], word[capitals:]
	switch {
	case capitals == 1 || small == 0 || small == 1 && tail[0] == 's':
	case small == 1:
		tail = strings.ToUpper(tail[:1]) + tail[1:]
	default:
		head, tail = word[:capitals-1], word[capitals-1:]
	}
	return strings.ToLower(head) + tail
}

// lettersAt counts the letters of a kind from a place on.
func lettersAt(name string, at int, is func(rune) bool) (n int) {
	for at+n < len(name) && is(rune(name[at+n])) {
		n++
	}
	return n
}

// reserved are the names that a parameter may not hide.
//
//nolint:gochecknoglobals // constant table of names
var reserved = map[string]bool{
	"cuda": true, "errors": true, "kernels": true, "on": true, "geometry": true, "queued": true, "nil": true, "error": true, "string": true, "bool": true,
	"int8": true, "int16": true, "int32": true, "int64": true, "uint8": true, "uint16": true, "uint32": true, "uint64": true,
	"float32": true, "float64": true, "byte": true, "len": true, "cap": true, "new": true, "make": true, "copy": true, "min": true, "max": true,
	"true": true, "false": true, "any": true, "append": true, "clear": true, "close": true, "complex": true, "delete": true, "imag": true,
	"int": true, "iota": true, "panic": true, "print": true, "println": true, "real": true, "recover": true, "rune": true, "uint": true,
	"uintptr": true, "comparable": true, "complex64": true, "complex128": true,
}

// names gives each name once.
type names map[string]bool

// take returns the name, or the name with the first number that makes it new.
func (n names) take(name string) string {
	unique := name
	for k := 2; n[unique]; k++ {
		unique = fmt.Sprintf("%s%d", name, k)
	}
	n[unique] = true
	return unique
}

// nameKernels names the methods, in the order of the texts.
func nameKernels(kernels []*kernel) {
	methods, types := names{"Close": true, "Function": true, "On": true}, names{"Kernels": true, "Load": true, "Queued": true}
	fields := names{"modules": true, "load": true} // and the method of that name
	for _, k := range kernels {
		k.method = methods.take(exported(k.cpp))
		k.field = fields.take(unexported(k.method))
		for i := range k.parameters {
			if p := &k.parameters[i]; p.bytes > 0 {
				p.goType = types.take(k.method + exported(p.name))
			}
		}
	}
}

// nameParameters names parameters as the text does; where the compiler did, as the source does, or by their numbers.
func nameParameters(f *ptx.Function, source declaration, parameters []parameter) {
	taken := names{}
	for n := range parameters {
		name := f.Params[n].Name
		if found := numbered.FindStringSubmatch(name); found != nil {
			if name = source.parameters[n].name; camel(name) == "" {
				name = "p" + found[1]
			} else {
				parameters[n].numbered = f.Params[n].Name
			}
		}
		parameters[n].name = taken.take(unexported(name))
	}
}
