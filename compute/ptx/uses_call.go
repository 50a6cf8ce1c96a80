package ptx

import (
	"slices"
	"strings"
)

// call passes arguments to a function and its results back.
func (m *moment) call() {
	target, arguments, results := m.i.call()
	var f *Function
	if target != nil && target.Kind == OperandFunction {
		f = m.module.Function(target.Name)
	}
	if f == nil || f.Body == nil {
		m.callOutside(target, arguments, results)
		return
	}
	m.add(f)
	elements := func(o *Operand) []Operand {
		if o == nil {
			return nil
		}
		return o.Elements
	}
	for n, passed := range elements(arguments) {
		if n >= len(f.Params) {
			break
		}
		to := m.cell(f.Params[n])
		if passed.Kind == OperandVariable {
			m.grown(to.copy(m.cell(passed.Variable)))
			continue
		}
		m.ready = true
		if v := m.value(&passed); m.ready {
			m.grown(to.put(0, f.Params[n].Bytes(), v))
		}
	}
	k := 0
	for n, to := range elements(results) {
		if n >= len(f.Results) {
			break
		}
		from := m.cell(f.Results[n])
		switch to.Kind { //nolint:exhaustive // a result is a variable, a register, or dropped
		case OperandVariable:
			m.grown(m.cell(to.Variable).copy(from))
		case OperandRegister:
			v := from.get(0, f.Results[n].Bytes())
			if m.ready = v.set || m.unset; m.ready {
				if !v.set {
					v = number()
				}
				m.defineOne(k, v)
			}
			k++
		}
	}
}

func (m *moment) grown(g bool) { m.changed = m.changed || g }

// callOutside is a call of a function that the module has no body of, or of one that a register names.
func (m *moment) callOutside(target, arguments, results *Operand) {
	name := ""
	if target != nil && target.Kind == OperandFunction {
		name = target.Name
	}
	var passed origin
	if arguments != nil {
		for n := range arguments.Elements {
			switch o := &arguments.Elements[n]; o.Kind { //nolint:exhaustive // the others are numbers
			case OperandVariable:
				passed.join(m.cell(o.Variable).get(anywhere, 0))
			case OperandRegister:
				passed.join(m.value(o))
			}
		}
	}
	m.ready = true
	result := number()
	switch name {
	case "__assertfail", "free":
	case "malloc":
		result = origin{set: true, fixed: true}
	case "vprintf":
		m.printed(passed)
	default:
		how := accessing{true, true}
		m.touch(Global, passed, how)
		m.foreign(how, "the called function is not in the text")
		result = m.everything(passed)
	}
	if results == nil {
		return
	}
	for n := range results.Elements {
		if o := &results.Elements[n]; o.Kind == OperandVariable {
			m.grown(m.cell(o.Variable).put(anywhere, 0, result))
		}
	}
	m.define(result)
}

// printed is a call of printf, which reads text at the addresses among its arguments.
func (m *moment) printed(passed origin) {
	for p := range passed.places {
		passed.join(m.cell(p).get(anywhere, 0))
	}
	how := accessing{reads: true}
	for r, l := range passed.roots {
		m.roots[r].reads = m.roots[r].reads || l == base
	}
	if passed.loaded == base {
		m.foreign(how, "an argument may be a pointer from memory")
	}
}

// everything returns the origin of a result of unknown code, which may also leave it anywhere: all that the code was given and can
// reach, and pointers from memory.
func (m *moment) everything(passed origin) origin {
	m.escape(passed)
	v := union(passed, fromMemory(64), m.shared) //nolint:mnd // a pointer
	for p := range m.exposed {
		v.join(m.cell(p).get(anywhere, 0))
	}
	v = v.widened().moved()
	m.escape(v)
	for p := range m.exposed {
		if !m.preset(p) {
			m.grown(m.cell(p).anywhere.join(v))
		}
	}
	m.grown(m.shared.join(v))
	return v
}

// effect is the work of an instruction that the table of instructions does not have.
type effect struct {
	addresses   accessing // at each address between brackets
	foreign     accessing // at memory that the instruction names in another way
	tensor      accessing // at the memory of a tensor, whose map is at one of the addresses
	anyResult   bool      // each register may be a result
	secondReads bool      // the second address is the source of a copy
	local       bool      // the result is an address of local memory
}

// effects are the effects by the beginnings of names, up to a dot.
//
//nolint:gochecknoglobals // constant table of instructions
var effects = []struct {
	names string
	effect
}{
	{"tex tld4 suld", effect{foreign: accessing{reads: true}}},
	{"sust", effect{foreign: accessing{writes: true}}},
	{"sured", effect{foreign: accessing{true, true}}},
	{"ld ldu ldmatrix wmma.load", effect{addresses: accessing{reads: true}}},
	{"st stmatrix wmma.store discard", effect{addresses: accessing{writes: true}}},
	{"atom red multimem", effect{addresses: accessing{true, true}}},
	{"cp.async", effect{addresses: accessing{writes: true}, secondReads: true}},
	{"cp.reduce.async", effect{addresses: accessing{true, true}, secondReads: true}},
	{"alloca", effect{local: true}},
	{"txq suq istypep applypriority prefetch prefetchu cp.async.bulk.prefetch cp.async.bulk.commit_group cp.async.bulk.wait_group brx", effect{}},
	{"cvt mma wmma.mma wgmma add sub mul mul24 mad mad24 fma min max abs neg div rem dp2a dp4a bmsk szext fns ex2 tanh rcp rsqrt sqrt", effect{}},
	{"set setp shfl vote match redux elect mov movmatrix getctarank mapa isspacep bar barrier fence membar mbarrier griddepcontrol", effect{}},
	{"pmevent trap nanosleep stacksave stackrestore createpolicy clusterlaunchcontrol", effect{}},
}

// effectOf returns the effect of an instruction by the longest beginning of its name. Others may do anything.
func effectOf(name string) effect {
	name, _, _ = strings.Cut(name, " ")
	found, length := effect{addresses: accessing{true, true}, foreign: accessing{true, true}, anyResult: true}, 0
	for _, e := range effects {
		for begin := range strings.FieldsSeq(e.names) {
			if len(begin) > length && (name == begin || strings.HasPrefix(name, begin+".")) {
				found, length = e.effect, len(begin)
			}
		}
	}
	if strings.HasPrefix(name, "cp.") && strings.Contains(name, ".tensor") && found.addresses.writes {
		writes := strings.Contains(name, ".global.shared") // from the block's memory to the tensor
		reduces := strings.HasPrefix(name, "cp.reduce")
		return effect{tensor: accessing{!writes || reduces, writes || reduces}}
	}
	return found
}

// spaceIn returns the first state space that a name has, or Generic.
func spaceIn(name string) Space {
	for part := range strings.SplitSeq(name, ".") {
		if s := spaceOf(modifierByName[part]); s != Generic {
			return s
		}
	}
	return Generic
}

// unknown adds the effect of an instruction that the table does not have.
func (m *moment) unknown() {
	e := effectOf(m.i.Name)
	passed := m.passed(e)
	result := union(number(), passed, m.atAddresses(e, passed))
	if e.foreign != (accessing{}) {
		m.foreign(e.foreign, "which memory it concerns is not known")
		result.join(fromMemory(64)) //nolint:mnd // a pointer
	}
	if e.tensor != (accessing{}) {
		for n := range m.i.Operands {
			if o := &m.i.Operands[n]; isAddress(*o) && len(o.Elements) > 0 { // with coordinates
				m.ofTensor(o, e.tensor)
			}
		}
		m.grown(m.shared.join(fromMemory(64))) //nolint:mnd // a pointer
	}
	m.ready = true
	switch {
	case e.anyResult:
		m.touch(Global, passed, e.addresses)
		result = m.everything(result)
	case e.local:
		result = origin{set: true, places: map[*Variable]int64{m.stack(): anywhere}}
	case e.secondReads:
		m.grown(m.shared.join(result))
	}
	m.ready = true
	m.define(result)
}

// passed returns the origins of the operands of an instruction that is not known, except addresses and a plain result.
func (m *moment) passed(e effect) (passed origin) {
	addresses := slices.ContainsFunc(m.i.Operands, isAddress)
	for n := range m.i.Operands {
		o := &m.i.Operands[n]
		if isAddress(*o) {
			for k := range o.Elements {
				passed.join(m.value(&o.Elements[k]))
			}
		} else if n > 0 || e.anyResult || addresses {
			passed.join(m.value(o))
		}
	}
	return passed
}

// atAddresses adds the accesses of an instruction that is not known, and returns the origins of the memory that it reads.
func (m *moment) atAddresses(e effect, passed origin) (result origin) {
	if e.addresses == (accessing{}) {
		return result
	}
	count := 0
	for n := range m.i.Operands {
		o := &m.i.Operands[n]
		if !isAddress(*o) {
			continue
		}
		how, space := e.addresses, spaceIn(m.i.Name)
		if count++; e.secondReads && count > 1 {
			how, space = accessing{reads: true}, Generic
			if count > 2 || strings.Contains(m.i.Name, ".global.shared") { //nolint:mnd // the barrier
				continue // in shared memory
			}
		}
		m.ready = true
		address := m.value(o).moved() // it may touch more than a word
		m.ready = true
		m.touch(space, address, how)
		if how.writes {
			m.store(space, address, 64, passed.widened()) //nolint:mnd // a pointer
		}
		if how.reads {
			result.join(m.load(space, address, 64)) //nolint:mnd // a pointer
		}
	}
	return result
}

func isAddress(o Operand) bool { return o.Kind == OperandAddress }

// stack is the variable that stands for memory of alloca.
func (a *tracing) stack() *Variable {
	if a.allocated == nil {
		a.allocated = &Variable{Space: Local}
	}
	return a.allocated
}
