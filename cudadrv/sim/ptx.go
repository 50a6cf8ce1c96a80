package sim

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-vram/vram/cudadrv"
)

// program is the parsed part of PTX text: its kernels with their parameters, and its variables.
type program struct {
	version   int // 70 of ".version 7.0"
	kernels   map[string]*kernelText
	variables map[string]int64 // bytes
}

// maxPTXVersion is the newest that the simulated driver accepts: the version of CUDA 13.0.
const maxPTXVersion = 90

// architecture is the newest of which the device runs text: sm_90, and sm_90a, whose instructions it has alone.
const architecture = 90

// kernelText is the declaration of a kernel. Its body is not kept: an Executor parses the image itself.
type kernelText struct {
	name       string
	params     []param
	paramBytes int64
	maxThreads int // of a block: .maxntid or .reqntid, else maxBlockThreads
}

// param is where a parameter lies in the buffer of all.
type param struct{ offsetBytes, bytes int64 }

// Errors of an image.
var (
	errNoImage = errors.New("no image")
	errNoText  = errors.New("the simulator loads PTX text, no cubins or fat binaries")
	errNoPTX   = errors.New("the text does not begin with .version")
	errVersion = errors.New("ptx: newer than the driver")
	errSyntax  = errors.New("ptx")
)

// imageResult returns the CUDA result for an error of parse.
func imageResult(err error) cudadrv.Result {
	switch {
	case errors.Is(err, errNoImage):
		return cudadrv.InvalidValue
	case errors.Is(err, errNoText), errors.Is(err, errNoPTX):
		return cudadrv.InvalidImage
	case errors.Is(err, errVersion):
		return cudadrv.UnsupportedPTXVersion
	}
	return cudadrv.InvalidPTX
}

// parse reads the declarations of PTX text. Concatenated texts, each with its own header, are one program.
func parse(image []byte) (program, error) {
	if len(image) == 0 {
		return program{}, errNoImage
	}
	image = bytes.TrimRight(image, "\x00")
	for _, b := range image {
		if b < ' ' && (b < '\t' || b > '\r') {
			return program{}, errNoText
		}
	}
	r := newReader(string(image))
	p := program{kernels: map[string]*kernelText{}, variables: map[string]int64{}}
	if r.peek() != ".version" {
		return program{}, errNoPTX
	}
	for r.peek() != "" {
		if err := r.declaration(&p); err != nil {
			return program{}, fmt.Errorf("line %d: %w", r.line(), err)
		}
	}
	return p, nil
}

// declaration reads a declaration at the top level of a text.
func (r *reader) declaration(p *program) error {
	switch word := r.next(); word {
	case ".version":
		return r.version(p)
	case ".target":
		return r.target()
	case ".entry":
		k, err := r.entry()
		if err != nil {
			return err
		}
		if p.kernels[k.name] != nil {
			return fmt.Errorf("%w: two kernels have the name %s", errSyntax, k.name)
		}
		p.kernels[k.name] = k
	case ".global", ".const":
		if err := r.variable(p); err != nil {
			return err
		}
	case ".extern": // a declaration without a value
		for r.peek() != "" && !r.take(";") {
			r.next()
		}
	case "{":
		return r.body()
	case "}":
		return fmt.Errorf("%w: a brace is closed that was not opened", errSyntax)
	}
	return nil
}

func (r *reader) version(p *program) error {
	major, minor := r.next(), strings.TrimPrefix(r.next(), ".")
	version, err := strconv.Atoi(major + minor)
	switch {
	case err != nil:
		return fmt.Errorf("%w: version %q", errSyntax, major+"."+minor)
	case version > maxPTXVersion:
		return fmt.Errorf("%w: version %s.%s", errVersion, major, minor)
	}
	p.version = max(p.version, version)
	return nil
}

// target refuses text for a newer architecture than the device's, as the driver does. sm_90a is the device's own; a variant of
// an older architecture does not exist, which ptx.Check reports.
func (r *reader) target() error {
	name := r.next()
	if name == "" || !inName(name[0]) {
		return fmt.Errorf("%w: the name of a target cannot be %q", errSyntax, name)
	}
	sm, err := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(name, "sm_"), "af"))
	if err == nil && sm > architecture {
		return fmt.Errorf("%w: target %s is higher than the device's, sm_%d", errSyntax, name, architecture)
	}
	return nil
}

// length returns found, or the length of the text if nothing was found.
func length(text string, found int) int {
	if found < 0 {
		return len(text)
	}
	return found
}

// inName reports whether a name or number of PTX can have the byte.
func inName(b byte) bool {
	return b == '_' || b == '$' || b == '%' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

// reader reads the words of a text: names and numbers, each dot with the name after it, and single marks. It leaves out comments and the
// contents of strings. At the end it returns "".
type reader struct {
	text  string
	last  word // that next returned
	ahead word // that next will return
	from  int  // where the text after it begins
}

// word is where a word begins and ends.
type word struct{ start, end int }

func newReader(text string) *reader {
	r := &reader{text: text}
	r.scan()
	return r
}

// scan looks for the next word.
func (r *reader) scan() {
	for r.from < len(r.text) {
		switch start, rest := r.from, r.text[r.from:]; {
		case rest[0] <= ' ':
			r.from++
		case strings.HasPrefix(rest, "//"):
			r.from += length(rest, strings.IndexByte(rest, '\n'))
		case strings.HasPrefix(rest, "/*"):
			r.from += len("/*") + length(rest[2:], strings.Index(rest[2:], "*/"))
			if strings.HasPrefix(r.text[r.from:], "*/") {
				r.from += len("*/")
			}
		case rest[0] == '"':
			r.ahead = word{start, start + 1}
			r.from += 1 + length(rest[1:], strings.IndexByte(rest[1:], '"')) + 1
			return
		default:
			n := 1
			for n < len(rest) && inName(rest[n]) && (n > 1 || inName(rest[0]) || rest[0] == '.') {
				n++
			}
			r.from += n
			r.ahead = word{start, r.from}
			return
		}
	}
	r.ahead = word{len(r.text), len(r.text)}
}

// line returns the line of the last word; the first is 1.
func (r *reader) line() int { return 1 + strings.Count(r.text[:r.last.start], "\n") }

func (r *reader) peek() string { return r.text[r.ahead.start:r.ahead.end] }

func (r *reader) next() string {
	word := r.peek()
	if word != "" {
		r.last = r.ahead
		r.scan()
	}
	return word
}

// take consumes the next word if it equals word.
func (r *reader) take(word string) bool {
	if r.peek() != word {
		return false
	}
	r.next()
	return true
}

// entry reads a kernel's declaration, up to its body.
func (r *reader) entry() (*kernelText, error) {
	k := &kernelText{name: r.next(), maxThreads: maxBlockThreads}
	if k.name == "" || !inName(k.name[0]) {
		return nil, fmt.Errorf("%w: a kernel's name cannot be %q", errSyntax, k.name)
	}
	if r.take("(") && !r.take(")") {
		for {
			if err := r.param(k); err != nil {
				return nil, err
			}
			if r.take(")") {
				break
			}
			if !r.take(",") {
				return nil, fmt.Errorf("%w: kernel %s: %q after a parameter", errSyntax, k.name, r.peek())
			}
		}
	}
	for {
		switch word := r.peek(); word {
		case "{":
			return k, nil
		case "", ";", "}":
			return nil, fmt.Errorf("%w: kernel %s has no body", errSyntax, k.name)
		case ".maxntid", ".reqntid":
			r.next()
			threads, err := r.product()
			if err != nil {
				return nil, fmt.Errorf("%w: kernel %s: %s %w", errSyntax, k.name, word, err)
			}
			k.maxThreads = min(k.maxThreads, threads)
		default:
			r.next()
		}
	}
}

// product returns the product of numbers with commas between them.
func (r *reader) product() (int, error) {
	product := 1
	for {
		n, err := strconv.Atoi(r.next())
		if err != nil || n < 1 || n > maxBlockThreads {
			return 0, errors.New("of no number of threads")
		}
		if product *= n; !r.take(",") {
			return product, nil
		}
	}
}

// typeBytes returns the size of PTX's types that parameters can have.
func typeBytes(word string) (bytes int64, ok bool) {
	switch word {
	case ".b8", ".u8", ".s8":
		return 1, true
	case ".b16", ".u16", ".s16", ".f16", ".bf16":
		return 2, true
	case ".b32", ".u32", ".s32", ".f32", ".f16x2", ".bf16x2":
		return 4, true
	case ".b64", ".u64", ".s64", ".f64", ".texref", ".samplerref", ".surfref":
		return 8, true
	case ".b128":
		return 16, true
	}
	return 0, false
}

// param reads a parameter: .param, .align A, a type, .ptr with its attributes, a name, and [n] of an array.
func (r *reader) param(k *kernelText) error {
	bad := func(what string) error {
		return fmt.Errorf("%w: kernel %s: parameter %d %s", errSyntax, k.name, len(k.params), what)
	}
	if !r.take(".param") {
		return bad("does not begin with .param")
	}
	var elementBytes, alignBytes int64
	pointer := false
	for strings.HasPrefix(r.peek(), ".") {
		switch word := r.next(); word {
		case ".align":
			align, err := strconv.ParseInt(r.next(), 10, 64)
			if err != nil || align < 1 || align > 128 || align&(align-1) != 0 {
				return bad("has no alignment")
			}
			if !pointer { // else it describes the memory
				alignBytes = align
			}
		case ".ptr":
			pointer = true
		default:
			if bytes, ok := typeBytes(word); ok {
				elementBytes = bytes
			} else if !pointer {
				return bad("has a type of " + word)
			}
		}
	}
	if elementBytes == 0 {
		return bad("has no type")
	}
	if name := r.next(); name == "" || !inName(name[0]) {
		return bad("has no name")
	}
	bytes := elementBytes
	if r.take("[") {
		count, err := strconv.ParseInt(r.next(), 0, 64)
		if err != nil || count < 1 || count > maxParamBytes || !r.take("]") {
			return bad("is an array of no length")
		}
		bytes *= count
	}
	offset := roundUp(k.paramBytes, max(alignBytes, elementBytes))
	k.params = append(k.params, param{offset, bytes})
	if k.paramBytes = offset + bytes; k.paramBytes > maxParamBytes {
		return bad(fmt.Sprintf("ends beyond %d bytes", maxParamBytes))
	}
	return nil
}
