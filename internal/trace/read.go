package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-vram/vram/internal/units"
)

// header is the first line of every trace.
const header = "t_us,op,id,size,stream"

// fieldCount is how many columns the header names.
const fieldCount = 5

// readBufferBytes bounds a line too: a row has five short fields, so one that does not fit is none.
// Not smaller: each refill is a call into the decompressor. Not larger: it should stay in the cache.
const readBufferBytes = 64 << 10

// byteOrderMark begins a text in UTF-8 that editors of some systems write.
const byteOrderMark = "\ufeff"

// Read reads a trace, gzip or plain, from r to its end; name is for errors and for Trace.Name. Lines may end with CR LF, and a byte
// order mark may stand before the first. A last line without its end is one that was cut off, perhaps within a number. Every
// error is a *ParseError. It reads at most one trace; bytes after the end of the gzip stream are an
// error.
func Read(name string, r io.Reader) (*Trace, error) {
	in := bufio.NewReaderSize(r, readBufferBytes)
	if magic, err := in.Peek(2); err == nil && magic[0] == 0x1f && magic[1] == 0x8b {
		unzip, err := gzip.NewReader(in)
		if err != nil {
			return nil, &ParseError{Name: name, Line: 1, What: "cannot read gzip", Err: err}
		}
		in = bufio.NewReaderSize(unzip, readBufferBytes)
	}
	if mark, err := in.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // it is in the buffer
	}
	p := parser{name: name, in: in, book: newLedger()}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.book.trace(baseName(name)), nil
}

// parser turns lines into rows and hands them to the ledger, which knows the rules between rows.
type parser struct {
	name string
	in   *bufio.Reader
	line int // the line at hand, counted from 1
	book *ledger
}

// row is one line's fields before the rules between rows are checked.
type row struct {
	micros, id, sizeBytes, stream int64
	op                            Op
}

func (p *parser) parse() error {
	first, err := p.next()
	if err != nil {
		return err
	}
	if first == nil {
		return p.wrong("empty: want the header %q", header)
	}
	if string(first) != header {
		return p.wrong("header is %q, want %q", clip(first), header)
	}
	for {
		line, err := p.next()
		if err != nil {
			return err
		}
		if line == nil {
			return p.finish()
		}
		r, what := parseRow(line)
		if what == "" {
			what = p.book.add(r, p.line)
		}
		if what != "" {
			return p.wrong("%s", what)
		}
	}
}

func (p *parser) finish() error {
	line, what := p.book.finish()
	if what == "" {
		return nil
	}
	if line > 0 {
		p.line = line
	}
	return p.wrong("%s", what)
}

// next is the next line without its end, valid until the next call, or nil at the end.
func (p *parser) next() ([]byte, error) {
	line, err := p.in.ReadSlice('\n')
	switch {
	case err == nil:
		p.line++
		return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
	case errors.Is(err, io.EOF) && len(line) == 0:
		p.line = max(p.line, 1)
		return nil, nil
	}
	p.line++
	if errors.Is(err, io.EOF) {
		row, whole := bytes.CutSuffix(line, []byte("\r")) // then the last byte alone is missing
		if whole || p.line == 1 {                         // a file of one line is no trace anyway
			return row, nil
		}
		return nil, p.wrong("%q is the last line and has no line end: the trace is cut off", clip(line))
	}
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, p.wrong("line is longer than %d bytes: no row is", readBufferBytes)
	}
	return nil, &ParseError{Name: p.name, Line: p.line, What: "cannot read", Err: err}
}

func (p *parser) wrong(format string, args ...any) error {
	return &ParseError{Name: p.name, Line: p.line, What: fmt.Sprintf(format, args...)}
}

// parseRow splits a line. The text is not empty if the line is not a row.
func parseRow(line []byte) (r row, what string) {
	var fields [fieldCount][]byte
	rest := line
	for i := range fields {
		comma := bytes.IndexByte(rest, ',')
		switch last := i == len(fields)-1; {
		case comma < 0 && !last:
			return r, fmt.Sprintf("%q has %s, want %d: %s", clip(line), units.Count(i+1, "field"), fieldCount, header)
		case comma >= 0 && last:
			return r, fmt.Sprintf("%q has more than %d fields: %s", clip(line), fieldCount, header)
		case last:
			fields[i] = rest
		default:
			fields[i], rest = rest[:comma], rest[comma+1:]
		}
	}
	switch op := fields[1]; string(op) {
	case "a":
		r.op = Alloc
	case "f":
		r.op = Free
	default:
		return r, fmt.Sprintf("op is %q, want a or f", clip(op))
	}
	if r.micros, what = parseNumber("t_us", fields[0]); what != "" {
		return r, what
	}
	if r.id, what = parseNumber("id", fields[2]); what != "" {
		return r, what
	}
	if r.sizeBytes, what = parseNumber("size", fields[3]); what != "" {
		return r, what
	}
	r.stream, what = parseNumber("stream", fields[4])
	return r, what
}

// parseNumber reads decimal digits only: no sign, no space, nothing else, no overflow.
func parseNumber(column string, digits []byte) (value int64, what string) {
	const mostDigits = 19 // of an int64; 19 digits fit a uint64
	var v uint64
	ok := len(digits) > 0 && len(digits) <= mostDigits
	for i := 0; ok && i < len(digits); i++ {
		d := digits[i] - '0' // wraps around below '0'
		ok = d <= 9
		v = v*10 + uint64(d)
	}
	if !ok || v > math.MaxInt64 {
		return 0, fmt.Sprintf("%s is %q, want a whole number from 0 to %d", column, clip(digits), int64(math.MaxInt64))
	}
	return int64(v), ""
}

// clip keeps a quotation short enough for a message of one line.
func clip(text []byte) string {
	const most = 60
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}
