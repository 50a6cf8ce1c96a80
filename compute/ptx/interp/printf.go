package interp

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/go-vram/vram/compute/ptx"
)

// maxOutput is how much the kernels of one launch print: as much as the buffer of a GPU holds.
const maxOutput = 1 << 20

// vprintf is the function under printf. Its result is the number of arguments.
func vprintf(w *warp, f *frame, in *instruction, thread int) bool {
	format, ok := argument(w, f, in, 0, thread)
	if !ok {
		return false
	}
	arguments, ok := argument(w, f, in, 1, thread)
	if !ok {
		return false
	}
	text, err := textAt(w, format, maxText, thread)
	if err != nil {
		return unprintable(w, "the format", format, err, thread)
	}
	p := printing{warp: w, thread: thread, from: arguments}
	for text != "" && w.fault == nil {
		literal, rest, found := strings.Cut(text, "%")
		p.out.WriteString(literal)
		if text = rest; found {
			text = p.conversion(rest)
		}
	}
	if w.fault != nil {
		return false
	}
	returnValue(w, f, in, uint64(p.count), thread) //nolint:gosec // not negative
	return printText(w, p.out.String())
}

// printText gives text to the launch's output.
func printText(w *warp, text string) bool {
	r := w.block.run
	if r.launch.Output == nil || r.printed >= maxOutput {
		return true
	}
	if r.printed += len(text); r.printed >= maxOutput {
		text += fmt.Sprintf("\n(the kernel prints more than %d bytes: the rest is dropped)\n", maxOutput)
	}
	if _, err := r.launch.Output.Write([]byte(text)); err != nil {
		w.fault = fmt.Errorf("ptx: kernel %s: output of printf: %w", w.block.kernel.name, err)
		return false
	}
	return true
}

// unprintable reports memory that printf cannot read.
func unprintable(w *warp, what string, address uint64, err error, thread int) bool {
	w.fail(&Fault{Kind: OutOfBounds, Space: spaceAt(address), Address: address, Bytes: 1, Detail: what + " of printf", Err: err}, thread)
	return false
}

// printing is a call of printf.
type printing struct {
	warp   *warp
	thread int
	from   uint64 // the next argument
	count  int
	out    strings.Builder
}

// next reads an argument, which lies at a multiple of its size.
func (p *printing) next(bytes int) uint64 {
	w := p.warp
	p.from = (p.from + uint64(bytes) - 1) &^ (uint64(bytes) - 1) //nolint:gosec // 4 or 8
	at := p.from
	p.from += uint64(bytes) //nolint:gosec // likewise
	p.count++
	if w.fault != nil {
		return 0
	}
	what := fmt.Sprintf("argument %d", p.count)
	from, space, err := w.memory.peek(at, p.thread)
	if err == nil && len(from) < bytes {
		err = fmt.Errorf("it ends %d bytes past the end of its memory", bytes-len(from))
	}
	if err != nil {
		unprintable(w, what, at, err, p.thread)
		return 0
	}
	if start := int(at & (1<<windowShift - 1)); space == ptx.Local && w.memory.local[p.thread].holes(start, bytes) && !w.ignores(Uninitialised) { //nolint:gosec // an offset
		w.fail(&Fault{Kind: Uninitialised, Space: space, Address: uint64(start), Bytes: bytes, Detail: what + " of printf was not written"}, p.thread) //nolint:gosec // not negative
	}
	return load(from, bytes)
}

// printed is a conversion of a format, up to its verb.
type printed struct{ flags, width, precision, size string }

// form returns the verb prefix for package fmt, with the given flags of the conversion.
func (c printed) form(flags string) string {
	kept := strings.Map(func(r rune) rune {
		if strings.ContainsRune(flags, r) {
			return r
		}
		return -1
	}, c.flags)
	return "%" + kept + c.width + c.precision
}

// conversion prints one conversion, whose text follows the sign of percent, and returns the text after it.
func (p *printing) conversion(text string) (rest string) {
	rest = text
	span := func(set string) string {
		n := len(rest) - len(strings.TrimLeft(rest, set))
		found := rest[:n]
		rest = rest[n:]
		return found
	}
	number := func() string {
		if strings.HasPrefix(rest, "*") {
			rest = rest[1:]
			return strconv.Itoa(int(max(min(int32(p.next(4)), maxText), -maxText))) //nolint:gosec,mnd // an int
		}
		digits := span("0123456789")
		if len(digits) > len("4096") {
			return strconv.Itoa(maxText)
		}
		return digits
	}
	var c printed
	c.flags = span("-+ #0")
	c.width = number()
	if strings.HasPrefix(rest, ".") {
		rest = rest[1:]
		if c.precision = "." + number(); strings.HasPrefix(c.precision, ".-") {
			c.precision = ""
		}
	}
	c.size = span("hlLzjt")
	if rest == "" {
		p.out.WriteString("%" + text)
		return ""
	}
	p.convert(c, rest[0], "%"+text[:len(text)-len(rest)+1])
	return rest[1:]
}

// convert prints an argument as the verb says; source is the conversion in the format.
func (p *printing) convert(c printed, verb byte, source string) {
	const word, pointer = 4, 8
	bytes := word
	if strings.ContainsAny(c.size, "lLzjt") {
		bytes = pointer
	}
	bits := 8 * bytes //nolint:mnd // bits
	if short := strings.Count(c.size, "h"); short > 0 {
		bits = max(32>>short, 8) //nolint:mnd // a byte at least
	}
	switch verb {
	case '%':
		p.out.WriteByte('%')
	case 'd', 'i':
		fmt.Fprintf(&p.out, c.form("-+ 0")+"d", signExtend(p.next(bytes), bits, true))
	case 'u':
		fmt.Fprintf(&p.out, c.form("-0")+"d", p.next(bytes)&mask(bits))
	case 'x', 'X', 'o':
		value, flags := p.next(bytes)&mask(bits), "-0#"
		if value == 0 && verb != 'o' {
			flags = "-0" // C prints 0, Go 0x0
		}
		fmt.Fprintf(&p.out, c.form(flags)+string(verb), value)
	case 'c':
		fmt.Fprintf(&p.out, c.form("-")+"s", string([]byte{byte(p.next(word))}))
	case 'p':
		fmt.Fprintf(&p.out, c.form("-")+"s", fmt.Sprintf("%#x", p.next(pointer)))
	case 's':
		p.string(c.form("-"))
	case 'e', 'E', 'f', 'F', 'g', 'G', 'a', 'A':
		p.float(c, verb, math.Float64frombits(p.next(pointer)))
	default:
		p.out.WriteString(source)
	}
}

// string prints a text of the device's memory.
func (p *printing) string(form string) {
	const pointer = 8
	at := p.next(pointer)
	if p.warp.fault != nil {
		return
	}
	text := "(null)"
	if at != 0 {
		var err error
		if text, err = textAt(p.warp, at, maxText, p.thread); err != nil {
			unprintable(p.warp, fmt.Sprintf("the text of argument %d", p.count), at, err, p.thread)
			return
		}
	}
	fmt.Fprintf(&p.out, form+"s", text)
}

// float prints a number as C does, where Go's fmt differs.
func (p *printing) float(c printed, verb byte, x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		text := strings.ToLower(strings.TrimPrefix(strconv.FormatFloat(x, 'g', -1, 64), "+"))
		if strings.Contains(c.flags, "+") && text == "inf" {
			text = "+inf"
		}
		if verb < 'a' {
			text = strings.ToUpper(text)
		}
		c.precision = ""
		fmt.Fprintf(&p.out, c.form("-")+"s", text)
		return
	}
	switch {
	case verb == 'a' || verb == 'A':
		whole := printed{flags: c.flags, precision: c.precision}
		text := fmt.Sprintf(whole.form("+ ")+string(verb+'x'-'a'), x)
		c.precision = ""
		fmt.Fprintf(&p.out, c.form("-")+"s", shortExponent.ReplaceAllString(text, "$1$2"))
		return
	case c.precision == "": // Go prints as many digits as tell the number apart
		c.precision = ".6"
	}
	fmt.Fprintf(&p.out, c.form("-+ #0")+string(verb), x)
}

// shortExponent matches the exponent of a number of base 16 with a zero, which C does not print.
var shortExponent = regexp.MustCompile(`([pP][-+])0(\d)$`)
