package ptx

import (
	"fmt"
	"slices"
)

// Use says how a function uses the memory that one of its pointers points to. The pointer is a parameter of 64 bits, or a word
// inside a parameter that is an array.
type Use struct {
	Param  int  // index in Function.Params
	Offset int  // of the pointer in the parameter, in bytes; 0 of a parameter that is no array
	Reads  bool // the function may read the memory
	Writes bool // the function may write the memory
	Tested bool // the function compares the pointer with 0, as C does with NULL
	Maybe  bool // the text does not tell whether it is a pointer or a number; then it is Unknown, too
	// Unknown is empty where Reads and Writes are all that the text does. Else both are true, and Unknown says why the text does
	// not tell.
	Unknown string
}

// Uses returns the pointers among the parameters of a function of the module, in the order of the parameters, with the uses of
// their memory. Atomic operations read and write; a prefetch does neither.
//
// A parameter is a pointer if it has .ptr, if cvta turns it into an address, or if a load or a store has it for the base of its
// address. A number that is scaled, or added to a pointer, is an index. A parameter that the body does not use in any such way is
// not listed.
//
// A parameter that is a tensor map, as of cp.async.bulk.tensor, is listed with the offset 0 and is Unknown, as are all pointers that
// its memory might concern.
//
// Uses follows values through registers, vectors, local and shared memory, parameters of calls and their results. A use is never
// less than the text does: where a part of an address has an unknown origin, as a pointer that is loaded from the memory of another
// pointer, or where an instruction or a called function is not known, all pointers that it might concern are Unknown. Values that
// depend on a pointer by a comparison or a branch alone are not followed: arithmetic that leads from one buffer into
// another is undefined in the languages that PTX is compiled from.
//
// A declaration without a body has Unknown for every parameter of 64 bits. The size of the text bounds the work.
func Uses(m *Module, f *Function) []Use {
	if m == nil || f == nil {
		return nil
	}
	a := newTracing(m, f)
	a.solve()
	return a.uses()
}

// root is a word of a parameter that may be a pointer.
type root struct {
	param, offset int

	pointer   bool // something shows that it is one
	reads     bool
	writes    bool
	tested    bool // it is compared with 0
	ambiguous bool // it is in an address, perhaps as the index
	escapes   bool // it is stored where the analysis does not follow
}

// tracing finds the origins of all values of a function and of the functions that it calls.
type tracing struct {
	module *Module
	entry  *Function
	roots  []root

	bodies []*traced
	byName map[string]*traced

	cells     map[*Variable]*cell // local memory, and parameters of functions
	allocated *Variable           // all that alloca makes
	shared    origin
	exposed   map[*Variable]bool // their addresses are where the analysis does not follow them
	changed   bool               // in this round

	tensors map[int]string // parameters that are tensor maps: why

	last          bool   // nothing changes any more
	unset         bool   // values that nothing has defined count as numbers
	foreignReads  string // why other memory may be read: "" if it is not
	foreignWrites string
}

// wordBytes is the size of a pointer.
const wordBytes = 8

// maxRoots is more than the parameters of a launch hold.
const maxRoots = 4096

func newTracing(m *Module, f *Function) *tracing {
	a := &tracing{module: m, entry: f, byName: map[string]*traced{}, cells: map[*Variable]*cell{}, exposed: map[*Variable]bool{}, tensors: map[int]string{}}
	for n, p := range f.Params {
		if m.AddressSize == 32 || p.Bytes() < wordBytes || len(p.Dims) == 0 && p.Type.Class() == Float { //nolint:mnd // bits
			continue
		}
		for offset := 0; offset+wordBytes <= p.Bytes() && len(a.roots) < maxRoots; offset += wordBytes {
			a.roots = append(a.roots, root{param: n, offset: offset, pointer: p.Pointer != nil && len(p.Dims) == 0})
		}
	}
	return a
}

// solve repeats the tracing with the pointers that the tracing before it has found, until there are no more.
func (a *tracing) solve() {
	if a.entry.Body == nil {
		return
	}
	for {
		before := a.pointers()
		a.start()
		for _, a.unset = range []bool{false, true} {
			for a.changed = true; a.changed; {
				a.changed = false
				for _, b := range slices.Clone(a.bodies) { // a call adds one, for the next round
					a.step(b)
				}
			}
		}
		a.last = true
		for _, b := range a.bodies {
			a.step(b)
		}
		if a.last = false; a.pointers() == before {
			return
		}
	}
}

func (a *tracing) pointers() (n int) {
	for i := range a.roots {
		if a.roots[i].pointer {
			n++
		}
	}
	return n
}

// start forgets everything but the pointers.
func (a *tracing) start() {
	a.bodies, a.shared = nil, origin{}
	a.foreignReads, a.foreignWrites = "", ""
	clear(a.byName)
	clear(a.cells)
	clear(a.exposed)
	clear(a.tensors)
	for i := range a.roots {
		r := &a.roots[i]
		*r = root{param: r.param, offset: r.offset, pointer: r.pointer}
		a.cell(a.entry.Params[r.param]).put(int64(r.offset), wordBytes, origin{set: true, roots: map[int]level{i: base}})
	}
	a.add(a.entry)
}

// add makes a function a part of the tracing.
func (a *tracing) add(f *Function) {
	if a.byName[f.Name] == nil {
		b := newTraced(f)
		a.byName[f.Name] = b
		a.bodies = append(a.bodies, b)
		a.changed = true
	}
}

// uses returns the result.
func (a *tracing) uses() (uses []Use) {
	if a.entry.Body == nil || a.module.AddressSize == 32 { //nolint:mnd // bits
		return a.unknowns()
	}
	for i := range a.roots {
		r := &a.roots[i]
		if why := a.tensors[r.param]; why != "" {
			if r.offset == 0 {
				uses = append(uses, Use{Param: r.param, Reads: true, Writes: true, Unknown: why})
			}
			continue
		}
		maybe := !r.pointer && (r.ambiguous || r.escapes && a.foreignReads+a.foreignWrites != "")
		if !r.pointer && !maybe {
			continue
		}
		u := Use{Param: r.param, Offset: r.offset, Reads: r.reads, Writes: r.writes, Tested: r.tested}
		switch {
		case maybe:
			u.Maybe, u.Unknown = true, "it may be a pointer or a number"
		case u.Reads && u.Writes:
		case a.foreignReads != "" && !u.Reads:
			u.Unknown = a.foreignReads
		case a.foreignWrites != "" && !u.Writes:
			u.Unknown = a.foreignWrites
		}
		if u.Unknown != "" {
			u.Reads, u.Writes = true, true
		}
		uses = append(uses, u)
	}
	return uses
}

// unknowns returns the result for a function whose text tells nothing.
func (a *tracing) unknowns() (uses []Use) {
	bytes, why := wordBytes, "the function has no body"
	if a.module.AddressSize == 32 { //nolint:mnd // bits
		bytes, why = 4, "addresses of 32 bits are not followed" //nolint:mnd // bytes
	}
	for n, p := range a.entry.Params {
		if p.Bytes() == bytes && p.Type.Class() != Float {
			uses = append(uses, Use{Param: n, Reads: true, Writes: true, Maybe: p.Pointer == nil, Unknown: why})
		}
	}
	return uses
}

// at names the place of an instruction in a reason.
func at(i *Instruction, what string) string {
	if i.Pos == (Pos{}) {
		return fmt.Sprintf("%s: %s", i.name(), what)
	}
	return fmt.Sprintf("line %d, %s: %s", i.Pos.Line, i.name(), what)
}
