package ops

// operation is which one it is.
type operation uint8

const (
	opAdd operation = iota + 1
	opSub
	opMul
	opDiv
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe

	opNeg
	opAbs
	opSqrt
	opRsqrt
	opExp
	opLog
	opTanh
	opSigmoid
	opRelu
	opGelu
	opGeluTanh
	opSilu
	opClamp
	opWhere

	opCopy
	opFill
	opArange

	opSum
	opMean
	opMax
	opMin
	opArgMax
	opSoftmax
	opLogSoftmax
	opLayerNorm
	opRMSNorm
	opCrossEntropy

	opReluBackward
	opGeluBackward
	opGeluTanhBackward
	opMulBackward
	opSoftmaxBackward
	opCrossEntropyBackward
	opCrossEntropyGradient
	opLayerNormResidual
	opLayerNormResidualBackward
	opMoments
	opLayerNormBackward
	opWeightBackward
	opNegatedBackward
	opDivBackward
	opDivisorBackward
	opSiluBackward
	opSigmoidBackward
	opTanhBackward
	opLogSoftmaxBackward
	opRMSFactor
	opRMSNormBackward
	opRMSWeightBackward

	opNegBackward
	opAbsBackward
	opSqrtBackward
	opRsqrtBackward
	opExpBackward
	opLogBackward
	opClampBackward
	opWhereBackward
	opElseBackward
	opSumBackward
	opMeanBackward
	opMaxBackward
	opMinBackward

	opAdamW
	opGradNorm
	opMatmul

	// Names alone, of operations that are others.
	opAddBackward
	opMatmulBackward
	opCast
	opTransposeCopy
	opSumTo

	opConcat
	opGather
	opGatherBackward
	opScatterAdd
	opEmbedding
	opEmbeddingBackward
	opUniform
	opNormal
	opAttention
	opAttentionBackward
	operations
)

// String returns the name.
func (op operation) String() string {
	names := [operations]string{
		opAdd: "add", opSub: "sub", opMul: "mul", opDiv: "div", opEq: "eq", opNe: "ne", opLt: "lt", opLe: "le", opGt: "gt", opGe: "ge",
		opNeg: "neg", opAbs: "abs", opSqrt: "sqrt", opRsqrt: "rsqrt", opExp: "exp", opLog: "log", opTanh: "tanh", opSigmoid: "sigmoid",
		opRelu: "relu", opGelu: "gelu", opGeluTanh: "gelu by tanh", opSilu: "silu", opClamp: "clamp", opWhere: "where",
		opCopy: "copy", opFill: "fill", opArange: "arange",
		opSum: "sum", opMean: "mean", opMax: "max", opMin: "min", opArgMax: "argmax", opSoftmax: "softmax", opLogSoftmax: "log softmax",
		opLayerNorm: "layer norm", opRMSNorm: "RMS norm", opCrossEntropy: "cross entropy",
		opReluBackward: "relu backward", opGeluBackward: "gelu backward", opGeluTanhBackward: "gelu by tanh backward",
		opMulBackward: "mul backward", opSoftmaxBackward: "softmax backward", opCrossEntropyBackward: "cross entropy backward",
		opCrossEntropyGradient: "cross entropy gradient",
		opLayerNormResidual:    "layer norm residual", opLayerNormResidualBackward: "layer norm residual backward",
		opMoments: "moments of layer norm", opLayerNormBackward: "layer norm backward", opWeightBackward: "layer norm's weight backward",
		opNegatedBackward: "sub backward", opDivBackward: "div backward", opDivisorBackward: "div backward", opSiluBackward: "silu backward",
		opSigmoidBackward: "sigmoid backward", opTanhBackward: "tanh backward", opLogSoftmaxBackward: "log softmax backward",
		opRMSFactor: "factors of RMS norm", opRMSNormBackward: "RMS norm backward", opRMSWeightBackward: "RMS norm's weight backward",
		opNegBackward: "neg backward", opAbsBackward: "abs backward", opSqrtBackward: "sqrt backward", opRsqrtBackward: "rsqrt backward",
		opExpBackward: "exp backward", opLogBackward: "log backward", opClampBackward: "clamp backward", opWhereBackward: "where backward",
		opElseBackward: "where backward", opSumBackward: "sum backward", opMeanBackward: "mean backward", opMaxBackward: "max backward",
		opMinBackward: "min backward",
		opAdamW:       "AdamW", opGradNorm: "gradient norm", opMatmul: "matmul", opAddBackward: "add backward", opMatmulBackward: "matmul backward",
		opCast: "cast", opTransposeCopy: "transpose copy", opSumTo: "sum to",
		opConcat: "concat", opGather: "gather", opGatherBackward: "gather backward", opScatterAdd: "scatter-add", opEmbedding: "embedding",
		opEmbeddingBackward: "embedding backward", opUniform: "uniform", opNormal: "normal",
		opAttention: "attention", opAttentionBackward: "attention backward",
	}
	return names[op%operations]
}

// converts reports whether the output may have any type.
func (op operation) converts() bool { return op == opCopy || op == opArange }
