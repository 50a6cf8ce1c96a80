package ptx

// Code is the body of a function in a row, without scopes: for an interpreter.
type Code struct {
	Instructions []*Instruction
	Targets      map[*Label]int // the index of the instruction after each label, len(Instructions) at the end of the body
	Variables    []*Variable    // those that the body declares, in the order of the text
}

// Code returns the body of the function in a row; a declaration has none.
func (f *Function) Code() *Code {
	if f == nil {
		return &Code{}
	}
	c := &Code{Targets: map[*Label]int{}}
	if f.Body != nil {
		c.add(f.Body)
	}
	return c
}

func (c *Code) add(b *Block) {
	for _, s := range b.Statements {
		switch s := s.(type) {
		case *Block:
			c.add(s)
		case *Instruction:
			c.Instructions = append(c.Instructions, s)
		case *Label:
			c.Targets[s] = len(c.Instructions)
		case *Variable:
			c.Variables = append(c.Variables, s)
		case *RegisterDeclaration, *Location, *Pragma:
		}
	}
}
