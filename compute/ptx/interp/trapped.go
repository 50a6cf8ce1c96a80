package interp

import (
	"fmt"
	"strconv"

	"github.com/go-vram/vram/compute/ptx"
)

// trapped tells why a thread came to a trap: the numbers that the comparison just before it has compared, if that is its guard.
func (w *warp) trapped(in *instruction, f *frame, thread int) string {
	at := w.at - in.fn.start
	if at < 1 || in.guard == none {
		return ""
	}
	for _, target := range in.fn.source.Code().Targets {
		if target == at {
			return "" // a branch leads here, past the comparison
		}
	}
	before := &w.block.kernel.code[w.at-1]
	i := before.source
	if i.Op != ptx.OpSetp || len(before.writePreds) != 1 || before.writePreds[0] != in.guard || len(i.Operands) != 3 { //nolint:mnd // result and operands
		return ""
	}
	t := i.Type(0)
	if !t.IsInteger() {
		return ""
	}
	registers, numbers := before.reads, [2]string{}
	for n := range numbers {
		switch o := &i.Operands[n+1]; o.Kind {
		case ptx.OperandRegister:
			if len(registers) == 0 {
				return ""
			}
			numbers[n], registers = integerText(f.regs[registers[0]][thread], t), registers[1:]
		case ptx.OperandInteger:
			numbers[n] = integerText(o.Value, t)
		default:
			return ""
		}
	}
	return fmt.Sprintf("%v compared %s with %s", i, numbers[0], numbers[1])
}

// integerText is an integer of a type as text. One that is greater than the signed numbers is written as a negative one, too, which it may have been.
func integerText(bits uint64, t ptx.Type) string {
	bits &= mask(t.Bits())
	signed := int64(bits<<(64-t.Bits())) >> (64 - t.Bits()) //nolint:gosec // in two's complement
	if signed >= 0 {
		return strconv.FormatUint(bits, 10)
	}
	if t.Class() == ptx.Unsigned {
		return fmt.Sprintf("%d (%d)", bits, signed)
	}
	return strconv.FormatInt(signed, 10)
}
