package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// periodElements is a prime, so that a shift by a power of two changes the values.
const periodElements = 1<<20 - 3

// untouched is the byte of outputs before a launch.
const untouched = 0xa5

// sample returns the values of an input in a set, at most a period of them. The first set has small whole numbers of both
// signs: their sums do not depend on the order, and a missing element shows. The second has numbers in (1/2, 2), for functions
// of positive numbers.
func sample(of tensor.Type, operand, set int, limitBytes int64) []byte {
	count := int(min(periodElements, limitBytes/int64(of.Size())))
	random := rand.New(rand.NewPCG(uint64(operand), uint64(set))) //nolint:gosec // not negative; no secret
	all := make([]byte, 0, count*of.Size())
	for range count {
		x := float64(random.IntN(5) - 2)
		if set > 0 {
			x = 0.5 + 1.5*random.Float64()
		}
		all = appendNumber(all, of, x)
	}
	return all
}

// appendNumber appends a number as an element.
func appendNumber(to []byte, of tensor.Type, x float64) []byte {
	switch of {
	case tensor.Bool:
		if x > 1 || x < 0 {
			return append(to, 1)
		}
		return append(to, 0)
	case tensor.Uint8:
		return append(to, byte(math.Abs(2*x)))
	case tensor.Int8:
		return append(to, byte(int8(2*x)))
	case tensor.Int16:
		return binary.LittleEndian.AppendUint16(to, uint16(int16(2*x))) //nolint:gosec // small
	case tensor.Int32:
		return binary.LittleEndian.AppendUint32(to, uint32(int32(2*x))) //nolint:gosec // small
	case tensor.Int64:
		return binary.LittleEndian.AppendUint64(to, uint64(int64(2*x))) //nolint:gosec // small
	case tensor.Float16:
		return binary.LittleEndian.AppendUint16(to, uint16(half.NewFloat16(float32(x))))
	case tensor.BFloat16:
		return binary.LittleEndian.AppendUint16(to, uint16(half.NewBFloat16(float32(x))))
	case tensor.Float32:
		return binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(x)))
	case tensor.Float64:
	}
	return binary.LittleEndian.AppendUint64(to, math.Float64bits(x))
}

// operand is an output in a buffer.
type operand struct {
	of         tensor.Type
	number     int
	begin, end int // of its bytes in the buffer: those around it must not change
}

// resultBound is how much sums in another order may differ, relative to the greatest result: schedules add up to some thousand
// numbers one after the other, with a smaller error.
const resultBound = 1.0 / (1 << 14)

// same compares a buffer with the reference's.
func (o operand) same(want, got []byte, exact bool) error {
	if bytes.Equal(want, got) {
		return nil
	}
	for i := range want {
		if want[i] != got[i] && (exact || i < o.begin || i >= o.end) {
			return fmt.Errorf("output %d differs at byte %d of %d to %d: %#x, not %#x", o.number, i-o.begin, 0, o.end-o.begin, got[i], want[i])
		}
	}
	size := o.of.Size()
	bound := o.bound(want)
	for at := o.begin; at < o.end; at += size {
		if o.of == tensor.Float32 && binary.LittleEndian.Uint32(want[at:]) == binary.LittleEndian.Uint32(got[at:]) {
			continue // most of a large output
		}
		a, b := number(want[at:], o.of), number(got[at:], o.of)
		if a == b || a != a && b != b || math.Abs(a-b) <= bound {
			continue
		}
		return fmt.Errorf("output %d differs at element %d of its memory: %v, not %v", o.number, (at-o.begin)/size, b, a)
	}
	return nil
}

// bound returns how much elements may differ from the reference.
func (o operand) bound(want []byte) float64 {
	part, size := resultBound, o.of.Size()
	switch o.of { //nolint:exhaustive // the others have more digits
	case tensor.Float16:
		part = 1.0 / (1 << 10)
	case tensor.BFloat16:
		part = 1.0 / (1 << 7)
	}
	gap := bytes.Repeat([]byte{untouched}, size)
	var greatest float64
	for at := o.begin; at < o.end; at += size {
		x := math.Abs(number(want[at:], o.of))
		if x > greatest && !math.IsInf(x, 0) && !bytes.Equal(want[at:at+size], gap) { // the layout may have gaps
			greatest = x
		}
	}
	if k := o.of.Kind(); k == tensor.Signed || k == tensor.Unsigned {
		return math.Max(part*greatest, 1) // the fraction of a sum is cut off
	}
	return part * greatest
}

// number returns the first element of some bytes.
func number(b []byte, of tensor.Type) float64 {
	switch of {
	case tensor.Bool, tensor.Uint8:
		return float64(b[0])
	case tensor.Int8:
		return float64(int8(b[0]))
	case tensor.Int16:
		return float64(int16(binary.LittleEndian.Uint16(b))) //nolint:gosec // the same bits
	case tensor.Int32:
		return float64(int32(binary.LittleEndian.Uint32(b))) //nolint:gosec // the same bits
	case tensor.Int64:
		return float64(int64(binary.LittleEndian.Uint64(b))) //nolint:gosec // the same bits
	case tensor.Float16:
		return float64(half.Float16(binary.LittleEndian.Uint16(b)).Float32())
	case tensor.BFloat16:
		return float64(half.BFloat16(binary.LittleEndian.Uint16(b)).Float32())
	case tensor.Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case tensor.Float64:
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}
