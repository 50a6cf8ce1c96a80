package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// operandSpec is one operand of a row.
type operandSpec struct {
	kind      specKind
	result    bool
	sink      bool // a result that may be dropped
	updated   bool // read, too
	optional  bool
	negatable bool
	paired    bool // a predicate may follow the result
	wider     bool
	vector    bool // where the name has .v2 or .v4
	address   bool // a special register or the address of a variable, too
	count     int  // of elements; 0 of a scalar
	columns   bool // half as many elements as the shape of the name has columns
	typ       Type // of specValue, unless place says
	place     int  // the type is the type of the name at place-1
	twice     bool // as wide again
	space     Space
	anySpace  bool // of the name
	tensor    bool // coordinates follow the address
	low, high int64
	members   []int64
	limits    limits // of a constant of specValue
}

type specKind uint8

const (
	specValue specKind = iota
	specPack
	specMemory
	specInteger
	specLabel
	specCall
)

func compileOperands(text string) (specs []operandSpec, err error) {
	if text == "" {
		return nil, nil
	}
	for word := range strings.SplitSeq(text, ", ") {
		spec, err := compileOperand(word)
		if err != nil {
			return nil, fmt.Errorf("operand %q: %w", word, err)
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

func compileOperand(word string) (s operandSpec, err error) {
	word, s.result = strings.CutPrefix(word, "=")
	word, s.sink = strings.CutPrefix(word, "_")
	word, s.updated = strings.CutPrefix(word, "+")
	word, s.negatable = strings.CutPrefix(word, "!")
	word, s.optional = strings.CutSuffix(word, "?")
	word, s.paired = strings.CutSuffix(word, "|")
	word, s.vector = strings.CutSuffix(word, "*")
	word, s.wider = strings.CutSuffix(word, "~")
	word, s.address = strings.CutSuffix(word, "&")
	if word, err = s.cutLimits(word); err != nil {
		return s, err
	}
	switch {
	case word == "label":
		s.kind = specLabel
	case word == "call":
		s.kind = specCall
	case strings.HasPrefix(word, "["):
		s.kind = specMemory
		return s, s.compileSpace(strings.Trim(word, "[]"))
	case strings.HasPrefix(word, "int("):
		s.kind = specInteger
		return s, s.compileRange(strings.TrimSuffix(strings.TrimPrefix(word, "int("), ")"))
	case strings.HasPrefix(word, "{}"):
		s.kind = specPack
		return s, s.compileType(word[2:])
	case strings.HasPrefix(word, "{"):
		count, typ, _ := strings.Cut(strings.Trim(word, "{}"), ":")
		if s.columns = count == "n/2"; !s.columns {
			if s.count, err = strconv.Atoi(count); err != nil {
				return s, err
			}
		}
		return s, s.compileType(typ)
	default:
		return s, s.compileType(word)
	}
	return s, nil
}

// elements returns the number of registers of a vector in the instruction, or 0 of a scalar.
func (s *operandSpec) elements(i *Instruction) int {
	switch {
	case s.vector && i.Vector() > 1:
		return i.Vector()
	case s.columns:
		_, columns, _ := i.Mod(KindShape).Shape()
		return columns / 2 //nolint:mnd // the half
	}
	return s.count
}

func (s *operandSpec) compileSpace(name string) error {
	s.anySpace = name == ""
	if s.anySpace {
		return nil
	}
	if s.tensor = name == "tensor"; s.tensor {
		s.space = Generic
		return nil
	}
	i := slices.Index(spaceNames[:], name)
	if i < 0 {
		return fmt.Errorf("no space %q", name)
	}
	s.space = Space(i) // an index of the table of spaces
	return nil
}

func (s *operandSpec) compileRange(text string) error {
	if _, err := fmt.Sscanf(text, "%d..%d", &s.low, &s.high); err == nil {
		return nil
	}
	for member := range strings.SplitSeq(text, "|") {
		value, err := strconv.ParseInt(member, 10, 64)
		if err != nil {
			return err
		}
		s.members = append(s.members, value)
	}
	return nil
}

func (s *operandSpec) compileType(name string) error {
	name, s.twice = strings.CutPrefix(name, "2")
	s.place = strings.Index("TUVW", name) + 1
	s.typ = typeByName[name]
	if s.place == 0 && s.typ == NoType {
		return fmt.Errorf("no type %q", name)
	}
	return nil
}

// cutLimits reads the limits after a type: b32(0..15), b32(0..96/32), b32(0..@3), f32(fraction).
func (s *operandSpec) cutLimits(word string) (string, error) {
	typ, text, ok := strings.Cut(strings.TrimSuffix(word, ")"), "(")
	if !ok || typ == "int" {
		return word, nil
	}
	l := &s.limits
	l.set = true
	if l.fraction = text == "fraction"; l.fraction {
		return typ, nil
	}
	for _, format := range []struct {
		text string
		into []any
	}{
		{"%d..%d/%d", []any{&l.low, &l.high, &l.multiple}},
		{"%d..@%d", []any{&l.low, &l.operand}},
		{"%d..%d", []any{&l.low, &l.high}},
	} {
		if n, err := fmt.Sscanf(text, format.text, format.into...); err == nil && n == len(format.into) {
			return typ, nil
		}
	}
	return "", fmt.Errorf("no limits %q", text)
}
