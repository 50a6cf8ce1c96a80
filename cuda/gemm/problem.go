package gemm

import (
	"fmt"
	"math"
)

// Type is a type of elements.
type Type uint8

// The types. The numbers equal the ones in compute/kernel/matmul/source/finish.h.
const (
	Float32 Type = iota
	Float16
	BFloat16
	Float64
)

// Bytes returns the size of an element.
func (t Type) Bytes() int64 {
	switch t {
	case Float16, BFloat16:
		return 2
	case Float64:
		return 8
	case Float32:
	}
	return 4
}

// String returns the usual short name.
func (t Type) String() string {
	names := [...]string{"f32", "f16", "bf16", "f64"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("type %d", t)
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (t Type) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// Precision is how exactly operands of Float32 are multiplied. Sums are fp32, and fp64 for Float64.
type Precision uint8

// The precisions. 16-bit operands and Float64 support IEEE only: products are exact, or rounded as fp64.
const (
	// IEEE multiplies operands unrounded: in fp32 for Float32.
	IEEE Precision = iota
	// TF32 rounds operands to 10 bits of fraction: relative error 2^-11 for each, and up to 4/3·2^-11 in own kernels, which
	// round by a product.
	TF32
	// TF32x3 makes three products of TF32 for each, whose sum has the error of fp32. Operands are finite and below 2^127.
	TF32x3
	// RoundedBF16 rounds operands to bfloat16, 8 bits of precision: relative error 2^-8 for each.
	RoundedBF16
	// RoundedF16 rounds operands to float16, 11 bits of precision: relative error 2^-11 for each. From 65520 on they are
	// infinite.
	RoundedF16
)

// String returns the name of the precision.
func (p Precision) String() string {
	names := [...]string{"IEEE", "TF32", "3xTF32", "rounded bf16", "rounded f16"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("precision %d", p)
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Epilogue is an operation on alpha·A·B + beta·C + bias. GELU is the tanh approximation.
type Epilogue uint8

// The epilogues.
const (
	// None stores it.
	None Epilogue = iota
	// GELU stores GELU of it.
	GELU
	// GELUAux stores GELU of it, and it itself in Aux, for GELUGradient.
	GELUAux
	// GELUGradient stores it, times the derivative of GELU at Aux.
	GELUGradient
)

// String returns the name of the epilogue.
func (e Epilogue) String() string {
	names := [...]string{"none", "GELU", "GELU aux", "GELU gradient"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("epilogue %d", e)
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (e Epilogue) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// ReadsAux and WritesAux report how the epilogue uses Aux.
func (e Epilogue) ReadsAux() bool { return e == GELUGradient }

// WritesAux reports whether Aux is written.
func (e Epilogue) WritesAux() bool { return e == GELUAux }

// Problem is the shape of a product, or of several of the same shape.
type Problem struct {
	M, N, K                int64
	TransposeA, TransposeB bool
	// LDA, LDB, LDC and LDAux are leading dimensions in elements. 0: rows without a gap.
	LDA, LDB, LDC, LDAux int64
	// Batch is the number of products; 0: one. The strides are in elements. A stride of 0 for A or B: all have the same matrix.
	// A stride of 0 for C, and for Aux: matrices without a gap.
	Batch                                int64
	StrideA, StrideB, StrideC, StrideAux int64

	In        Type // of A and B
	Out       Type // of C, the bias and Aux: In, or Float32
	Precision Precision
	Epilogue  Epilogue
	Bias      bool // of N elements, added to each row
}

// MaxSize is the limit of M, N, K and Batch: kernels count with 32 bits.
const MaxSize = math.MaxInt32

// Filled returns the problem with the values that a 0 stands for. It is not checked.
func (p Problem) Filled() Problem {
	fill := func(ld *int64, columns int64) {
		if *ld == 0 {
			*ld = max(columns, 1)
		}
	}
	fill(&p.LDA, p.columnsA())
	fill(&p.LDB, p.columnsB())
	fill(&p.LDC, p.N)
	fill(&p.LDAux, p.N)
	fill(&p.Batch, 1)
	if p.M >= 0 && p.M <= MaxSize && p.LDC <= math.MaxInt64>>32 && p.StrideC == 0 {
		p.StrideC = p.M * p.LDC
	}
	if p.M >= 0 && p.M <= MaxSize && p.LDAux <= math.MaxInt64>>32 && p.StrideAux == 0 {
		p.StrideAux = p.M * p.LDAux
	}
	return p
}

func (p Problem) rowsA() int64    { return pick(p.TransposeA, p.K, p.M) }
func (p Problem) columnsA() int64 { return pick(p.TransposeA, p.M, p.K) }
func (p Problem) rowsB() int64    { return pick(p.TransposeB, p.N, p.K) }
func (p Problem) columnsB() int64 { return pick(p.TransposeB, p.K, p.N) }

func pick(first bool, a, b int64) int64 {
	if first {
		return a
	}
	return b
}

// Empty reports whether nothing is stored.
func (p Problem) Empty() bool { return p.M == 0 || p.N == 0 }

// UsesAux reports whether the problem has the operand Aux.
func (p Problem) UsesAux() bool { return p.Epilogue.ReadsAux() || p.Epilogue.WritesAux() }

// String returns one line: 2x[128x64x32 f32 TF32].
func (p Problem) String() string {
	t := func(transposed bool) string { return map[bool]string{true: "t", false: "n"}[transposed] }
	return fmt.Sprintf("%d x [%dx%dx%d %s%s %v to %v, %v, epilogue %v, bias %t]", max(p.Batch, 1), p.M, p.N, p.K, t(p.TransposeA), t(p.TransposeB),
		p.In, p.Out, p.Precision, p.Epilogue, p.Bias)
}
