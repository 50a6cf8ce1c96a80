package magazine

// noSlot names no slot.
const noSlot uint32 = 0

// slotShift leaves room for the slot in a name, behind the magazine.
const slotShift = 6

// names is how the list of freed slots links them: by numbers, whose exchange is one instruction, where that of a
// pointer is a call that also has to tell the collector. A magazine keeps its number while a slot of it is out.
type names struct {
	magazines []*Magazine
	unused    []uint32
}

// add numbers a magazine.
func (n *names) add(m *Magazine) {
	if last := len(n.unused) - 1; last >= 0 {
		m.number = n.unused[last]
		n.unused = n.unused[:last]
		n.magazines[m.number] = m
		return
	}
	m.number = uint32(len(n.magazines)) //nolint:gosec // 2^26 magazines would need 256 GiB
	n.magazines = append(n.magazines, m)
}

// drop forgets a magazine none of whose slots is out.
func (n *names) drop(m *Magazine) {
	n.magazines[m.number] = nil
	n.unused = append(n.unused, m.number)
}

// slot is the slot of a name, nil if it names none.
func (n *names) slot(name uint32) *Slot {
	if name == noSlot {
		return nil
	}
	return &n.magazines[(name-1)>>slotShift].slots[(name-1)&(1<<slotShift-1)]
}

// name is the slot's.
func (s *Slot) name() uint32 { return s.magazine.number<<slotShift + uint32(s.index) + 1 }
