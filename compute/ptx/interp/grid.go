package interp

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// run is a launch that is executed.
type run struct {
	kernel  *Kernel
	launch  *Launch
	globals map[*ptx.Variable]uint64
	own     []Region
	regions []*region // that were found so far
	shift   [2]uint   // from an offset in shared and in global memory to its cell
	limit   int64
	printed int // bytes, by printf
	grid    uint64

	ignored [kindCount]bool
	turns   turns
	clock   uint32 // of events that order memory; never 0
	orders  map[uint64]*order
	crowds  crowds
	worker  *worker // nil of a run that executes the blocks one after the other
}

// tick returns the next time of events that order memory.
func (r *run) tick() uint32 {
	r.clock++
	if r.clock == 0 {
		panic(fmt.Sprintf("interp: more than %d events", uint32(1<<32-1)))
	}
	return r.clock
}

var errNoMemory = errors.New("the launch has no global memory")

// find asks those who know memory.
func (r *run) find(a *access) (*region, error) {
	for _, known := range r.regions {
		if a.address >= known.Start && a.address-known.Start+uint64(a.bytes) <= uint64(len(known.Bytes)) { //nolint:gosec // few bytes
			return known, nil
		}
	}
	found, err := r.ask(a)
	if err != nil {
		return nil, err
	}
	if a.address < found.Start || a.address-found.Start+uint64(a.bytes) > uint64(len(found.Bytes)) { //nolint:gosec // few bytes
		return nil, fmt.Errorf("the access is not inside the %d bytes at %#x", len(found.Bytes), found.Start)
	}
	if r.worker != nil && found.Start%overreach != 0 {
		return nil, errCrew // an access may reach over the end of a page
	}
	known := &region{Region: found}
	if found.Declared == nil || r.ignored[Undeclared] {
		all := way{found.Start, uint64(len(found.Bytes))}
		known.ways = [2]way{all, all}
	}
	r.regions = append(r.regions, known)
	return known, nil
}

func (r *run) ask(a *access) (Region, error) {
	for _, own := range r.own {
		if a.address >= own.Start && a.address-own.Start < uint64(len(own.Bytes)) {
			return own, nil
		}
	}
	if r.launch.Memory == nil {
		return Region{}, errNoMemory
	}
	var found Region
	var err error
	search := func() { found, err = r.launch.Memory.Range(a.address, a.bytes, a.write) }
	if r.worker == nil {
		search()
	} else {
		r.worker.crew.call(search)
	}
	if err == nil && found.Owner == nil {
		if v := r.variableAt(found.Start); v != nil {
			found.Owner = variableOwner{v}
		}
	}
	return found, err
}

// variableAt returns the variable of the module that begins at an address, or nil.
func (r *run) variableAt(start uint64) *ptx.Variable {
	for v, address := range r.globals {
		if address == start && InitialBytes(v) > 0 {
			return v
		}
	}
	return nil
}

// isConst reports whether an address is in a .const variable of the module.
func (r *run) isConst(address uint64) bool {
	for v, start := range r.globals {
		if v.Space == ptx.Const && address >= start && address-start < uint64(InitialBytes(v)) { //nolint:gosec // not negative
			return true
		}
	}
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

// ownGlobals makes the memory of module variables that the launch does not name.
func (r *run) ownGlobals() {
	address := ownWindow
	for _, v := range r.kernel.globals {
		if at, ok := r.launch.Globals[v.Name]; ok {
			r.globals[v] = at
			continue
		}
		address = (address + 255) &^ 255
		r.globals[v] = address
		b := make([]byte, max(InitialBytes(v), v.Bytes()))
		r.own = append(r.own, Region{Start: address, Bytes: b, Owner: variableOwner{v}})
		address += uint64(len(b))
	}
	for i, v := range r.ownVariables() {
		Initialise(v, r.own[i].Bytes, func(name string) uint64 { return r.addressOf(name) })
	}
}

// ownVariables returns the variables with memory of the run, in the order of run.own.
func (r *run) ownVariables() (own []*ptx.Variable) {
	for _, v := range r.kernel.globals {
		if r.globals[v] >= ownWindow {
			own = append(own, v)
		}
	}
	return own
}

// addressOf returns the address of a module's variable by name.
func (r *run) addressOf(name string) uint64 {
	for v, address := range r.globals {
		if v.Name == name {
			return address
		}
	}
	return 0
}

// InitialBytes returns the size of a module's variable, also of one whose initialiser says how long it is; 0 for nil.
func InitialBytes(v *ptx.Variable) int {
	if v == nil {
		return 0
	}
	if bytes := v.Bytes(); bytes > 0 || v.Init == nil {
		return bytes
	}
	return countValues(v.Init) * v.Type.Bytes()
}

func countValues(o *ptx.Operand) int {
	if o.Kind != ptx.OperandVector {
		return 1
	}
	n := 0
	for i := range o.Elements {
		n += countValues(&o.Elements[i])
	}
	return n
}

// Initialise writes the initialiser of a module's variable to its memory; address returns the addresses of other variables.
func Initialise(v *ptx.Variable, to []byte, address func(name string) uint64) {
	if v != nil && v.Init != nil {
		writeValues(v.Init, v.Type, to, address)
	}
}

func writeValues(o *ptx.Operand, t ptx.Type, to []byte, address func(string) uint64) []byte {
	if o.Kind == ptx.OperandVector {
		for i := range o.Elements {
			to = writeValues(&o.Elements[i], t, to, address)
		}
		return to
	}
	var element [8]byte
	binary.LittleEndian.PutUint64(element[:], initialValue(o, t, address))
	n := copy(to, element[:t.Bytes()])
	return to[n:]
}

func initialValue(o *ptx.Operand, t ptx.Type, address func(string) uint64) uint64 {
	switch {
	case o.Variable != nil:
		return address(o.Variable.Name) + uint64(o.Offset) //nolint:gosec // in two's complement
	case o.Kind == ptx.OperandName:
		return address(o.Name) + uint64(o.Offset) //nolint:gosec // in two's complement
	}
	return constantBits(o, t)
}

// constantBits returns the bits of a constant as a value of a type.
func constantBits(o *ptx.Operand, t ptx.Type) uint64 {
	switch {
	case o.Kind == ptx.OperandFloat64 && t.Bits() == 32:
		return uint64(math.Float32bits(float32(o.Float())))
	case o.Kind == ptx.OperandFloat32 && t.Bits() == 64:
		return math.Float64bits(o.Float())
	}
	return o.Value & mask(t.Bits())
}
