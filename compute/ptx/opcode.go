package ptx

import (
	"slices"
	"strings"
)

// Opcode is the operation of an instruction. Parts of the name that choose another operation belong to it (bar.sync, shfl.sync,
// cp.async.wait_group); parts that only vary the operation are modifiers.
type Opcode uint8

// The opcodes. An instruction that the parser keeps by its name alone has UnknownOp.
const (
	UnknownOp Opcode = iota
	OpAbs
	OpActivemask
	OpAdd
	OpAddc
	OpAnd
	OpAtom
	OpBarArrive
	OpBarRed
	OpBarSync
	OpBarWarpSync
	OpBarrierArrive
	OpBarrierRed
	OpBarrierSync
	OpBfe
	OpBfi
	OpBfind
	OpBra
	OpBrev
	OpBrkpt
	OpCall
	OpClz
	OpCnot
	OpCopysign
	OpCos
	OpCpAsync
	OpCpAsyncBulkTensor
	OpCpAsyncCommitGroup
	OpCpAsyncMbarrierArrive
	OpCpAsyncWaitAll
	OpCpAsyncWaitGroup
	OpCreatepolicy
	OpCvt
	OpCvta
	OpDiv
	OpDp4a
	OpEx2
	OpExit
	OpFence
	OpFenceProxy
	OpFma
	OpIsspacep
	OpLd
	OpLdmatrix
	OpLdu
	OpLg2
	OpLop3
	OpMad
	OpMadc
	OpMatch
	OpMax
	OpMbarrierArrive
	OpMbarrierArriveDrop
	OpMbarrierCompleteTx
	OpMbarrierExpectTx
	OpMbarrierInit
	OpMbarrierInval
	OpMbarrierPendingCount
	OpMbarrierTestWait
	OpMbarrierTryWait
	OpMembar
	OpMin
	OpMma
	OpMov
	OpMul
	OpNanosleep
	OpNeg
	OpNot
	OpOr
	OpPopc
	OpPrefetch
	OpPrefetchu
	OpPrmt
	OpRcp
	OpRed
	OpReduxSync
	OpRem
	OpRet
	OpRsqrt
	OpSad
	OpSelp
	OpSet
	OpSetmaxnreg
	OpSetp
	OpShf
	OpShfl
	OpShflSync
	OpShl
	OpShr
	OpSin
	OpSlct
	OpSqrt
	OpSt
	OpSub
	OpSubc
	OpTanh
	OpTestp
	OpTrap
	OpVote
	OpVoteSync
	OpWgmmaCommitGroup
	OpWgmmaFence
	OpWgmmaMmaAsync
	OpWgmmaWaitGroup
	OpWmmaLoadA
	OpWmmaLoadB
	OpWmmaLoadC
	OpWmmaMma
	OpWmmaStoreD
	OpXor
	opcodeCount
)

//nolint:gochecknoglobals // constant table of opcodes
var opcodeNames = [opcodeCount]string{
	OpAbs: "abs", OpActivemask: "activemask", OpAdd: "add", OpAddc: "addc", OpAnd: "and", OpAtom: "atom",
	OpBarArrive: "bar.arrive", OpBarRed: "bar.red", OpBarSync: "bar.sync", OpBarWarpSync: "bar.warp.sync",
	OpBarrierArrive: "barrier.arrive", OpBarrierRed: "barrier.red", OpBarrierSync: "barrier.sync", OpBfe: "bfe", OpBfi: "bfi", OpBfind: "bfind", OpBra: "bra", OpBrev: "brev", OpBrkpt: "brkpt",
	OpCall: "call", OpClz: "clz", OpCnot: "cnot", OpCopysign: "copysign", OpCos: "cos",
	OpCpAsync: "cp.async", OpCpAsyncBulkTensor: "cp.async.bulk.tensor", OpCpAsyncCommitGroup: "cp.async.commit_group", OpCpAsyncMbarrierArrive: "cp.async.mbarrier.arrive", OpCpAsyncWaitAll: "cp.async.wait_all",
	OpCpAsyncWaitGroup: "cp.async.wait_group", OpCreatepolicy: "createpolicy", OpCvt: "cvt", OpCvta: "cvta",
	OpDiv: "div", OpDp4a: "dp4a", OpEx2: "ex2", OpExit: "exit", OpFence: "fence", OpFenceProxy: "fence.proxy", OpFma: "fma", OpIsspacep: "isspacep",
	OpLd: "ld", OpLdmatrix: "ldmatrix", OpLdu: "ldu", OpLg2: "lg2", OpLop3: "lop3", OpMad: "mad", OpMadc: "madc", OpMatch: "match", OpMax: "max",
	OpMbarrierArrive: "mbarrier.arrive", OpMbarrierArriveDrop: "mbarrier.arrive_drop", OpMbarrierCompleteTx: "mbarrier.complete_tx",
	OpMbarrierExpectTx: "mbarrier.expect_tx", OpMbarrierInit: "mbarrier.init", OpMbarrierInval: "mbarrier.inval",
	OpMbarrierPendingCount: "mbarrier.pending_count", OpMbarrierTestWait: "mbarrier.test_wait", OpMbarrierTryWait: "mbarrier.try_wait",
	OpMembar: "membar", OpMin: "min", OpMma: "mma", OpMov: "mov", OpMul: "mul", OpNanosleep: "nanosleep", OpNeg: "neg",
	OpNot: "not", OpOr: "or", OpPopc: "popc", OpPrefetch: "prefetch", OpPrefetchu: "prefetchu", OpPrmt: "prmt",
	OpRcp: "rcp", OpRed: "red", OpReduxSync: "redux.sync", OpRem: "rem", OpRet: "ret", OpRsqrt: "rsqrt",
	OpSad: "sad", OpSelp: "selp", OpSet: "set", OpSetmaxnreg: "setmaxnreg", OpSetp: "setp", OpShf: "shf", OpShfl: "shfl", OpShflSync: "shfl.sync", OpShl: "shl",
	OpShr: "shr", OpSin: "sin", OpSlct: "slct", OpSqrt: "sqrt", OpSt: "st", OpSub: "sub", OpSubc: "subc", OpTanh: "tanh",
	OpTestp: "testp", OpTrap: "trap", OpVote: "vote", OpVoteSync: "vote.sync",
	OpWgmmaCommitGroup: "wgmma.commit_group", OpWgmmaFence: "wgmma.fence", OpWgmmaMmaAsync: "wgmma.mma_async",
	OpWgmmaWaitGroup: "wgmma.wait_group", OpWmmaLoadA: "wmma.load.a", OpWmmaLoadB: "wmma.load.b", OpWmmaLoadC: "wmma.load.c",
	OpWmmaMma: "wmma.mma", OpWmmaStoreD: "wmma.store.d", OpXor: "xor",
}

//nolint:gochecknoglobals // constant table of opcodes by name
var opcodeByName = func() map[string]Opcode {
	byName := map[string]Opcode{}
	for op := UnknownOp + 1; op < opcodeCount; op++ {
		byName[opcodeNames[op]] = op
	}
	return byName
}()

// opcodeHeads counts the opcodes by the first part of their name.
//
//nolint:gochecknoglobals // constant table of opcodes
var opcodeHeads = func() map[string]int {
	heads := map[string]int{}
	for op := UnknownOp + 1; op < opcodeCount; op++ {
		head, _, _ := strings.Cut(opcodeNames[op], ".")
		heads[head]++
	}
	return heads
}()

// String returns the name of the opcode; of UnknownOp it is "unknown".
func (op Opcode) String() string {
	if op == UnknownOp || op >= opcodeCount {
		return "unknown"
	}
	return opcodeNames[op]
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (op Opcode) MarshalText() ([]byte, error) { return []byte(op.String()), nil }

// maxOpcodeParts is the number of dotted parts of the longest opcode, cp.async.mbarrier.arrive.
const maxOpcodeParts = 4

// splitOpcode finds the longest opcode that the parts of a name begin with, and the parts after it. The .sync of an
// opcode may stand later.
func splitOpcode(parts []string) (Opcode, []string) {
	if op, ok := opcodeByName[parts[0]+".sync"]; ok && op != OpBarSync && op != OpBarrierSync {
		if at := slices.Index(parts, "sync"); at > 1 {
			return op, slices.Delete(slices.Clone(parts[1:]), at-1, at)
		}
	}
	if op, ok := opcodeByName[parts[0]]; ok && (len(parts) == 1 || opcodeHeads[parts[0]] == 1) {
		return op, parts[1:] // the usual case, without a search
	}
	for n := min(maxOpcodeParts, len(parts)); n > 0; n-- {
		if op, ok := opcodeByName[strings.Join(parts[:n], ".")]; ok {
			return op, parts[n:]
		}
	}
	return UnknownOp, parts
}
