package cuda

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-vram/vram/internal/units"
)

// A textParam is a parameter in the text of a kernel.
type textParam struct {
	name    string    // "" where the text is not understood
	typ     *textType // of textTypes; nil where the text is not understood
	array   bool
	pointer bool
	bytes   int32
	align   int32
}

// A signature is a kernel's list of parameters.
type signature struct {
	count  int
	params []textParam // nil where there are none, no text is known, or texts differ
	mixed  bool        // texts differ
}

// A signatureReader reads the signatures of kernels in PTX, which it does not trust: of other text it makes other signatures,
// with no more memory than a few times the text's size.
type signatureReader struct{ rest []byte }

// maxTextParams and maxTextBytes bound the parameters of a kernel whose text is kept. No kernel has larger ones.
const (
	maxTextParams = maxParamBytes
	maxTextBytes  = 32764
	maxTextAlign  = 128
)

// next finds the next kernel. sure says that its list of parameters has an end, and nothing but parameters.
func (r *signatureReader) next() (kernel string, s signature, sure, found bool) {
	if !r.skipTo(".entry") {
		return "", signature{}, false, false
	}
	kernel = string(r.word())
	if r.rest = skipBlank(r.rest); len(r.rest) == 0 || r.rest[0] != '(' {
		return kernel, s, len(r.rest) > 0, true
	}
	if r.rest = skipBlank(r.rest[1:]); len(r.rest) > 0 && r.rest[0] == ')' {
		return kernel, s, true, true
	}
	for {
		p, end, ok := r.param()
		if !ok {
			return kernel, s, false, true
		}
		s.add(p)
		if end != ',' {
			return kernel, s, true, true
		}
	}
}

// add adds a parameter.
func (s *signature) add(p textParam) {
	if s.count++; s.count > maxTextParams {
		s.params = nil
		return
	}
	s.params = append(s.params, p)
}

// merge returns the signature of two parts of an image. ok is false where their counts differ.
func (s signature) merge(t signature) (_ signature, ok bool) {
	switch {
	case s.count != t.count:
		return s, false
	case s.mixed || t.params == nil:
		return s, true
	case s.params == nil:
		return t, true
	case !slices.Equal(s.params, t.params):
		return signature{count: s.count, mixed: true}, true
	}
	return s, true
}

// skipTo skips the text up to a directive, and the directive. It looks into no comments and no strings.
func (r *signatureReader) skipTo(directive string) bool {
	text := r.rest
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '/':
			if rest := skipBlank(text[i:]); len(rest) < len(text)-i {
				i = len(text) - len(rest) - 1
			}
		case '"':
			end := bytes.IndexAny(text[i+1:], "\"\n")
			if end < 0 {
				end = len(text)
			}
			i += 1 + end
		case '.':
			if rest, ok := bytes.CutPrefix(text[i:], []byte(directive)); ok && (len(rest) == 0 || !isNameByte(rest[0])) {
				r.rest = rest
				return true
			}
		}
	}
	r.rest = nil
	return false
}

// word skips blanks and reads a name, a number, or a directive with its point; and any other byte, but a comma or the closing
// parenthesis, alone. It returns nothing at the end of a parameter.
func (r *signatureReader) word() []byte {
	r.rest = skipBlank(r.rest)
	n := 0
	if len(r.rest) > 0 && r.rest[0] == '.' {
		n++
	}
	for n < len(r.rest) && isNameByte(r.rest[n]) {
		n++
	}
	if n == 0 && len(r.rest) > 0 && r.rest[0] != ',' && r.rest[0] != ')' {
		n++
	}
	word := r.rest[:n]
	r.rest = r.rest[n:]
	return word
}

// param reads a parameter and the byte after it: a comma, the closing parenthesis, or 0 at the end of the text. ok says that it
// begins as a parameter.
func (r *signatureReader) param() (p textParam, end byte, ok bool) {
	p, understood := textParam{}, true
	word := r.word()
	if ok = string(word) == ".param"; ok {
		for word = r.word(); len(word) > 0; word = r.word() {
			understood = understood && r.attribute(&p, word)
		}
	}
	for len(word) > 0 {
		word = r.word()
	}
	if p.lay(); !understood || p.bytes == 0 || p.name == "" {
		p = textParam{}
	}
	if len(r.rest) == 0 {
		return textParam{}, 0, false
	}
	end, r.rest = r.rest[0], r.rest[1:]
	return p, end, ok
}

// attribute notes a word of a parameter, and reports whether it is understood.
func (r *signatureReader) attribute(p *textParam, word []byte) bool {
	switch string(word) {
	case ".align":
		n, ok := r.number(maxTextAlign)
		if !p.pointer && ok { // else it is the alignment of the memory
			p.align = n
		}
		return ok && n&(n-1) == 0
	case ".ptr":
		p.pointer = true
		return true
	case ".global", ".const", ".shared", ".local":
		return p.pointer
	case "[":
		n, ok := r.number(maxTextBytes)
		if !p.array {
			p.bytes = 1
		}
		p.array, p.bytes = true, min(p.bytes*n, maxTextBytes+1)
		return ok && p.name != "" && string(r.word()) == "]"
	}
	if isNameByte(word[0]) {
		first := p.name == ""
		p.name = string(word)
		return first && (word[0] < '0' || word[0] > '9')
	}
	i := slices.IndexFunc(textTypes[:], func(t textType) bool { return t.name == string(word) })
	if i < 0 || p.typ != nil {
		return false
	}
	p.typ = &textTypes[i]
	return true
}

// number reads a number above 0, up to a limit.
func (r *signatureReader) number(limit int32) (int32, bool) {
	n, err := strconv.ParseUint(strings.TrimSuffix(string(r.word()), "U"), 0, 32)
	if err != nil || n == 0 || n > uint64(limit) { //nolint:gosec // not negative
		return 0, false
	}
	return int32(n), true //nolint:gosec // at most the limit
}

// lay sets size and alignment: 0 bytes where they are not known.
func (p *textParam) lay() {
	if p.typ == nil {
		p.bytes = 0
		return
	}
	size := int32(p.typ.bytes) //nolint:gosec // 16 at most
	if !p.array {
		p.bytes = 1
	}
	if p.bytes *= size; p.bytes > maxTextBytes {
		p.bytes = 0
	}
	p.align = max(p.align, size)
}

// takes returns the arguments that the parameter takes.
func (p *textParam) takes() kinds {
	switch {
	case p.typ == nil:
		return anyKind
	case p.array:
		return anyKind&^of(bytes2Kind, bytes4Kind, bytes8Kind) | alignedTo(int(p.align))
	case p.pointer:
		return of(addressKind)
	}
	return p.typ.takes
}

// text returns the type as PTX writes it, without the name.
func (p *textParam) text() string {
	switch {
	case p.typ == nil:
		return ""
	case p.array:
		return ".align " + strconv.Itoa(int(p.align)) + " " + p.typ.name + "[" + strconv.Itoa(int(p.bytes)/p.typ.bytes) + "]"
	case p.pointer:
		return p.typ.name + " .ptr"
	}
	return p.typ.name
}

// takenBy lists the arguments that a parameter takes. typ is from textParam.text.
func takenBy(typ string) string {
	declared := typ + " name"
	if at := strings.IndexByte(typ, '['); at >= 0 {
		declared = typ[:at] + " name" + typ[at:]
	}
	r := signatureReader{[]byte(".param " + declared + ")")}
	p, _, _ := r.param()
	if p.array {
		return "values that are aligned to at most " + units.Count(int(p.align), "byte")
	}
	return p.takes().String()
}

// skipBlank returns text without the blanks and comments that it begins with.
func skipBlank(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n\v\f")
		var end []byte
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			end = []byte("\n")
		case bytes.HasPrefix(text, []byte("/*")):
			end = []byte("*/")
		default:
			return text
		}
		_, text, _ = bytes.Cut(text[2:], end)
	}
}

func isNameByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '$' || b == '%'
}
