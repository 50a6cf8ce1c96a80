package batch

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/sizeclass"
)

// Blocks go into one run up to its length, and the largest class takes a whole span. No run is empty.
func TestPackingAtItsBounds(t *testing.T) {
	t.Parallel()
	const most = packBytes / sizeclass.UnitBytes
	span := sizeclass.SpanUnits(sizeclass.Of(sizeclass.MaxUnits))
	for _, test := range []struct {
		units []uint32
		want  []uint32
	}{
		{nil, nil},
		{[]uint32{sizeclass.MaxUnits}, []uint32{span}},
		{[]uint32{sizeclass.MaxUnits + 1}, []uint32{sizeclass.MaxUnits + 1}},
		{[]uint32{most}, []uint32{most}},
		{[]uint32{most + 1}, []uint32{most + 1}},
		{[]uint32{most - 200, 200}, []uint32{most}},
		{[]uint32{most - 200, 201}, []uint32{most - 200, 201}},
		{[]uint32{most + 1, 200}, []uint32{most + 1, 200}},
	} {
		p := NewPacking(sizeclass.UnitBytes, nil)
		for _, units := range test.units {
			p.Add(units, 1)
		}
		assert.ElementsMatch(t, test.want, p.Runs(), "%v", test.units)
	}
}
