package ptx

import "slices"

// cell has the values that memory of a variable may hold, by words, and at offsets that are not known.
type cell struct {
	words    map[int64]origin
	anywhere origin
}

// cell returns the memory of a variable.
func (a *tracing) cell(v *Variable) *cell {
	c := a.cells[v]
	if c == nil {
		c = &cell{words: map[int64]origin{}}
		a.cells[v] = c
	}
	return c
}

// maxWords is how many words of one variable are told apart.
const maxWords = 4096

// put adds a value that bytes at an offset may hold, and reports whether it was new.
func (c *cell) put(offset int64, bytes int, v origin) (grown bool) {
	if offset == anywhere || len(c.words) >= maxWords || bytes > wordBytes*maxWords {
		return c.anywhere.join(v)
	}
	for word := offset &^ (wordBytes - 1); word < offset+int64(bytes); word += wordBytes {
		o := c.words[word]
		if o.join(v) {
			c.words[word], grown = o, true
		}
	}
	return grown
}

// get returns all values that bytes at an offset may hold.
func (c *cell) get(offset int64, bytes int) (v origin) {
	v.join(c.anywhere)
	if offset == anywhere || bytes > wordBytes*maxWords {
		for _, o := range c.words {
			v.join(o)
		}
		return v
	}
	for word := offset &^ (wordBytes - 1); word < offset+int64(bytes); word += wordBytes {
		v.join(c.words[word])
	}
	return v
}

// copy adds all that another variable may hold.
func (c *cell) copy(from *cell) (grown bool) {
	grown = c.anywhere.join(from.anywhere)
	for word, v := range from.words {
		grown = c.put(word, wordBytes, v) || grown
	}
	return grown
}

// accessing says how an instruction uses the memory at an address.
type accessing struct{ reads, writes bool }

// fromMemory is the origin of a value that memory has which is not followed.
func fromMemory(bits int) origin {
	return origin{set: true, number: true, loaded: base}.narrowed(bits)
}

// stray reports whether an address may point to memory that is not followed.
func (v origin) stray() bool { return v.loaded == base || v.bent || !v.based() }

// touch charges the pointers that an address is computed from.
func (m *moment) touch(space Space, v origin, how accessing) {
	if space != Global && space != Generic || !m.ready {
		return
	}
	for r := range v.roots {
		m.roots[r].reads = m.roots[r].reads || how.reads
		m.roots[r].writes = m.roots[r].writes || how.writes
	}
	if m.last {
		m.evident(v)
		for r, l := range v.roots {
			if (l == base || v.bent || !v.based()) && !m.roots[r].pointer {
				m.roots[r].ambiguous = true
			}
		}
		if v.stray() {
			m.foreign(how, "the address may be a pointer from memory, or one that the text does not tell")
		}
	}
}

// foreign notes an access to memory that may be of any pointer.
func (m *moment) foreign(how accessing, why string) {
	if how.reads && m.foreignReads == "" {
		m.foreignReads = at(m.i, why)
	}
	if how.writes && m.foreignWrites == "" {
		m.foreignWrites = at(m.i, why)
	}
}

// evident marks the parameters as pointers that an address, or another value that is a pointer for certain, is one of.
func (m *moment) evident(v origin) {
	if !m.last || !v.leads() || v.mixed {
		return
	}
	for r, l := range v.roots {
		if l == base {
			m.roots[r].pointer = true
		}
	}
}

// load returns the origin of memory at an address.
func (m *moment) load(space Space, v origin, bits int) (result origin) {
	bytes := bits / 8 //nolint:mnd // bits of a byte
	places := func() {
		for p, offset := range v.places {
			from := m.cell(p).get(offset, bytes)
			if !from.set && (m.unset || m.preset(p)) {
				from = number()
			}
			result.join(from)
		}
	}
	everywhere := func(which func(*Variable) bool) {
		for p, c := range m.cells {
			if which(p) {
				result.join(c.get(anywhere, bytes))
			}
		}
	}
	switch space {
	case Param, Local:
		if places(); len(v.places) == 0 {
			everywhere(func(p *Variable) bool { return p.Space == space })
		}
	case Shared:
		result.join(m.shared)
	case Global, Const, spaceCount:
		return fromMemory(bits)
	case Generic:
		places()
		if v.shared {
			result.join(m.shared)
		}
		if v.fixed || len(v.roots) > 0 || v.stray() {
			result.join(fromMemory(bits))
		}
		if v.stray() {
			everywhere(func(p *Variable) bool { return m.exposed[p] })
			result.join(m.shared)
		}
	}
	if m.unset && !result.set {
		result = number()
	}
	if bits >= 64 { //nolint:mnd // a pointer
		result = result.widened()
	}
	return result.narrowed(bits)
}

// preset reports whether a variable is a parameter of the kernel, which the launch has set.
func (a *tracing) preset(v *Variable) bool {
	return slices.Contains(a.entry.Params, v)
}

// store adds a value to the memory at an address.
func (m *moment) store(space Space, address origin, bits int, v origin) {
	if !m.ready {
		return
	}
	v = v.narrowed(bits)
	grown := func(g bool) { m.changed = m.changed || g }
	if space == Local || space == Param || space == Generic {
		for p, offset := range address.places {
			grown(m.cell(p).put(offset, bits/8, v)) //nolint:mnd // bits of a byte
			if m.exposed[p] {
				m.escape(v)
			}
		}
	}
	stray := space == Generic && address.stray()
	if space == Shared || space == Generic && address.shared || stray {
		grown(m.shared.join(v))
	}
	for p, c := range m.cells {
		if !m.preset(p) && (stray && m.exposed[p] || p.Space == space && len(address.places) == 0) {
			grown(c.anywhere.join(v))
		}
	}
	if space == Global || stray || space == Generic && (address.fixed || len(address.roots) > 0) {
		m.escape(v)
	}
}

// escape notes that pointers go where the analysis does not follow them, with all that is at the addresses among them.
func (m *moment) escape(v origin) {
	for p := range v.places {
		if !m.exposed[p] {
			m.exposed[p], m.changed = true, true
			m.escape(m.cell(p).get(anywhere, 0))
		}
	}
	for r, l := range v.roots {
		m.roots[r].escapes = m.roots[r].escapes || l == base
	}
}

// memory adds the effect of an instruction with an address.
func (m *moment) memory() {
	i := m.i
	space, t := i.Space(), i.Type(len(i.Types)-1)
	bits := max(t.Bits(), 8) //nolint:mnd // a byte
	first := func(n int) *Operand {
		if n < len(i.Operands) {
			return &i.Operands[n]
		}
		return &Operand{}
	}
	switch i.Op { //nolint:exhaustive // those with memory
	case OpLd:
		m.loads(space, first(1), first(0), bits)
	case OpSt:
		address := m.value(first(0))
		m.touch(space, address, accessing{writes: true})
		m.stores(space, address, first(1), bits)
	case OpAtom, OpRed:
		to := 1
		if i.Op == OpRed {
			to = 0
		}
		address := m.value(first(to))
		m.touch(space, address, accessing{true, true})
		for n := to + 1; n < len(i.Operands); n++ {
			m.stores(space, address, first(n), bits)
		}
		m.define(m.load(space, address, bits))
	case OpCpAsync:
		m.touch(Global, m.value(first(1)), accessing{reads: true})
		m.store(Shared, origin{}, 64, fromMemory(64)) //nolint:mnd // it may be a pointer
	case OpLdmatrix:
		m.define(m.load(Shared, origin{}, 32)) //nolint:mnd // pairs of halves
	case OpWmmaStoreD:
		address := m.value(first(0))
		m.touch(space, address, accessing{writes: true})
		m.stores(space, address, first(1), 32) //nolint:mnd // of a fragment
	default: // wmma.load
		address := m.value(first(1))
		m.touch(space, address, accessing{reads: true})
		m.define(m.load(space, address, 32)) //nolint:mnd // of a fragment
	}
}

// ofTensor adds an access by a tensor map: to the memory that the map describes, which the text does not tell. map is the address of
// the map, which is a parameter or lies in memory.
func (m *moment) ofTensor(o *Operand, how accessing) {
	address := m.value(o)
	m.touch(Generic, address, accessing{reads: true})
	m.foreign(how, "the memory of a tensor is not known")
	if !m.last {
		return
	}
	for v := range address.places {
		for n, p := range m.entry.Params {
			if p == v {
				m.tensors[n] = at(m.i, "it is a tensor map")
			}
		}
	}
}

// loads defines the elements of a load, each from its own place.
func (m *moment) loads(space Space, from, to *Operand, bits int) {
	address := m.value(from)
	m.touch(space, address, accessing{reads: true})
	if to.Kind != OperandVector {
		m.define(m.load(space, address, bits))
		return
	}
	k := 0
	for n := range to.Elements {
		if to.Elements[n].Kind == OperandRegister {
			m.defineOne(k, m.load(space, address.shifted(int64(n*bits/8)), bits)) //nolint:mnd // bits of a byte
			k++
		}
	}
}

// stores adds the elements of a store, each in its own place.
func (m *moment) stores(space Space, address origin, from *Operand, bits int) {
	if from.Kind != OperandVector {
		m.store(space, address, bits, m.value(from))
		return
	}
	for n := range from.Elements {
		m.store(space, address.shifted(int64(n*bits/8)), bits, m.value(&from.Elements[n])) //nolint:mnd // bits of a byte
	}
}
