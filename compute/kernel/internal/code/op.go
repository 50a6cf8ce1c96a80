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

// spec is a row of the table: the text of the instruction, the class of its result, and the kind of its constants.
type spec struct {
	text   string
	result Class
	kind   kind
}

//nolint:gochecknoglobals // constant table of operations
var specs = [opCount]spec{
	AddF32: {"add.rn.f32", B32, asF32}, SubF32: {"sub.rn.f32", B32, asF32}, MulF32: {"mul.rn.f32", B32, asF32},
	DivF32: {"div.rn.f32", B32, asF32}, FmaF32: {"fma.rn.f32", B32, asF32}, NegF32: {"neg.f32", B32, asF32},
	AbsF32: {"abs.f32", B32, asF32}, MinF32: {"min.f32", B32, asF32}, MaxF32: {"max.f32", B32, asF32},
	SqrtF32: {"sqrt.rn.f32", B32, asF32}, RoundF32: {"cvt.rni.f32.f32", B32, asF32}, FloorF32: {"cvt.rmi.f32.f32", B32, asF32},
	CeilF32: {"cvt.rpi.f32.f32", B32, asF32}, TruncF32: {"cvt.rzi.f32.f32", B32, asF32},
	EqF32: {"setp.eq.f32", Pred, asF32}, NeF32: {"setp.neu.f32", Pred, asF32}, LtF32: {"setp.lt.f32", Pred, asF32},
	LeF32: {"setp.le.f32", Pred, asF32}, GtF32: {"setp.gt.f32", Pred, asF32}, GeF32: {"setp.ge.f32", Pred, asF32},
	NanF32: {"setp.nan.f32", Pred, asF32},

	AddF64: {"add.rn.f64", B64, asF64}, SubF64: {"sub.rn.f64", B64, asF64}, MulF64: {"mul.rn.f64", B64, asF64},
	DivF64: {"div.rn.f64", B64, asF64}, FmaF64: {"fma.rn.f64", B64, asF64}, NegF64: {"neg.f64", B64, asF64},
	AbsF64: {"abs.f64", B64, asF64}, MinF64: {"min.f64", B64, asF64}, MaxF64: {"max.f64", B64, asF64},
	SqrtF64: {"sqrt.rn.f64", B64, asF64}, RoundF64: {"cvt.rni.f64.f64", B64, asF64}, FloorF64: {"cvt.rmi.f64.f64", B64, asF64},
	CeilF64: {"cvt.rpi.f64.f64", B64, asF64}, TruncF64: {"cvt.rzi.f64.f64", B64, asF64},
	EqF64: {"setp.eq.f64", Pred, asF64}, NeF64: {"setp.neu.f64", Pred, asF64}, LtF64: {"setp.lt.f64", Pred, asF64},
	LeF64: {"setp.le.f64", Pred, asF64}, GtF64: {"setp.gt.f64", Pred, asF64}, GeF64: {"setp.ge.f64", Pred, asF64},
	NanF64: {"setp.nan.f64", Pred, asF64},

	AddS32: {"add.s32", B32, asInt}, SubS32: {"sub.s32", B32, asInt}, MulS32: {"mul.lo.s32", B32, asInt},
	MulHiU32: {"mul.hi.u32", B32, asInt}, MinS32: {"min.s32", B32, asInt}, MaxS32: {"max.s32", B32, asInt},
	NegS32: {"neg.s32", B32, asInt}, AbsS32: {"abs.s32", B32, asInt}, DivU32: {"div.u32", B32, asInt}, RemU32: {"rem.u32", B32, asInt},
	And32: {"and.b32", B32, asInt}, Or32: {"or.b32", B32, asInt}, Xor32: {"xor.b32", B32, asInt}, Not32: {"not.b32", B32, asInt},
	Shl32: {"shl.b32", B32, asInt}, ShrU32: {"shr.u32", B32, asInt}, ShrS32: {"shr.s32", B32, asInt}, Clz32: {"clz.b32", B32, asInt},
	EqS32: {"setp.eq.s32", Pred, asInt}, NeS32: {"setp.ne.s32", Pred, asInt}, LtS32: {"setp.lt.s32", Pred, asInt},
	LeS32: {"setp.le.s32", Pred, asInt}, GtS32: {"setp.gt.s32", Pred, asInt}, GeS32: {"setp.ge.s32", Pred, asInt},
	LtU32: {"setp.lt.u32", Pred, asInt}, GeU32: {"setp.ge.u32", Pred, asInt},

	AddS64: {"add.s64", B64, asInt}, SubS64: {"sub.s64", B64, asInt}, MulS64: {"mul.lo.s64", B64, asInt},
	MulWideU32: {"mul.wide.u32", B64, asInt}, MulWideS32: {"mul.wide.s32", B64, asInt}, MinS64: {"min.s64", B64, asInt},
	MaxS64: {"max.s64", B64, asInt}, NegS64: {"neg.s64", B64, asInt}, AbsS64: {"abs.s64", B64, asInt},
	DivU64: {"div.u64", B64, asInt}, RemU64: {"rem.u64", B64, asInt},
	And64: {"and.b64", B64, asInt}, Or64: {"or.b64", B64, asInt}, Xor64: {"xor.b64", B64, asInt}, Not64: {"not.b64", B64, asInt},
	Shl64: {"shl.b64", B64, asInt}, ShrU64: {"shr.u64", B64, asInt}, ShrS64: {"shr.s64", B64, asInt},
	EqS64: {"setp.eq.s64", Pred, asInt}, NeS64: {"setp.ne.s64", Pred, asInt}, LtS64: {"setp.lt.s64", Pred, asInt},
	LeS64: {"setp.le.s64", Pred, asInt}, GtS64: {"setp.gt.s64", Pred, asInt}, GeS64: {"setp.ge.s64", Pred, asInt},
	LtU64: {"setp.lt.u64", Pred, asInt}, GeU64: {"setp.ge.u64", Pred, asInt},

	AndPred: {"and.pred", Pred, asInt}, OrPred: {"or.pred", Pred, asInt}, XorPred: {"xor.pred", Pred, asInt},
	NotPred: {"not.pred", Pred, asInt}, Select32: {"selp.b32", B32, asInt}, Select64: {"selp.b64", B64, asInt},
	SelectPred: {"", Pred, asInt},

	F32FromS32: {"cvt.rn.f32.s32", B32, asInt}, F32FromU32: {"cvt.rn.f32.u32", B32, asInt}, F32FromS64: {"cvt.rn.f32.s64", B32, asInt},
	F64FromS32: {"cvt.rn.f64.s32", B64, asInt}, F64FromU32: {"cvt.rn.f64.u32", B64, asInt}, F64FromS64: {"cvt.rn.f64.s64", B64, asInt},
	S32FromF32: {"cvt.rzi.s32.f32", B32, asF32}, S32RoundF32: {"cvt.rni.s32.f32", B32, asF32}, S64FromF32: {"cvt.rzi.s64.f32", B64, asF32},
	S32FromF64: {"cvt.rzi.s32.f64", B32, asF64}, S32RoundF64: {"cvt.rni.s32.f64", B32, asF64}, S64FromF64: {"cvt.rzi.s64.f64", B64, asF64},
	F64FromF32: {"cvt.f64.f32", B64, asF32}, F32FromF64: {"cvt.rn.f32.f64", B32, asF64},
	F32FromF16: {"cvt.f32.f16", B32, asInt}, F16FromF32: {"cvt.rn.f16.f32", B16, asF32},
	S64FromS32: {"cvt.s64.s32", B64, asInt}, U64FromU32: {"cvt.u64.u32", B64, asInt}, U32FromU64: {"cvt.u32.u64", B32, asInt},
	U32FromHi: {"", B32, asInt}, U64FromHalves: {"", B64, asInt}, B16FromB32: {"cvt.u16.u32", B16, asInt}, B32FromB16: {"cvt.u32.u16", B32, asInt},
}

// Text is the instruction's name; "" for one that is several instructions.
func (o Op) Text() string { return specs[o].text }
