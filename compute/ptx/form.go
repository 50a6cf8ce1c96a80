package ptx

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync"
)

// form is a row that was read.
type form struct {
	slots    []slot
	operands []operandSpec
	needs    needs
}

// slot is a place in a name.
type slot struct {
	choices  []part
	optional bool
	typed    bool // the choices are types
}

// part is a modifier or a type.
type part struct {
	mod Modifier
	typ Type
}

// compile reads a row. An error is a mistake in the table.
func (r row) compile() (f form, err error) {
	if f.slots, err = compileName(r.form); err == nil {
		f.operands, err = compileOperands(r.operands)
	}
	if err == nil && r.needs != "" {
		var all string
		all, f.needs.gone = strings.CutSuffix(r.needs, " gone")
		needs := strings.TrimRight(all, "a")
		f.needs.variant = all[len(needs):]
		_, err = fmt.Sscanf(needs, "%d.%d sm_%d", &f.needs.version.Major, &f.needs.version.Minor, &f.needs.sm)
	}
	if err != nil {
		return form{}, fmt.Errorf("ptx: table of instructions: %v%s: %w", r.op, r.form, err)
	}
	return f, nil
}

// readTable returns the rows of each opcode, read, and the mistakes in the table.
var readTable = sync.OnceValues(func() (forms *[opcodeCount][]form, mistakes []error) { //nolint:gochecknoglobals // made on first use, never written
	forms = new([opcodeCount][]form)
	for _, rows := range rowGroups() {
		for _, r := range rows {
			f, err := r.compile()
			if err != nil {
				mistakes = append(mistakes, err)
				continue
			}
			forms[r.op] = append(forms[r.op], f)
		}
	}
	return forms, mistakes
})

// formTable finds the forms of a module's instructions.
type formTable struct {
	forms  *[opcodeCount][]form
	byName map[nameKey][]*form
}

// newFormTable makes the table. Mistakes in it are findings.
func newFormTable(r *reporter) *formTable {
	forms, mistakes := readTable()
	r.findings = append(r.findings, mistakes...)
	return &formTable{forms: forms, byName: map[nameKey][]*form{}}
}

// formsOf returns the forms of an opcode, none of a number that is no opcode.
func (c *formTable) formsOf(op Opcode) []form {
	if int(op) >= len(c.forms) {
		return nil
	}
	return c.forms[op]
}

func compileName(text string) (slots []slot, err error) {
	for text != "" {
		var s slot
		text, s.optional = strings.CutPrefix(text, "[")
		if !strings.HasPrefix(text, ".") {
			return nil, fmt.Errorf("a dot is missing before %q", text)
		}
		end := strings.IndexAny(text[1:]+".", ".[]") + 1
		if s.choices, err = compileChoices(text[1:end]); err != nil {
			return nil, err
		}
		s.typed = s.choices[0].typ != NoType
		text = text[end:]
		if s.optional {
			text = strings.TrimPrefix(text, "]")
		}
		slots = append(slots, s)
	}
	return slots, nil
}

func compileChoices(text string) (choices []part, err error) {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
	for name := range strings.SplitSeq(text, "|") {
		if members, ok := namedSets[name]; ok {
			more, err := compileChoices(members)
			if err != nil {
				return nil, err
			}
			choices = append(choices, more...)
			continue
		}
		p := part{modifierByName[name], typeByName[name]}
		if p == (part{}) {
			return nil, fmt.Errorf("%q is no modifier, type or set", name)
		}
		choices = append(choices, p)
	}
	return choices, nil
}

// matches reports whether the form has the instruction's name: its types in their order, its modifiers in any. Of two
// state spaces or two layouts the order counts.
func (f *form) matches(i *Instruction) bool {
	var used uint64 // of the modifiers: no form has as many as it has bits
	types := 0
	for n := range f.slots {
		s := &f.slots[n]
		switch {
		case s.typed && types < len(i.Types) && slices.Contains(s.choices, part{typ: i.Types[types]}):
			types++
		case !s.typed && s.take(i.Mods, &used):
		case !s.optional:
			return false
		}
	}
	return types == len(i.Types) && bits.OnesCount64(used) == len(i.Mods)
}

// take finds the first unused modifier that the slot has, marks it as used, and reports whether there was one.
func (s *slot) take(mods []Modifier, used *uint64) bool {
	var passed [KindRank + 1]bool
	for n, m := range mods {
		if *used>>n&1 != 0 {
			continue
		}
		kind := m.Kind()
		if slices.Contains(s.choices, part{mod: m}) && !passed[kind] {
			*used |= 1 << n
			return true
		}
		passed[kind] = kind == KindSpace || kind == KindLayout
	}
	return false
}

// nameKey is a name of so many parts as nearly all have.
type nameKey struct {
	op    Opcode
	mods  [10]Modifier
	types [4]Type
}

// key returns the name as a key of a map; it is not short where parts are missing in it.
func (i *Instruction) key() (key nameKey, short bool) {
	key.op = i.Op
	mods, types := copy(key.mods[:], i.Mods), copy(key.types[:], i.Types)
	return key, mods == len(i.Mods) && types == len(i.Types)
}

// rowGroups returns the whole table.
func rowGroups() [11][]row {
	return [...][]row{arithmeticRows, floatRows, logicRows, conversionRows, memoryRows, atomicRows, warpRows, mbarrierRows, wmmaRows, warpgroupRows, controlRows}
}

// named returns the forms that have an instruction's name, in the order of the table.
func (c *formTable) named(i *Instruction) (forms []*form) {
	key, short := i.key()
	if found, ok := c.byName[key]; ok && short {
		return found
	}
	all := c.formsOf(i.Op)
	for n := range all {
		if all[n].matches(i) {
			forms = append(forms, &all[n])
		}
	}
	if short {
		c.byName[key] = forms
	}
	return forms
}
