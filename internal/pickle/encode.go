package pickle

import (
	"bufio"
	"encoding/binary"
	"io"
	"math"
	"strings"
)

// The operations of the format, by Python's names.
const (
	opProto      = 0x80
	opStop       = '.'
	opMark       = '('
	opNone       = 'N'
	opTrue       = 0x88
	opFalse      = 0x89
	opInt1       = 'K' // one byte, unsigned
	opInt2       = 'M' // two, unsigned
	opInt4       = 'J' // four, signed
	opLong1      = 0x8a
	opFloat      = 'G' // eight, the highest first: all other numbers have the lowest first
	opUnicode    = 'X'
	opList       = ']'
	opAppends    = 'e'
	opDict       = '}'
	opSetItems   = 'u'
	opEmptyTuple = ')'
	opTuple1     = 0x85 // of one value; the next two operations are of two and three
	opTuple      = 't'
	opPut1       = 'q'
	opPut4       = 'r'
	opGet1       = 'h'
	opGet4       = 'j'
)

const protocol = 2

// batch is how many values are added to a list or a dictionary at a time. Not more: a reader in JavaScript passes them as the
// arguments of one call, of which there are some ten thousand at most.
const batch = 1000

// longestTuple is the length up to which tuples have operations of their own.
const longestTuple = 3

// Encode writes the value. Bytes of a string that are not UTF-8 are written as the replacement character. Errors: *TypeError, and errors of w.
func Encode(w io.Writer, value any) error {
	e := encoder{w: bufio.NewWriter(w), texts: map[string]uint32{}, shared: map[*Shared]uint32{}}
	e.bytes(opProto, protocol)
	e.value(value)
	e.bytes(opStop)
	if e.err != nil {
		return e.err
	}
	return e.w.Flush()
}

// encoder is one call of Encode. Once err is set nothing more is written.
type encoder struct {
	w   *bufio.Writer
	err error

	// The memo.
	texts  map[string]uint32
	shared map[*Shared]uint32
	next   uint32
}

func (e *encoder) bytes(b ...byte) {
	if e.err == nil {
		_, e.err = e.w.Write(b)
	}
}

func (e *encoder) value(value any) {
	switch v := value.(type) {
	case nil:
		e.bytes(opNone)
	case bool:
		if v {
			e.bytes(opTrue)
		} else {
			e.bytes(opFalse)
		}
	case int:
		e.integer(int64(v))
	case int64:
		e.integer(v)
	case uint64:
		e.unsigned(v)
	case float64:
		e.bytes(binary.BigEndian.AppendUint64([]byte{opFloat}, math.Float64bits(v))...)
	case string:
		e.text(v)
	case Dict:
		e.dict(v)
	case List:
		e.list(v)
	case Tuple:
		e.tuple(v)
	case *Shared:
		e.once(v)
	default:
		if e.err == nil {
			e.err = &TypeError{value}
		}
	}
}

func (e *encoder) integer(v int64) {
	switch {
	case v >= 0 && v <= math.MaxUint8:
		e.bytes(opInt1, byte(v))
	case v >= 0 && v <= math.MaxUint16:
		e.bytes(opInt2, byte(v), byte(v>>8))
	case v >= math.MinInt32 && v <= math.MaxInt32:
		e.bytes(binary.LittleEndian.AppendUint32([]byte{opInt4}, uint32(v))...) //nolint:gosec // two's complement
	default:
		e.long(binary.LittleEndian.AppendUint64(nil, uint64(v)), v < 0) //nolint:gosec // two's complement
	}
}

func (e *encoder) unsigned(v uint64) {
	if v <= math.MaxInt64 {
		e.integer(int64(v))
		return
	}
	e.long(append(binary.LittleEndian.AppendUint64(nil, v), 0), false)
}

// long writes an integer in two's complement, the lowest byte first, in as few bytes as hold it: the highest bit is the sign.
func (e *encoder) long(digits []byte, negative bool) {
	fill, sign := byte(0), byte(0)
	if negative {
		fill, sign = 0xff, 0x80
	}
	for last := len(digits) - 1; last > 0 && digits[last] == fill && digits[last-1]&0x80 == sign; last-- {
		digits = digits[:last]
	}
	e.bytes(opLong1, byte(len(digits)))
	e.bytes(digits...)
}

func (e *encoder) text(s string) {
	if index, known := e.texts[s]; known {
		e.get(index)
		return
	}
	valid := strings.ToValidUTF8(s, "\ufffd")
	e.bytes(binary.LittleEndian.AppendUint32([]byte{opUnicode}, uint32(len(valid)))...) //nolint:gosec // a text of 4 GiB is none
	if e.err == nil {
		_, e.err = e.w.WriteString(valid)
	}
	e.texts[s] = e.put()
}

// put enters the value that was written last into the memo.
func (e *encoder) put() (index uint32) {
	index = e.next
	e.next++
	e.indexed(opPut1, opPut4, index)
	return index
}

func (e *encoder) get(index uint32) { e.indexed(opGet1, opGet4, index) }

func (e *encoder) indexed(short, long byte, index uint32) {
	if index <= math.MaxUint8 {
		e.bytes(short, byte(index))
		return
	}
	e.bytes(binary.LittleEndian.AppendUint32([]byte{long}, index)...)
}

func (e *encoder) dict(d Dict) {
	e.bytes(opDict)
	for len(d) > 0 && e.err == nil {
		count := min(batch, len(d))
		e.bytes(opMark)
		for _, item := range d[:count] {
			e.text(item.Key)
			e.value(item.Value)
		}
		e.bytes(opSetItems)
		d = d[count:]
	}
}

func (e *encoder) list(values List) {
	e.bytes(opList)
	if values == nil {
		return
	}
	open := 0 // values after the mark
	for v := range values {
		if open == 0 {
			e.bytes(opMark)
		}
		e.value(v)
		if open++; open == batch {
			e.bytes(opAppends)
			open = 0
		}
		if e.err != nil {
			return
		}
	}
	if open > 0 {
		e.bytes(opAppends)
	}
}

func (e *encoder) tuple(values Tuple) {
	if len(values) > longestTuple {
		e.bytes(opMark)
	}
	for _, v := range values {
		e.value(v)
	}
	switch count := len(values); {
	case count == 0:
		e.bytes(opEmptyTuple)
	case count <= longestTuple:
		e.bytes(opTuple1 + byte(count-1))
	default:
		e.bytes(opTuple)
	}
}

func (e *encoder) once(s *Shared) {
	if index, known := e.shared[s]; known {
		e.get(index)
		return
	}
	e.value(s.Value)
	e.shared[s] = e.put()
}
