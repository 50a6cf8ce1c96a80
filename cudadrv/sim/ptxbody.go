package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// opcodes are the names of PTX's instructions up to the first dot, each between two spaces.
const opcodes = " " +
	"abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk bra brev brkpt " +
	"brx call clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt cvta discard div dp2a dp4a " +
	"elect ex2 exit fence fma fns getctarank griddepcontrol isspacep istypep ld ldmatrix ldu lg2 lop3 mad " +
	"mad24 madc mapa match max mbarrier membar min mma mov movmatrix mul mul24 multimem nanosleep neg not " +
	"or pmevent popc prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf " +
	"shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured sust szext " +
	"tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 " +
	"vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 vset4 vshl vshr vsub vsub2 vsub4 wgmma " +
	"wmma xor "

// body reads to the end of a block whose brace was read. Each statement is a block, or begins with a directive, or with the
// name of an instruction after optional labels and a predicate; body ignores the rest of it.
func (r *reader) body() error {
	for {
		switch word := r.next(); {
		case word == "":
			return fmt.Errorf("%w: a brace is open at the end", errSyntax)
		case word == "}":
			return nil
		case word == "{":
			if err := r.body(); err != nil {
				return err
			}
		case word == ";", r.take(":"):
		case word == ".loc": // ends with its line
			r.location()
		case word == "@":
			r.take("!")
			r.next()
		case word[0] != '.' && !strings.Contains(opcodes, " "+word+" "):
			return fmt.Errorf("%w: no instruction has the name %s", errSyntax, word)
		default:
			r.operands()
		}
	}
}

// location skips a place in the source: three numbers, and optionally its inlining.
func (r *reader) location() {
	r.skip(3)
	for r.take(",") {
		if r.next() == "inlined_at" {
			r.skip(3)
		} else if r.next(); r.take("+") { // function_name and its label
			r.next()
		}
	}
}

func (r *reader) skip(words int) {
	for range words {
		r.next()
	}
}

// operands skips to the end of a statement: its semicolon, or the brace that closes the block.
func (r *reader) operands() {
	for depth := 0; ; r.next() {
		switch r.peek() {
		case "":
			return
		case ";":
			if depth == 0 {
				return
			}
		case "{":
			depth++
		case "}":
			if depth == 0 {
				return
			}
			depth--
		}
	}
}

// variable reads a variable after its space: .align A, .v2 or .v4, a type, a name, lengths of an array, and the initial value.
func (r *reader) variable(p *program) error {
	bytes, vector := int64(0), int64(1)
	for strings.HasPrefix(r.peek(), ".") {
		switch word := r.next(); word {
		case ".align":
			r.next()
		case ".v2":
			vector = 2
		case ".v4":
			vector = 4
		default:
			if one, ok := typeBytes(word); ok {
				bytes = one
			}
		}
	}
	name := r.next()
	if bytes == 0 || name == "" || !inName(name[0]) {
		return fmt.Errorf("%w: variable %q without a type or name", errSyntax, name)
	}
	bytes *= vector
	unknown := false
	for r.take("[") {
		if r.take("]") {
			unknown = true
			continue
		}
		count, err := strconv.ParseInt(r.next(), 0, 64)
		if err != nil || count < 1 || count > spaceEnd/bytes || !r.take("]") {
			return fmt.Errorf("%w: variable %s is an array of no length", errSyntax, name)
		}
		bytes *= count
	}
	elements := int64(1)
	for ; r.peek() != "" && r.peek() != ";"; r.next() {
		if r.peek() == "," {
			elements++
		}
	}
	if !r.take(";") {
		return fmt.Errorf("%w: variable %s does not end", errSyntax, name)
	}
	if unknown { // the initial value gives its length
		bytes *= elements
	}
	if _, known := p.variables[name]; known {
		return fmt.Errorf("%w: two variables have the name %s", errSyntax, name)
	}
	p.variables[name] = bytes
	return nil
}
