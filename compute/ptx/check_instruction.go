package ptx

import (
	"fmt"
	"strings"
)

// body checks the instructions of a function.
type body struct {
	visible

	forms *formTable
}

// checkInstruction finds the row of an instruction and compares its operands with it. The reported mistake is from the row that
// is nearest: its name and its number of operands are right, and if possible it has vectors in the same places.
func (c *body) checkInstruction(i *Instruction) {
	if i.Guard.Kind != OperandNone {
		if wrong := c.predicateMisfit(&i.Guard); wrong != "" {
			c.report(i.Pos, "guard %v %s", i.Guard, wrong)
		}
	}
	if i.Op == UnknownOp || i.Op >= opcodeCount {
		c.reportLacking(i.Pos, "%s", unknownText(i.Name))
		return
	}
	if bytes := i.accessBytes(); bytes > maxVectorBytes {
		c.report(i.Pos, "a vector of %d bytes, at most %d", bytes, maxVectorBytes)
	}
	c.checkForms(i)
}

// unknownText says that an instruction is not known, and names textures and surfaces.
func unknownText(name string) string {
	head, _, _ := strings.Cut(name, ".")
	switch head {
	case "tex", "tld4", "txq":
		return "the instruction is not known: textures are not supported"
	case "suld", "sust", "sured", "suq":
		return "the instruction is not known: surfaces are not supported"
	case "brx":
		return "the instruction is not known: branches through a table are not supported"
	}
	return "the instruction is not known"
}

// maxVectorBytes is the longest vector that one instruction loads or stores.
const maxVectorBytes = 16

func (c *body) checkForms(i *Instruction) {
	var named, nearest *form
	for _, f := range c.forms.named(i) {
		if named == nil {
			named = f
		}
		if f.takes(len(i.Operands)) && (nearest == nil || !nearest.shaped(i) && f.shaped(i)) {
			nearest = f
		}
	}
	var room [4]*form
	fitting := c.fitting(i, room[:0])
	switch {
	case named == nil:
		c.add(&CheckError{Pos: i.Pos, Message: i.Op.String() + " has no form with these modifiers and types", Lacking: !i.isComplete()})
	case nearest == nil:
		c.report(i.Pos, "%d operands, and %s are expected", len(i.Operands), named.counts())
	case len(fitting) == 0:
		c.reportMisfit(i, c.misfit(i, nearest))
	default:
		c.checkNeeds(i, fitting)
	}
}

// isComplete reports whether the table has all forms of an instruction with such types, so that another one is a mistake.
func (i *Instruction) isComplete() bool {
	switch i.Op { //nolint:exhaustive // of others newer versions of PTX have more forms
	case OpAdd, OpSub, OpMin, OpMax, OpAbs, OpNeg, OpMul, OpMad:
		return i.Type(0).IsInteger()
	case OpAddc, OpSubc, OpMadc, OpDiv, OpRem, OpSad, OpCopysign, OpTestp, OpAnd, OpOr, OpXor, OpNot, OpCnot, OpShl, OpShr, OpShf, OpBfe, OpBfi,
		OpBfind, OpBrev, OpClz, OpPopc, OpPrmt, OpSelp, OpSlct, OpSetp, OpBra, OpRet, OpExit, OpTrap, OpBrkpt, OpNanosleep,
		OpBarSync, OpBarArrive, OpBarRed, OpBarWarpSync, OpShfl, OpShflSync, OpVote, OpVoteSync, OpActivemask, OpMatch:
		return true
	}
	return false
}

// reportMisfit adds a finding about operands.
func (c *body) reportMisfit(i *Instruction, wrong string) {
	if wrong == throughRegister {
		c.reportLacking(i.Pos, "%s", wrong)
		return
	}
	c.report(i.Pos, "%s", wrong)
}

// fitting appends the forms that an instruction has, in the order of the table.
func (c *body) fitting(i *Instruction, forms []*form) []*form {
	for _, f := range c.forms.named(i) {
		if f.takes(len(i.Operands)) && c.misfit(i, f) == "" {
			forms = append(forms, f)
		}
	}
	return forms
}

// takes reports whether the form has so many operands.
func (f *form) takes(count int) bool {
	least, most := f.bounds()
	return least <= count && count <= most
}

// shaped reports whether the form has vectors where the instruction has them.
func (f *form) shaped(i *Instruction) bool {
	for n := range min(len(i.Operands), len(f.operands)) {
		s := f.operands[n]
		isVector := s.kind == specPack || s.elements(i) > 0
		if isVector != (i.Operands[n].Kind == OperandVector) {
			return false
		}
	}
	return true
}

// bounds returns the smallest and the largest number of operands. A call's are counted with its function.
func (f *form) bounds() (least, most int) {
	for _, s := range f.operands {
		most++
		if s.kind == specCall {
			return 1, 1 << 10
		}
		if !s.optional {
			least++
		}
	}
	return least, most
}

func (f *form) counts() string {
	least, most := f.bounds()
	if least == most {
		return fmt.Sprint(least)
	}
	return fmt.Sprintf("%d to %d", least, most)
}

// checkNeeds reports an instruction that is younger than the module's version or architecture.
func (c *body) checkNeeds(i *Instruction, forms []*form) {
	for _, f := range forms {
		if c.has(f.needsOf(i)) {
			return
		}
	}
	first := forms[0].needsOf(i)
	if first.gone && c.module.Target.SM >= volta.sm {
		c.report(i.Pos, "PTX %v and later has it only for architectures before sm_%d: use %v.sync", volta.version, volta.sm, i.Op)
		return
	}
	c.report(i.Pos, "needs PTX %v and %v, the module has %v and %v",
		first.version, first.target(), c.module.Version, c.module.Target.architecture())
}

// needsOf returns the needs of an instruction that has the form, including its modifiers' needs.
func (f *form) needsOf(i *Instruction) needs {
	all := f.needs
	for _, m := range i.Mods {
		all = all.and(modifierNeeds[m])
	}
	if (i.Op == OpAtom || i.Op == OpRed) && i.Mod(KindScope) != NoModifier {
		all = all.and(needs{version: Version{5, 0}, sm: 60})
	}
	return all
}

// and returns the needs of two features together.
func (n needs) and(other needs) needs {
	if n.version.Before(other.version) {
		n.version = other.version
	}
	n.sm = max(n.sm, other.sm)
	n.variant = max(n.variant, other.variant)
	n.gone = n.gone || other.gone
	return n
}

// target returns the architecture that the needs name.
func (n needs) target() string { return Target{SM: n.sm, Variant: n.variant}.architecture() }

// accessBytes returns the number of bytes that a load, a store or an atomic operation touches, else 0.
func (i *Instruction) accessBytes() int {
	if i.Op != OpLd && i.Op != OpLdu && i.Op != OpSt && i.Op != OpAtom && i.Op != OpRed {
		return 0
	}
	return i.Type(0).Bytes() * i.Vector()
}
