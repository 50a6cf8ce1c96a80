package ops_test

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/cuda"
)

// memory is the content of all tensors of a table.
type memory [][]byte

// content returns random elements for a tensor. Indices and classes fit the shortest dimension that they lead along.
func (r *rig) content(t *tensor.Tensor) (all []byte) {
	for range t.Len() {
		x := r.random.NormFloat64()
		switch t.Type() {
		case tensor.Bool:
			all = append(all, byte(r.random.IntN(2)))
		case tensor.Int64:
			all = binary.LittleEndian.AppendUint64(all, r.random.Uint64N(16))
		case tensor.Int32:
			all = binary.LittleEndian.AppendUint32(all, r.random.Uint32())
		case tensor.Float16:
			all = binary.LittleEndian.AppendUint16(all, uint16(half.NewFloat16(float32(x))))
		case tensor.BFloat16:
			all = binary.LittleEndian.AppendUint16(all, uint16(half.NewBFloat16(float32(x))))
		case tensor.Float32:
			all = binary.LittleEndian.AppendUint32(all, math.Float32bits(float32(x)))
		case tensor.Float64:
			all = binary.LittleEndian.AppendUint64(all, math.Float64bits(x))
		default:
			require.Fail(r, "no tensor of the table has this type", t.Type())
		}
	}
	return all
}

func (r *rig) rangeOf(t *tensor.Tensor) cuda.Range {
	r.Helper()
	at, err := t.Range()
	require.NoError(r, err)
	return at
}

// contents returns the content of all tensors. It does not read those for which known has the content.
func (r *rig) contents(known memory) memory {
	r.Helper()
	var all memory
	for i, t := range *r.zeroed {
		if known != nil && known[i] != nil {
			all = append(all, known[i])
			continue
		}
		at := r.rangeOf(t)
		content := make([]byte, at.Bytes)
		require.NoError(r, r.c.CopyOutAt(content, at.Buffer, at.Offset))
		all = append(all, content)
	}
	return all
}

// unchanged returns the contents that two memories share, and nil for other tensors.
func unchanged(before, after memory) (same memory) {
	for i, content := range before {
		if !bytes.Equal(content, after[i]) {
			content = nil
		}
		same = append(same, content)
	}
	return same
}

// restore writes the former contents of tensors that have changed.
func (r *rig) restore(had, now memory) {
	r.Helper()
	for i, t := range *r.zeroed {
		if !bytes.Equal(had[i], now[i]) {
			at := r.rangeOf(t)
			require.NoError(r, r.c.CopyInAt(at.Buffer, at.Offset, had[i]))
		}
	}
}

// sweepSizes returns the sizes of the sweep over all operations. In the long form several blocks share a row; in both several sum up an element
// of a product, and the last one has fewer numbers than the others.
func sweepSizes() sizes {
	if testing.Short() {
		return sizes{columns: 1<<11 + 3, summed: 530}
	}
	return sizes{columns: 1<<15 + 3, summed: 1300}
}

// Every operation has the same bits when it is repeated, and in a graph that is launched twice, on random data. The short form has every third
// row of the table.
func TestEveryOperationRepeats(t *testing.T) {
	r := newRig(t)
	o := r.operandsOf(sweepSizes())
	table := o.calls()
	var before memory
	for _, x := range *r.zeroed {
		content := r.content(x)
		at := r.rangeOf(x)
		require.NoError(t, r.c.CopyInAt(at.Buffer, at.Offset, content))
		before = append(before, content)
	}
	met, rows, changed := 0, 0, 0
	for _, op := range slices.Sorted(maps.Keys(table)) {
		for _, way := range slices.Sorted(maps.Keys(table[op])) {
			if met++; testing.Short() && met%3 != 0 {
				continue
			}
			f := table[op][way]
			name := op + ", " + way
			run := func(f call, known memory) memory {
				*o.step = 0
				require.NoError(t, f(), name)
				after := r.contents(known)
				r.restore(before, after)
				return after
			}
			eager := run(f, nil)
			others := unchanged(before, eager) // are read again at the end alone: nothing restores one that a run has written
			require.Equal(t, eager, run(f, others), name)
			*o.step = 0
			g, err := r.c.Capture(f)
			require.NoError(t, err, name)
			for _, known := range []memory{others, nil} {
				require.Equal(t, eager, run(func() error { return g.Launch(r.c) }, known), name)
			}
			require.NoError(t, r.c.Synchronize(t.Context()))
			require.NoError(t, g.Close(), name)
			if rows++; !slices.EqualFunc(before, eager, bytes.Equal) {
				changed++
			}
		}
	}
	t.Logf("%d rows, of which %d changed a tensor", rows, changed)
	require.Greater(t, changed, rows*9/10)
}
