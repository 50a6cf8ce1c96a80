package plan_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// array is a tensor in the memory of an interpreter.
type array struct {
	of     tensor.Type
	layout layout.Layout
	bytes  []byte
	at     uint64 // of the memory
}

// memory has arrays at addresses.
type memory struct {
	interp.Bytes

	next uint64
}

func newMemory() *memory { return &memory{interp.Bytes{}, 0x10000} }

// put places bytes at an offset from an aligned address.
func (m *memory) put(bytes []byte, skip uint64) uint64 {
	at := m.next + skip
	m.Bytes[at] = bytes
	m.next += (skip + uint64(len(bytes)) + 4096) &^ 255
	return at
}

// array is memory for a layout, from its lowest place on.
func (m *memory) array(of tensor.Type, l layout.Layout, skipElements int) *array {
	first, end := l.Bounds()
	a := &array{of: of, layout: l, bytes: make([]byte, (end-first)*of.Size())}
	a.at = m.put(a.bytes, uint64(skipElements*of.Size()))
	return a
}

// place is the offset in bytes of a place of the layout.
func (a *array) place(at int) int {
	first, _ := a.layout.Bounds()
	return (at - first) * a.of.Size()
}

// set writes a number at a place.
func (a *array) set(at int, x float64) {
	b := a.bytes[a.place(at):]
	switch a.of {
	case tensor.Bool:
		b[0] = 0
		if x != 0 {
			b[0] = 1
		}
	case tensor.Uint8, tensor.Int8:
		b[0] = byte(int64(x))
	case tensor.Int16:
		binary.LittleEndian.PutUint16(b, uint16(int64(x)))
	case tensor.Int32:
		binary.LittleEndian.PutUint32(b, uint32(int64(x)))
	case tensor.Int64:
		binary.LittleEndian.PutUint64(b, uint64(int64(x)))
	case tensor.Float16:
		binary.LittleEndian.PutUint16(b, uint16(half.NewFloat16(float32(x))))
	case tensor.BFloat16:
		binary.LittleEndian.PutUint16(b, uint16(half.NewBFloat16(float32(x))))
	case tensor.Float32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(x)))
	case tensor.Float64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(x))
	}
}

// get reads the number at a place.
func (a *array) get(at int) float64 {
	b := a.bytes[a.place(at):]
	switch a.of {
	case tensor.Bool, tensor.Uint8:
		return float64(b[0])
	case tensor.Int8:
		return float64(int8(b[0]))
	case tensor.Int16:
		return float64(int16(binary.LittleEndian.Uint16(b)))
	case tensor.Int32:
		return float64(int32(binary.LittleEndian.Uint32(b)))
	case tensor.Int64:
		return float64(int64(binary.LittleEndian.Uint64(b)))
	case tensor.Float16:
		return float64(half.Float16(binary.LittleEndian.Uint16(b)).Float32())
	case tensor.BFloat16:
		return float64(half.BFloat16(binary.LittleEndian.Uint16(b)).Float32())
	case tensor.Float32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// values are all elements in row-major order.
func (a *array) values() (all []float64) {
	for at := range a.layout.Places() {
		all = append(all, a.get(at))
	}
	return all
}

// fill writes the values of a function.
func (a *array) fill(value func(i int) float64) *array {
	i := 0
	for at := range a.layout.Places() {
		a.set(at, value(i))
		i++
	}
	return a
}

// normal are random numbers.
func normal(seed uint64) func(int) float64 {
	random := rand.New(rand.NewPCG(seed, 7))
	return func(int) float64 { return random.NormFloat64() }
}

func of(t require.TestingT, shape ...int) layout.Layout {
	l, err := layout.Of(shape...)
	require.NoError(t, err)
	return l
}

// run executes a program on arrays: inputs, then outputs.
func run(t helper, p *plan.Program, m *memory, arrays ...*array) plan.Geometry {
	t.Helper()
	layouts, addresses := make([]layout.Layout, len(arrays)), make([]uint64, len(arrays))
	for i, a := range arrays {
		layouts[i], addresses[i] = a.layout, a.at
	}
	var g plan.Geometry
	require.NoError(t, p.Fit(&g, layouts, addresses))
	if !g.Empty() {
		launch(t, p, m, &g, addresses)
	}
	return g
}

func launch(t helper, p *plan.Program, m *memory, g *plan.Geometry, addresses []uint64) {
	t.Helper()
	launchParts(t, p, m, g, addresses, func(int) []interp.Launch { return []interp.Launch{{}} })
}

// launchParts executes the passes of a variant, each in launches of some of the blocks.
func launchParts(t helper, p *plan.Program, m *memory, g *plan.Geometry, addresses []uint64, parts func(blocks int) []interp.Launch) {
	t.Helper()
	text := p.Emit(g.Variant)
	module, err := ptx.Parse(text)
	require.NoError(t, err, text)
	require.NoError(t, ptx.Check(module), text)
	var scratch, tickets uint64
	var ticketBytes []byte
	if g.Split {
		scratch = m.put(make([]byte, p.ScratchBytes(g)), 0)
		ticketBytes = make([]byte, g.TicketBytes())
		tickets = m.put(ticketBytes, 0)
	}
	var params []byte
	for _, param := range p.Params(g.Variant) {
		value := uint64(int64(g.Value(param)))
		switch param.Kind {
		case plan.Pointer:
			value = addresses[param.Operand]
		case plan.Scratch:
			value = scratch
		case plan.Tickets:
			value = tickets
		}
		size := param.Bytes(g.Variant)
		for len(params)%size != 0 {
			params = append(params, 0)
		}
		params = append(params, binary.LittleEndian.AppendUint64(nil, value)[:size]...)
	}
	x, y := g.Grid()
	for _, name := range p.Passes(g.Variant) {
		k, err := interp.Compile(module, name)
		require.NoError(t, err)
		for _, l := range parts(x * y) {
			l.Grid, l.Block = interp.Dim3{X: uint32(x), Y: uint32(y), Z: 1}, interp.Dim3{X: uint32(g.BlockThreads()), Y: 1, Z: 1}
			l.Params, l.Memory = params, m
			require.NoError(t, k.Run(l), text)
		}
	}
	for _, b := range ticketBytes {
		require.Zero(t, b, "tickets are not 0 after the launch")
	}
}

// helper is a test, or a try of a property.
type helper interface {
	require.TestingT
	Helper()
}
