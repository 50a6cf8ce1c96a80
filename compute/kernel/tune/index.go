package tune

import "strings"

// Index has the keys of a table's text, and reads the rows of a key when they are asked for: a process needs few of many. It
// does not change: any number of goroutines may use it. A nil Index has no rows.
type Index struct{ sections map[Device]map[Key]section }

// section is the text after the line of a key, up to the end of the table, and the number of its first line.
type section struct {
	text  string
	first int
}

// NewIndex reads the lines of devices and keys, and of the others only how they begin. Errors: ErrVersion, *SyntaxError.
func NewIndex(text string) (*Index, error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimSuffix(first, "\r") != version {
		return nil, ErrVersion
	}
	x := &Index{sections: map[Device]map[Key]section{}}
	p := parser{table: &Table{}} // of keys without rows
	for number := 2; rest != ""; number++ {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		if begins(line, "row") && p.key != nil {
			continue
		}
		if why := p.line(line); why != "" {
			return nil, wrongLine(number, line, why)
		}
		switch {
		case p.device == nil:
		case p.key == nil && x.sections[*p.device] == nil:
			x.sections[*p.device] = map[Key]section{}
		case p.key != nil:
			if _, known := x.sections[*p.device][*p.key]; !known {
				x.sections[*p.device][*p.key] = section{rest, number + 1}
			}
		}
	}
	return x, nil
}

// Rows returns the rows of a key on a device, in order; none where the index has no such key. Errors: *SyntaxError of a row.
func (x *Index) Rows(on Device, of Key) ([]Row, error) {
	if x == nil {
		return nil, nil
	}
	s, known := x.sections[on][of]
	if !known {
		return nil, nil
	}
	p := parser{table: &Table{}, device: &on, key: &of}
	for number, rest := s.first, s.text; rest != ""; number++ {
		var line string
		if line, rest, _ = strings.Cut(rest, "\n"); begins(line, "key") || begins(line, "device") {
			break
		}
		if why := p.line(line); why != "" {
			return nil, wrongLine(number, line, why)
		}
	}
	p.end()
	return p.table.Rows(on, of), nil
}

// begins reports whether a line has this first word.
func begins(line, word string) bool {
	rest, ok := strings.CutPrefix(line, word)
	return ok && strings.HasPrefix(rest, " ")
}
