package attention_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// rig is a device with a context and the kernels of attention.
type rig struct {
	testing.TB

	c      *cuda.Context
	a      *attention.Attention
	random *rand.Rand
}

func newRig(tb testing.TB) *rig {
	tb.Helper()
	return newRigOn(tb, open(tb))
}

func newRigOn(tb testing.TB, dev *vram.Device, with ...kernel.Option) *rig {
	tb.Helper()
	s, err := dev.NewStream()
	require.NoError(tb, err)
	r := &rig{TB: tb, random: rand.New(rand.NewPCG(1, 2))}
	r.c, err = cuda.NewContext(s)
	require.NoError(tb, err)
	k, err := kernel.NewCompiler(r.c, with...)
	require.NoError(tb, err)
	tb.Cleanup(func() {
		assert.NoError(tb, k.Close())
		assert.NoError(tb, r.c.Close())
	})
	r.a = attention.New(r.c, k)
	return r
}

// withoutGroups returns the rig with kernels of its own, of which none is by warpgroups.
func (r *rig) withoutGroups() *rig {
	r.Helper()
	other := *r
	k, err := kernel.NewCompiler(r.c)
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, k.Close()) })
	other.a = attention.New(r.c, k)
	attention.UseGroups(other.a, false)
	return &other
}

// guardBytes lie before and after the elements of a matrix, and must stay as they are.
const guardBytes = 64

// matrix is an operand in memory, with the numbers that it had when it was made.
type matrix struct {
	attention.Matrix

	of   gemm.Type
	dim  int64
	host []byte
}

// elementBytes returns the size of an element.
func (m *matrix) elementBytes() int64 { return m.of.Bytes() }

// matrix makes an operand. apart: rows of all heads lie between two rows of a head, as products of layers leave them.
func (r *rig) matrix(of gemm.Type, batch, heads, rows, dim int64, apart bool, number func() float64) *matrix {
	r.Helper()
	m := &matrix{of: of, dim: dim}
	m.Head, m.Row = rows*dim, dim
	if apart {
		m.Head, m.Row = dim, heads*dim
	}
	m.Batch = heads * rows * dim
	bytes := batch * heads * rows * dim * of.Bytes()
	b, err := r.c.Alloc(bytes + 2*guardBytes)
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, b.Free()) })
	m.At, m.host = cuda.Part(b, guardBytes, bytes), make([]byte, b.Bytes())
	for i := int64(0); i < b.Bytes(); i += of.Bytes() {
		m.put(i, number())
	}
	require.NoError(r, r.c.CopyInAt(b, 0, m.host))
	return m
}

// put writes a number at a byte of the buffer.
func (m *matrix) put(at int64, x float64) {
	switch m.of {
	case gemm.BFloat16:
		binary.LittleEndian.PutUint16(m.host[at:], uint16(half.NewBFloat16(float32(x))))
	case gemm.Float16:
		binary.LittleEndian.PutUint16(m.host[at:], uint16(half.NewFloat16(float32(x))))
	default:
		binary.LittleEndian.PutUint32(m.host[at:], math.Float32bits(float32(x)))
	}
}

func (m *matrix) get(from []byte, at int64) float64 {
	switch m.of {
	case gemm.BFloat16:
		return float64(half.BFloat16(binary.LittleEndian.Uint16(from[at:])).Float32())
	case gemm.Float16:
		return float64(half.Float16(binary.LittleEndian.Uint16(from[at:])).Float32())
	default:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(from[at:])))
	}
}

// at is the byte of an element.
func (m *matrix) at(batch, head, row, i int64) int64 {
	return m.At.Offset + (batch*m.Batch+head*m.Head+row*m.Row+i)*m.elementBytes()
}

// row is a row as it was made.
func (m *matrix) row(batch, head, row int64) []float64 {
	all := make([]float64, m.dim)
	for i := range m.dim {
		all[i] = m.get(m.host, m.at(batch, head, row, i))
	}
	return all
}

// read returns the buffer as it is now. The bytes around the elements must be as they were.
func (r *rig) read(m *matrix) []byte {
	r.Helper()
	now := make([]byte, len(m.host))
	require.NoError(r, r.c.CopyOutAt(now, m.At.Buffer, 0))
	assert.Equal(r, m.host[:guardBytes], now[:guardBytes], "before the elements")
	assert.Equal(r, m.host[m.At.Offset+m.At.Bytes:], now[m.At.Offset+m.At.Bytes:], "after the elements")
	return now
}

// numbers makes a range of int32.
func (r *rig) numbers(all ...int32) cuda.Range {
	r.Helper()
	b, err := r.c.Alloc(int64(4 * len(all)))
	require.NoError(r, err)
	r.Cleanup(func() { assert.NoError(r, b.Free()) })
	require.NoError(r, cuda.CopyIn(r.c, b, all))
	return cuda.Whole(b)
}
