package code

// Op is an instruction of PTX whose operands are registers or constants.
type Op uint8

// Operations on float32.
const (
	AddF32 Op = iota
	SubF32
	MulF32
	DivF32
	FmaF32
	NegF32
	AbsF32
	MinF32
	MaxF32
	SqrtF32
	RoundF32
	FloorF32
	CeilF32
	TruncF32
	EqF32
	NeF32 // true where one is NaN
	LtF32
	LeF32
	GtF32
	GeF32
	NanF32 // one is NaN

	// Operations on float64.
	AddF64
	SubF64
	MulF64
	DivF64
	FmaF64
	NegF64
	AbsF64
	MinF64
	MaxF64
	SqrtF64
	RoundF64
	FloorF64
	CeilF64
	TruncF64
	EqF64
	NeF64
	LtF64
	LeF64
	GtF64
	GeF64
	NanF64

	// Operations on 32 bits.
	AddS32
	SubS32
	MulS32
	MulHiU32
	MinS32
	MaxS32
	NegS32
	AbsS32
	DivU32
	RemU32
	And32
	Or32
	Xor32
	Not32
	Shl32
	ShrU32
	ShrS32
	Clz32
	EqS32
	NeS32
	LtS32
	LeS32
	GtS32
	GeS32
	LtU32
	GeU32

	// Operations on 64 bits.
	AddS64
	SubS64
	MulS64
	MulWideU32
	MulWideS32
	MinS64
	MaxS64
	NegS64
	AbsS64
	DivU64
	RemU64
	And64
	Or64
	Xor64
	Not64
	Shl64
	ShrU64
	ShrS64
	EqS64
	NeS64
	LtS64
	LeS64
	GtS64
	GeS64
	LtU64
	GeU64

	// Predicates and choices.
	AndPred
	OrPred
	XorPred
	NotPred
	Select32 // a where c holds, else b
	Select64
	SelectPred

	// Conversions: AFromB converts B to A. A conversion to an integer truncates unless it is rounded.
	F32FromS32
	F32FromU32
	F32FromS64
	F64FromS32
	F64FromU32
	F64FromS64
	S32FromF32
	S32RoundF32
	S64FromF32
	S32FromF64
	S32RoundF64
	S64FromF64
	F64FromF32
	F32FromF64
	F32FromF16
	F16FromF32
	S64FromS32
	U64FromU32
	U32FromU64 // the low half
	U32FromHi  // the high half
	U64FromHalves
	B16FromB32 // the low half
	B32FromB16
	opCount
)

// kind says how a constant is printed as an operand.
type kind uint8

const (
	asInt kind = iota
	asF32
	asF64
)

// kind returns how constants of an operation of several operands are printed.
func (o Op) kind() kind {
	switch {
	case o <= NanF32:
		return asF32
	case o <= NanF64:
		return asF64
	}
	return asInt
}

// spec is a row of the table: the text of the instruction, and the class of its result.
type spec struct {
	text   string
	result Class
}

//nolint:gochecknoglobals // constant table of operations
var specs = [opCount]spec{
	AddF32: {"add.rn.f32", B32}, SubF32: {"sub.rn.f32", B32}, MulF32: {"mul.rn.f32", B32},
	DivF32: {"div.rn.f32", B32}, FmaF32: {"fma.rn.f32", B32}, NegF32: {"neg.f32", B32},
	AbsF32: {"abs.f32", B32}, MinF32: {"min.f32", B32}, MaxF32: {"max.f32", B32},
	SqrtF32: {"sqrt.rn.f32", B32}, RoundF32: {"cvt.rni.f32.f32", B32}, FloorF32: {"cvt.rmi.f32.f32", B32},
	CeilF32: {"cvt.rpi.f32.f32", B32}, TruncF32: {"cvt.rzi.f32.f32", B32},
	EqF32: {"setp.eq.f32", Pred}, NeF32: {"setp.neu.f32", Pred}, LtF32: {"setp.lt.f32", Pred},
	LeF32: {"setp.le.f32", Pred}, GtF32: {"setp.gt.f32", Pred}, GeF32: {"setp.ge.f32", Pred},
	NanF32: {"setp.nan.f32", Pred},

	AddF64: {"add.rn.f64", B64}, SubF64: {"sub.rn.f64", B64}, MulF64: {"mul.rn.f64", B64},
	DivF64: {"div.rn.f64", B64}, FmaF64: {"fma.rn.f64", B64}, NegF64: {"neg.f64", B64},
	AbsF64: {"abs.f64", B64}, MinF64: {"min.f64", B64}, MaxF64: {"max.f64", B64},
	SqrtF64: {"sqrt.rn.f64", B64}, RoundF64: {"cvt.rni.f64.f64", B64}, FloorF64: {"cvt.rmi.f64.f64", B64},
	CeilF64: {"cvt.rpi.f64.f64", B64}, TruncF64: {"cvt.rzi.f64.f64", B64},
	EqF64: {"setp.eq.f64", Pred}, NeF64: {"setp.neu.f64", Pred}, LtF64: {"setp.lt.f64", Pred},
	LeF64: {"setp.le.f64", Pred}, GtF64: {"setp.gt.f64", Pred}, GeF64: {"setp.ge.f64", Pred},
	NanF64: {"setp.nan.f64", Pred},

	AddS32: {"add.s32", B32}, SubS32: {"sub.s32", B32}, MulS32: {"mul.lo.s32", B32},
	MulHiU32: {"mul.hi.u32", B32}, MinS32: {"min.s32", B32}, MaxS32: {"max.s32", B32},
	NegS32: {"neg.s32", B32}, AbsS32: {"abs.s32", B32}, DivU32: {"div.u32", B32}, RemU32: {"rem.u32", B32},
	And32: {"and.b32", B32}, Or32: {"or.b32", B32}, Xor32: {"xor.b32", B32}, Not32: {"not.b32", B32},
	Shl32: {"shl.b32", B32}, ShrU32: {"shr.u32", B32}, ShrS32: {"shr.s32", B32}, Clz32: {"clz.b32", B32},
	EqS32: {"setp.eq.s32", Pred}, NeS32: {"setp.ne.s32", Pred}, LtS32: {"setp.lt.s32", Pred},
	LeS32: {"setp.le.s32", Pred}, GtS32: {"setp.gt.s32", Pred}, GeS32: {"setp.ge.s32", Pred},
	LtU32: {"setp.lt.u32", Pred}, GeU32: {"setp.ge.u32", Pred},

	AddS64: {"add.s64", B64}, SubS64: {"sub.s64", B64}, MulS64: {"mul.lo.s64", B64},
	MulWideU32: {"mul.wide.u32", B64}, MulWideS32: {"mul.wide.s32", B64}, MinS64: {"min.s64", B64},
	MaxS64: {"max.s64", B64}, NegS64: {"neg.s64", B64}, AbsS64: {"abs.s64", B64},
	DivU64: {"div.u64", B64}, RemU64: {"rem.u64", B64},
	And64: {"and.b64", B64}, Or64: {"or.b64", B64}, Xor64: {"xor.b64", B64}, Not64: {"not.b64", B64},
	Shl64: {"shl.b64", B64}, ShrU64: {"shr.u64", B64}, ShrS64: {"shr.s64", B64},
	EqS64: {"setp.eq.s64", Pred}, NeS64: {"setp.ne.s64", Pred}, LtS64: {"setp.lt.s64", Pred},
	LeS64: {"setp.le.s64", Pred}, GtS64: {"setp.gt.s64", Pred}, GeS64: {"setp.ge.s64", Pred},
	LtU64: {"setp.lt.u64", Pred}, GeU64: {"setp.ge.u64", Pred},

	AndPred: {"and.pred", Pred}, OrPred: {"or.pred", Pred}, XorPred: {"xor.pred", Pred},
	NotPred: {"not.pred", Pred}, Select32: {"selp.b32", B32}, Select64: {"selp.b64", B64},
	SelectPred: {"", Pred},

	F32FromS32: {"cvt.rn.f32.s32", B32}, F32FromU32: {"cvt.rn.f32.u32", B32}, F32FromS64: {"cvt.rn.f32.s64", B32},
	F64FromS32: {"cvt.rn.f64.s32", B64}, F64FromU32: {"cvt.rn.f64.u32", B64}, F64FromS64: {"cvt.rn.f64.s64", B64},
	S32FromF32: {"cvt.rzi.s32.f32", B32}, S32RoundF32: {"cvt.rni.s32.f32", B32}, S64FromF32: {"cvt.rzi.s64.f32", B64},
	S32FromF64: {"cvt.rzi.s32.f64", B32}, S32RoundF64: {"cvt.rni.s32.f64", B32}, S64FromF64: {"cvt.rzi.s64.f64", B64},
	F64FromF32: {"cvt.f64.f32", B64}, F32FromF64: {"cvt.rn.f32.f64", B32},
	F32FromF16: {"cvt.f32.f16", B32}, F16FromF32: {"cvt.rn.f16.f32", B16},
	S64FromS32: {"cvt.s64.s32", B64}, U64FromU32: {"cvt.u64.u32", B64}, U32FromU64: {"cvt.u32.u64", B32},
	U32FromHi: {"", B32}, U64FromHalves: {"", B64}, B16FromB32: {"cvt.u16.u32", B16}, B32FromB16: {"cvt.u32.u16", B32},
}

// Text is the instruction's name; "" for one that is several instructions.
func (o Op) Text() string { return specs[o].text }
