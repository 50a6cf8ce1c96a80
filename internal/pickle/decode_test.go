package pickle_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
)

// decode reads values that the package has written: dictionaries become map[string]any, lists *[]any, tuples []any, integers *big.Int. It
// is a reader of the format's own rules, so that the tests need no Python.
func decode(data []byte) (any, error) {
	d := decoder{data: data, memo: map[uint32]any{}}
	for d.err == nil && !d.done {
		d.step()
	}
	switch {
	case d.err != nil:
		return nil, d.err
	case len(d.data) > 0 || len(d.stack) != 1 || len(d.marks) > 0:
		return nil, fmt.Errorf("%d bytes, %d values and %d marks are left", len(d.data), len(d.stack), len(d.marks))
	}
	return d.stack[0], nil
}

type decoder struct {
	data  []byte
	stack []any
	marks []int
	memo  map[uint32]any
	done  bool
	err   error
}

func (d *decoder) take(count int) []byte {
	if count > len(d.data) {
		d.err = fmt.Errorf("%d bytes are left, want %d", len(d.data), count)
		return make([]byte, count)
	}
	taken := d.data[:count]
	d.data = d.data[count:]
	return taken
}

func (d *decoder) number(count int) uint32 {
	var wide [4]byte
	copy(wide[:], d.take(count))
	return binary.LittleEndian.Uint32(wide[:])
}

func (d *decoder) push(v any) { d.stack = append(d.stack, v) }

// above are the values over the last mark, which it takes off.
func (d *decoder) above() []any {
	mark := d.marks[len(d.marks)-1]
	d.marks = d.marks[:len(d.marks)-1]
	values := append([]any(nil), d.stack[mark:]...)
	d.stack = d.stack[:mark]
	return values
}

func (d *decoder) top() any { return d.stack[len(d.stack)-1] }

func (d *decoder) step() { //nolint:gocyclo // one case an operation
	switch op := d.take(1)[0]; op {
	case 0x80:
		if version := d.take(1)[0]; version != 2 {
			d.err = fmt.Errorf("protocol %d", version)
		}
	case '.':
		d.done = true
	case '(':
		d.marks = append(d.marks, len(d.stack))
	case 'N':
		d.push(nil)
	case 0x88, 0x89:
		d.push(op == 0x88)
	case 'K':
		d.push(big.NewInt(int64(d.number(1))))
	case 'M':
		d.push(big.NewInt(int64(d.number(2))))
	case 'J':
		d.push(big.NewInt(int64(int32(d.number(4)))))
	case 0x8a:
		d.push(twosComplement(d.take(int(d.take(1)[0]))))
	case 'G':
		d.push(math.Float64frombits(binary.BigEndian.Uint64(d.take(8))))
	case 'X':
		d.push(string(d.take(int(d.number(4)))))
	case ']':
		d.push(&[]any{})
	case 'e':
		values := d.above()
		list := d.top().(*[]any)
		*list = append(*list, values...)
	case '}':
		d.push(map[string]any{})
	case 'u':
		values := d.above()
		for i := 0; i < len(values); i += 2 {
			d.top().(map[string]any)[values[i].(string)] = values[i+1]
		}
	case ')':
		d.push([]any{})
	case 0x85, 0x86, 0x87:
		d.marks = append(d.marks, len(d.stack)-int(op-0x84))
		d.push(d.above())
	case 't':
		d.push(d.above())
	case 'q':
		d.memo[d.number(1)] = d.top()
	case 'r':
		d.memo[d.number(4)] = d.top()
	case 'h':
		d.push(d.memo[d.number(1)])
	case 'j':
		d.push(d.memo[d.number(4)])
	default:
		d.err = fmt.Errorf("operation %#x", op)
	}
}

func twosComplement(digits []byte) *big.Int {
	highestFirst := make([]byte, len(digits))
	for i, b := range digits {
		highestFirst[len(digits)-1-i] = b
	}
	v := new(big.Int).SetBytes(highestFirst)
	if len(digits) > 0 && highestFirst[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(digits))))
	}
	return v
}
