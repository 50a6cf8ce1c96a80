package interp

import "github.com/go-vram/vram/compute/ptx"

// guess is a plain load beside atomics of other threads: a race, unless the thread confirms the value by an atom.cas, as loops
// around it do. The loaded value is only a guess then.
type guess struct {
	fault  *Fault
	value  uint64
	number int
}

type guessKey struct {
	thread  int
	address uint64
}

// guesses are those of a block that were not confirmed.
type guesses struct {
	open  map[guessKey]guess
	count int
}

// guessed reports whether a race is one of a plain load with an atomic, and keeps it until the thread that has loaded confirms the value.
func (w *warp) guessed(a *access, found touch, kind Kind, now []byte) bool {
	b := w.block
	if !b.kernel.swaps || a.bytes > 8 { //nolint:mnd // the widest atom.cas
		return false
	}
	thread := w.index*warpThreads + a.thread
	mine, other := b.kernel.code[w.at].source.Op, b.kernel.code[found.pc()].source.Op
	switch {
	case !a.strong && mine == ptx.OpLd && isAtomic(other):
	case !found.strong() && other == ptx.OpLd && isAtomic(mine) && b.owns(found.clock()):
		thread = found.thread()
	default:
		return false
	}
	key := guessKey{thread, keyOf(a)}
	if _, known := b.guesses.open[key]; known {
		return true
	}
	w.race(a, found, kind)
	f, ok := w.fault.(*Fault) //nolint:errorlint // not wrapped
	if !ok {
		return false
	}
	w.fault = nil
	if b.guesses.open == nil {
		b.guesses.open = map[guessKey]guess{}
	}
	b.guesses.count++
	b.guesses.open[key] = guess{f, load(now, a.bytes), b.guesses.count}
	return true
}

// isAtomic reports whether an opcode is one of an atomic operation.
func isAtomic(op ptx.Opcode) bool { return op == ptx.OpAtom || op == ptx.OpRed }

// confirm is an atom.cas of a thread, which compares with a value.
func (w *warp) confirm(a *access, compare uint64) {
	b := w.block
	key := guessKey{w.index*warpThreads + a.thread, keyOf(a)}
	if g, ok := b.guesses.open[key]; ok && g.value == compare&mask(8*a.bytes) { //nolint:mnd // bits
		delete(b.guesses.open, key)
	}
}

// wrong is the first guess that was not confirmed, or nil.
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
