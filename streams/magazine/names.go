package magazine

import "sync/atomic"

// noSlot names no slot.
const noSlot uint32 = 0

// slotShift leaves room for the slot in a name, behind the magazine.
const slotShift = 6

// names is how the list of freed slots links them: by numbers, whose exchange is one instruction, where that of a
// pointer is a call that also has to tell the collector. A magazine keeps its number while a slot of it is out.
//
// The owner writes it. Callers read what a name in the list stands for: that was written before the slot was handed out.
type names struct {
	table  atomic.Pointer[[]atomic.Pointer[Magazine]]
	count  int // that were given out ever
	unused []uint32
}

// add numbers a magazine.
func (n *names) add(m *Magazine) {
	if last := len(n.unused) - 1; last >= 0 {
		m.number = n.unused[last]
		n.unused = n.unused[:last]
	} else {
		m.number = uint32(n.count) //nolint:gosec // 2^26 magazines would need 256 GiB
		n.count++
	}
	(*n.room())[m.number].Store(m)
}

// room is the table, longer than any number that was given out.
func (n *names) room() *[]atomic.Pointer[Magazine] {
	t := n.table.Load()
	if t != nil && len(*t) >= n.count {
		return t
	}
	longer := make([]atomic.Pointer[Magazine], max(16, 2*n.count))
	if t != nil {
		for i := range *t {
			longer[i].Store((*t)[i].Load())
		}
	}
	n.table.Store(&longer)
	return &longer
}

// drop forgets a magazine none of whose slots is out.
func (n *names) drop(m *Magazine) {
	(*n.table.Load())[m.number].Store(nil)
	n.unused = append(n.unused, m.number)
}

// slot is the slot of a name, nil if it names none. A caller may have read the name before its magazine was dropped: then it names none
// any more, or one of another magazine with that number.
func (n *names) slot(name uint32) *Slot {
	if name == noSlot {
		return nil
	}
	m := (*n.table.Load())[(name-1)>>slotShift].Load()
	if m == nil {
		return nil
	}
	return &m.slots[(name-1)&(1<<slotShift-1)]
}

// name is the slot's.
func (s *Slot) name() uint32 { return s.magazine.number<<slotShift + uint32(s.index) + 1 }
