package tune

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// version is the first line of a table.
const version = "vram tuning table 1"

// ErrVersion refuses a text that does not begin as a table of this version does.
var ErrVersion = errors.New("tune: this is no tuning table of version 1")

// SyntaxError is a line that is not one of a table.
type SyntaxError struct {
	Line int
	Text string
	Why  string
}

// Error has the line.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("tune: line %d: %s: %.200q", e.Line, e.Why, e.Text)
}

// String is the text of the table.
func (t *Table) String() string {
	var b strings.Builder
	b.WriteString(version + "\n")
	for _, on := range t.Devices() {
		fmt.Fprintf(&b, "device compute=%d.%d name=%q\n", on.Major, on.Minor, on.Name)
		for _, of := range t.Keys(on) {
			fmt.Fprintf(&b, "key rows=%d cols=%d layouts=%q kernel=%q\n", of.Rows, of.Cols, of.Layouts, of.Kernel)
			for _, r := range t.Rows(on, of) {
				b.WriteString(r.String() + "\n")
			}
		}
	}
	return b.String()
}

// String is the row's line.
func (r Row) String() string {
	text := fmt.Sprintf("row ns=%d spread=%d rounds=%d code=%s state=%v variant=%q",
		min(r.Median, maxNumber), min(r.Spread, maxNumber), r.Rounds, r.Code, r.State, r.Variant)
	if r.Why != "" {
		text += fmt.Sprintf(" why=%q", r.Why)
	}
	if r.Reference {
		text += " reference"
	}
	return text
}

// Parse reads a table. Errors: ErrVersion, *SyntaxError.
func Parse(text string) (*Table, error) {
	lines := strings.Split(text, "\n")
	if strings.TrimSuffix(lines[0], "\r") != version {
		return nil, ErrVersion
	}
	p := parser{table: &Table{}}
	for i, line := range lines[1:] {
		if why := p.line(line); why != "" {
			return nil, wrongLine(i+2, line, why)
		}
	}
	p.end()
	return p.table, nil
}

func wrongLine(number int, line, why string) error {
	return &SyntaxError{Line: number, Text: strings.TrimSuffix(line, "\r"), Why: why}
}

// parser reads line by line.
type parser struct {
	table  *Table
	device *Device
	key    *Key
	rows   []Row
}

// end sets the rows of the last key.
func (p *parser) end() {
	if p.key != nil {
		p.table.Set(*p.device, *p.key, p.rows)
	}
	p.key, p.rows = nil, nil
}

// line reads one, and names the mistake in it.
func (p *parser) line(text string) (why string) {
	text = strings.TrimSuffix(text, "\r")
	if text == "" || strings.HasPrefix(text, "#") {
		return ""
	}
	word, rest, _ := strings.Cut(text, " ")
	f := fields{rest: rest}
	switch word {
	case "device":
		p.end()
		d := Device{}
		major, minor, _ := strings.Cut(f.word("compute"), ".")
		d.Major, d.Minor = f.number(major), f.number(minor)
		d.Name = f.quoted("name")
		p.device = &d
	case "key":
		p.end()
		if p.device == nil {
			return "there is no device before it"
		}
		k := Key{Rows: f.number(f.word("rows")), Cols: f.number(f.word("cols")), Layouts: f.quoted("layouts"), Kernel: f.quoted("kernel")}
		if _, twice := p.table.devices[*p.device][k]; twice {
			return "the key is there twice"
		}
		p.key = &k
	case "row":
		if p.key == nil {
			return "there is no key before it"
		}
		r := f.row()
		for _, other := range p.rows {
			if other.Variant == r.Variant {
				return "the variant is there twice"
			}
			if other.Reference && r.Reference {
				return "there are two references"
			}
		}
		p.rows = append(p.rows, r)
	default:
		return "it is neither a device nor a key nor a row"
	}
	if f.why == "" && f.rest != "" {
		return "more text follows it"
	}
	return f.why
}

// fields are names and values, in their order. The first mistake is kept.
type fields struct{ rest, why string }

func (f *fields) row() Row {
	r := Row{
		Median: time.Duration(f.number(f.word("ns"))), Spread: time.Duration(f.number(f.word("spread"))), Rounds: f.number(f.word("rounds")),
		Code: f.word("code"),
	}
	switch state := f.word("state"); state {
	case Verified.String():
	case Wrong.String():
		r.State = Wrong
	case Failed.String():
		r.State = Failed
	default:
		f.fail("there is no state " + strconv.Quote(state))
	}
	r.Variant = f.quoted("variant")
	if strings.HasPrefix(f.rest, "why=") {
		if r.Why = f.quoted("why"); r.Why == "" {
			f.fail("why is empty")
		}
	}
	if f.rest == "reference" {
		r.Reference, f.rest = true, ""
	}
	return r
}

func (f *fields) fail(why string) {
	if f.why == "" {
		f.why = why
	}
}

// begin takes the name of the next field.
func (f *fields) begin(name string) {
	if !strings.HasPrefix(f.rest, name) || !strings.HasPrefix(f.rest[len(name):], "=") {
		f.fail(name + " is missing")
		return
	}
	f.rest = f.rest[len(name)+1:]
}

// word is a value without blanks.
func (f *fields) word(name string) string {
	f.begin(name)
	var word string
	word, f.rest, _ = strings.Cut(f.rest, " ")
	if word == "" {
		f.fail(name + " is empty")
	}
	return word
}

// quoted is a value in quotation marks.
func (f *fields) quoted(name string) string {
	f.begin(name)
	if text, ok := f.plain(); ok {
		return text
	}
	prefix, err := strconv.QuotedPrefix(f.rest)
	if err != nil {
		f.fail(name + " is not quoted")
		return ""
	}
	text, err := strconv.Unquote(prefix)
	if err != nil || strconv.Quote(text) != prefix {
		f.fail(name + " is not quoted as Go does")
	}
	f.rest = strings.TrimPrefix(strings.TrimPrefix(f.rest, prefix), " ")
	return text
}

// plain is a value in quotation marks in which Go quotes nothing, as nearly all are; else it takes nothing.
func (f *fields) plain() (text string, ok bool) {
	if !strings.HasPrefix(f.rest, `"`) {
		return "", false
	}
	for i := 1; i < len(f.rest); i++ {
		switch c := f.rest[i]; {
		case c == '"':
			text, f.rest = f.rest[1:i], strings.TrimPrefix(f.rest[i+1:], " ")
			return text, true
		case c < ' ' || c > '~' || c == '\\':
			return "", false
		}
	}
	return "", false
}

// maxNumber bounds numbers, and times: no kernel that takes longer is tuned.
const maxNumber = math.MaxInt32

// number is not negative.
func (f *fields) number(text string) int {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n > maxNumber || len(text) > 1 && text[0] == '0' {
		f.fail(strconv.Quote(text) + " is no number")
		return 0
	}
	return int(n)
}
