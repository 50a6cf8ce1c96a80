package matmul_test

import (
	"encoding/binary"
	"math"

	"github.com/go-vram/vram/cuda/gemm"
)

// put writes a number as an element, and returns the value of the element.
func put(to []byte, t gemm.Type, v float64) float64 {
	switch t {
	case gemm.Float64:
		binary.LittleEndian.PutUint64(to, math.Float64bits(v))
	case gemm.Float32:
		binary.LittleEndian.PutUint32(to, math.Float32bits(float32(v)))
	case gemm.BFloat16:
		bits := math.Float32bits(float32(v))
		binary.LittleEndian.PutUint16(to, uint16((bits+0x7fff+bits>>16&1)>>16))
	case gemm.Float16:
		binary.LittleEndian.PutUint16(to, toHalf(v))
	}
	return get(to, t)
}

// get reads an element.
func get(from []byte, t gemm.Type) float64 {
	switch t {
	case gemm.Float64:
		return math.Float64frombits(binary.LittleEndian.Uint64(from))
	case gemm.BFloat16:
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(from)) << 16))
	case gemm.Float16:
		return fromHalf(binary.LittleEndian.Uint16(from))
	case gemm.Float32:
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(from)))
}

// toHalf rounds to float16, ties to even.
func toHalf(v float64) uint16 {
	sign := uint16(0)
	if math.Signbit(v) {
		sign, v = 0x8000, -v
	}
	switch {
	case v >= 65520:
		return sign | 0x7c00
	case v < 0x1p-14:
		return sign | uint16(math.RoundToEven(v*0x1p24))
	}
	fraction, exponent := math.Frexp(v) // in [0.5, 1)
	return sign | uint16(math.RoundToEven(fraction*2048)+float64(exponent+13)*1024)
}

func fromHalf(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	v := fraction * 0x1p-24
	switch {
	case exponent == 31:
		v = math.Inf(1)
	case exponent > 0:
		v = math.Ldexp(1024+fraction, exponent-25)
	}
	if h&0x8000 != 0 {
		return -v
	}
	return v
}

func gelu(x float64) float64 { return 0.5 * x * (1 + math.Tanh(0.7978845608028654*(x+0.044715*x*x*x))) }

func geluGradient(x float64) float64 {
	t := math.Tanh(0.7978845608028654 * (x + 0.044715*x*x*x))
	return 0.5*(1+t) + 0.5*x*(1-t*t)*0.7978845608028654*(1+3*0.044715*x*x)
}
