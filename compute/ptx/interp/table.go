package interp

import "github.com/go-vram/vram/compute/ptx"

// family is instructions that one function lowers, and that treat undefined operands alike.
type family struct {
	opcodes   []ptx.Opcode
	lower     func(c *lowering, i *ptx.Instruction)
	undefined rule // nil: an undefined operand is a fault, unless lower chooses another rule
}

// families are the instructions that the interpreter knows.
//
//nolint:gochecknoglobals // constant table of families
var families = byOpcode([]family{
	{[]ptx.Opcode{
		ptx.OpAdd, ptx.OpSub, ptx.OpMul, ptx.OpMad, ptx.OpFma, ptx.OpDiv, ptx.OpRem, ptx.OpMin, ptx.OpMax, ptx.OpAbs, ptx.OpNeg, ptx.OpSad,
		ptx.OpSqrt, ptx.OpRcp, ptx.OpRsqrt, ptx.OpSin, ptx.OpCos, ptx.OpLg2, ptx.OpEx2, ptx.OpTanh, ptx.OpCopysign, ptx.OpDp4a,
	}, lowerArithmetic, spreads},
	{[]ptx.Opcode{ptx.OpAddc, ptx.OpSubc, ptx.OpMadc}, lowerCarry, spreads},

	{[]ptx.Opcode{ptx.OpAnd, ptx.OpOr, ptx.OpXor, ptx.OpNot}, lowerLogic, decides},
	{[]ptx.Opcode{ptx.OpLop3}, lowerBitwise, decides},
	{[]ptx.Opcode{ptx.OpCnot, ptx.OpBfind, ptx.OpClz, ptx.OpPopc, ptx.OpSlct}, lowerBitwise, spreads},
	{[]ptx.Opcode{ptx.OpBrev}, lowerBitwise, copies},
	{[]ptx.Opcode{ptx.OpShl, ptx.OpShr, ptx.OpBfe}, lowerBitwise, moves(1)},
	{[]ptx.Opcode{ptx.OpShf, ptx.OpPrmt, ptx.OpBfi}, lowerBitwise, moves(2)}, //nolint:mnd // both operands
	{[]ptx.Opcode{ptx.OpSelp}, lowerSelp, moves(2)},                          //nolint:mnd // both operands

	{[]ptx.Opcode{ptx.OpSetp}, lowerSetp, combines},
	{[]ptx.Opcode{ptx.OpSet}, lowerSet, spreads},
	{[]ptx.Opcode{ptx.OpTestp}, lowerTestp, spreads},

	{[]ptx.Opcode{ptx.OpMov}, lowerMov, copies},
	{[]ptx.Opcode{ptx.OpCvt}, lowerConvert, converts},
	{[]ptx.Opcode{ptx.OpCvta}, lowerCvta, spreads},
	{[]ptx.Opcode{ptx.OpIsspacep}, lowerIsspacep, spreads},

	{[]ptx.Opcode{ptx.OpLd, ptx.OpLdu}, lowerLoad, nil},
	{[]ptx.Opcode{ptx.OpSt}, lowerStore, nil},
	{[]ptx.Opcode{ptx.OpAtom, ptx.OpRed}, lowerAtomic, nil},
	{[]ptx.Opcode{ptx.OpPrefetch, ptx.OpPrefetchu}, lowerPrefetch, nil},
	{[]ptx.Opcode{ptx.OpCreatepolicy}, lowerPolicy, nil},
	{[]ptx.Opcode{ptx.OpMembar, ptx.OpFence, ptx.OpFenceProxy}, lowerFence, nil},
	{[]ptx.Opcode{ptx.OpCpAsync}, lowerCopy, nil},
	{[]ptx.Opcode{ptx.OpCpAsyncBulkTensor}, lowerBulkTensor, nil},
	{[]ptx.Opcode{ptx.OpCpAsyncCommitGroup}, lowerCopyCommit, nil},
	{[]ptx.Opcode{ptx.OpCpAsyncWaitGroup, ptx.OpCpAsyncWaitAll}, lowerCopyWait, nil},

	{[]ptx.Opcode{ptx.OpShfl, ptx.OpVote, ptx.OpShflSync, ptx.OpVoteSync, ptx.OpMatch, ptx.OpReduxSync, ptx.OpBarWarpSync}, lowerCollective, nil},
	{[]ptx.Opcode{ptx.OpActivemask}, lowerActivemask, nil},
	{[]ptx.Opcode{ptx.OpMma}, lowerMma, nil},
	{[]ptx.Opcode{ptx.OpLdmatrix}, lowerLdmatrix, nil},
	{[]ptx.Opcode{ptx.OpWmmaLoadA, ptx.OpWmmaLoadB, ptx.OpWmmaLoadC, ptx.OpWmmaStoreD}, lowerFragment, nil},
	{[]ptx.Opcode{ptx.OpWmmaMma}, lowerWmma, nil},
	{[]ptx.Opcode{ptx.OpSetmaxnreg, ptx.OpWgmmaFence, ptx.OpWgmmaCommitGroup, ptx.OpWgmmaWaitGroup, ptx.OpWgmmaMmaAsync}, lowerWgmma, nil},

	{[]ptx.Opcode{
		ptx.OpBarSync, ptx.OpBarArrive, ptx.OpBarRed, ptx.OpBarrierSync, ptx.OpBarrierArrive, ptx.OpBarrierRed,
	}, lowerBarrier, nil},
	{[]ptx.Opcode{ptx.OpMbarrierInit, ptx.OpMbarrierInval}, lowerMbarrierInit, nil},
	{[]ptx.Opcode{
		ptx.OpMbarrierArrive, ptx.OpMbarrierArriveDrop, ptx.OpMbarrierExpectTx, ptx.OpMbarrierCompleteTx, ptx.OpCpAsyncMbarrierArrive,
	}, lowerMbarrierArrive, nil},
	{[]ptx.Opcode{ptx.OpMbarrierTestWait, ptx.OpMbarrierTryWait}, lowerMbarrierWait, nil},
	{[]ptx.Opcode{ptx.OpMbarrierPendingCount}, lowerMbarrierCount, nil},

	{[]ptx.Opcode{ptx.OpBra}, lowerBranch, nil},
	{[]ptx.Opcode{ptx.OpRet, ptx.OpExit, ptx.OpTrap, ptx.OpBrkpt, ptx.OpNanosleep}, lowerControl, nil},
	{[]ptx.Opcode{ptx.OpCall}, lowerCall, nil},
})

func byOpcode(all []family) map[ptx.Opcode]*family {
	by := map[ptx.Opcode]*family{}
	for n := range all {
		for _, op := range all[n].opcodes {
			by[op] = &all[n]
		}
	}
	return by
}

// lower translates an instruction by the function of its family.
func (c *lowering) lower(i *ptx.Instruction) {
	f := families[i.Op]
	if f == nil {
		return
	}
	f.lower(c, i)
	if to := c.to; f.undefined != nil && to.carries == nil && (to.compute != nil || to.run != nil) && len(to.reads)+len(to.readPreds) > 0 {
		to.carries = f.undefined(c, i)
	}
}
