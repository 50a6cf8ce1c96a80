package interp

import "github.com/go-vram/vram/compute/ptx"

// guess is a plain load that races with atomics of other threads. It is a fault unless the thread confirms the loaded
// value by an atom.cas, as loops around atom.cas do.
type guess struct {
	fault  *Fault
	value  uint64
	number int
}

type guessKey struct {
	thread  int
	address uint64
}

// guesses holds the unconfirmed guesses of a block.
type guesses struct {
	open  map[guessKey]guess
	count int
}

// isAtomic reports whether an opcode is one of an atomic operation.
func isAtomic(op ptx.Opcode) bool { return op == ptx.OpAtom || op == ptx.OpRed }

// keep keeps a fault until the thread confirms the value that it has loaded.
func (g *guesses) keep(key guessKey, fault *Fault, value uint64) {
	if g.open == nil {
		g.open = map[guessKey]guess{}
	}
	g.count++
	g.open[key] = guess{fault, value, g.count}
}

// confirm drops the guess of an atom.cas that compares with the value.
func (g *guesses) confirm(key guessKey, value uint64) {
	if one, ok := g.open[key]; ok && one.value == value {
		delete(g.open, key)
	}
}

// wrong returns the first guess that was not confirmed, or nil.
func (g *guesses) wrong() error {
	var first *guess
	for _, one := range g.open {
		if first == nil || one.number < first.number {
			first = &one
		}
	}
	if first == nil {
		return nil
	}
	return first.fault
}
