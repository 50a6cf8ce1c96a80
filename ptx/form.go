package ptx

import (
	"fmt"
	"slices"
	"strings"
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
		needs := strings.TrimRight(r.needs, "a")
		f.needs.variant = r.needs[len(needs):]
		_, err = fmt.Sscanf(needs, "%d.%d sm_%d", &f.needs.version.Major, &f.needs.version.Minor, &f.needs.sm)
	}
	if err != nil {
		return form{}, fmt.Errorf("ptx: table of instructions: %v%s: %w", r.op, r.form, err)
	}
	return f, nil
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

// matches reports whether the form has the instruction's name.
func (f *form) matches(i *Instruction) bool {
	parts := i.parts()
	for _, s := range f.slots {
		switch {
		case len(parts) > 0 && slices.Contains(s.choices, parts[0]):
			parts = parts[1:]
		case !s.optional:
			return false
		}
	}
	return len(parts) == 0
}

// parts are the modifiers and types of the name in the order of the text.
func (i *Instruction) parts() (parts []part) {
	for _, m := range i.Mods {
		if m.Kind() != KindPermute {
			parts = append(parts, part{mod: m})
		}
	}
	for _, t := range i.Types {
		parts = append(parts, part{typ: t})
	}
	for _, m := range i.Mods {
		if m.Kind() == KindPermute {
			parts = append(parts, part{mod: m})
		}
	}
	return parts
}
