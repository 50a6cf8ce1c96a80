package interp

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// field are the word and the bits of an access in a bit map; an aligned access is in one word.
func (a *access) field(of []uint64, offset uint64) (word *uint64, field uint64) {
	return &of[offset>>6], mask(a.bytes) << (offset & 63) //nolint:mnd // bits of a word
}

// contents reports whether all bytes of a load from global memory were written; a store writes them.
func (w *warp) contents(a *access, g *region, offset uint64) bool {
	word, field := a.field(g.Initialised, offset)
	switch missing := field &^ *word; {
	case a.read && missing != 0 && !w.block.run.ignored[Uninitialised]:
		at := offset&^63 + uint64(bits.TrailingZeros64(missing)) //nolint:gosec,mnd // not negative
		w.refuse(a, Uninitialised, fmt.Sprintf("nothing has written byte %d%s", at, g.owner()))
		return false
	case a.write:
		*word |= field
	}
	return true
}

// owner names whose region it is, behind a number of a byte.
func (g *region) owner() string {
	if g.Owner == nil {
		return fmt.Sprintf(" of the %d at %#x", len(g.Bytes), g.Start)
	}
	return " of " + g.Owner.String()
}

// declared reports whether the launch declares such an access. Bytes that the launch has written may also be read.
func (w *warp) declared(a *access, g *region, offset uint64) bool {
	word, field := a.field(g.stored, offset)
	switch {
	case w.block.run.ignored[Undeclared]:
	case a.read && field&^*word != 0 && !g.declares(a, false):
		return w.undeclared(a, g, offset, "as written alone, and the kernel reads there what it has not written")
	case a.write && !g.declares(a, true):
		return w.undeclared(a, g, offset, "as read alone, and the kernel writes there")
	}
	if a.write {
		*word |= field
	}
	return true
}

// declares reports whether each byte of an access is in a part that is written, or read.
func (g *region) declares(a *access, write bool) bool {
	for at, end := a.address, a.address+uint64(a.bytes); at < end; { //nolint:gosec // few bytes
		next := at
		for _, d := range g.Declared {
			if d.Write == write && d.Start <= at && at-d.Start < d.Bytes {
				next = max(next, d.Start+d.Bytes)
			}
		}
		if next == at {
			return false
		}
		at = next
	}
	return true
}

// undeclared reports an access, with the parameter whose part it is in.
func (w *warp) undeclared(a *access, g *region, offset uint64, how string) bool {
	at := fmt.Sprintf("byte %d%s", offset, g.owner())
	for _, d := range g.Declared {
		if a.address < d.Start || a.address-d.Start >= d.Bytes {
			continue
		}
		if index, name := w.block.run.parameterWith(d.Start); name != "" {
			w.refuse(a, Undeclared, fmt.Sprintf("the launch declares parameter %d, %s, %s: %s", index, name, how, at))
		} else {
			w.refuse(a, Undeclared, fmt.Sprintf("the launch declares the memory %s: %s", how, at))
		}
		return false
	}
	w.refuse(a, Undeclared, "the access is beside the parts of the buffer that the launch declares: "+at)
	return false
}

// parameterWith finds the parameter that has an address.
func (r *run) parameterWith(address uint64) (index int, name string) {
	k := r.kernel
	all := slices.SortedFunc(maps.Keys(k.params), func(a, b *ptx.Variable) int { return cmp.Compare(k.params[a], k.params[b]) })
	for n, p := range all {
		at := k.params[p]
		if p.Bytes() == pointerBytes && load(r.launch.Params[at:], pointerBytes) == address {
			return n, p.Name
		}
	}
	return 0, ""
}

// pointerBytes is the size of an address.
const pointerBytes = 8
