package kernel

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A stock gives each launch whole sectors, one after the other, is low once more than half of it is used, and gives nothing that
// it does not have.
func TestTheStockOfTickets(t *testing.T) {
	s := &ticketStock{}
	all := &contextTickets{stock: s}
	take := func(bytes int64) (offset, taken int64, low bool) {
		part, ok := all.take(bytes)
		if !ok {
			return -1, 0, all.low.Load()
		}
		assert.Same(t, s, part.stock)
		assert.False(t, part.own)
		return part.at.Offset, part.at.Bytes, all.low.Load()
	}
	for _, c := range []struct {
		bytes, offset, taken int64
		low                  bool
	}{
		{1, 0, 32, false},
		{32, 32, 32, false},
		{33, 64, 64, false},
		{graphTickets/2 - 128, 128, graphTickets/2 - 128, false},
		{4, graphTickets / 2, 32, false}, // half of it was used before
		{graphTickets, -1, 0, true},
		{graphTickets/2 - 32, graphTickets/2 + 32, graphTickets/2 - 32, true},
		{1, -1, 0, true},
	} {
		offset, taken, low := take(c.bytes)
		assert.Equal(t, c.offset, offset, "%v", c)
		assert.Equal(t, c.taken, taken, "%v", c)
		assert.Equal(t, c.low, low, "%v", c)
	}
	assert.Equal(t, 6, s.users)
	half := &contextTickets{stock: &ticketStock{used: graphTickets/2 + 32}}
	_, ok := half.take(1)
	assert.True(t, ok && half.low.Load(), "low, with room")
	none := &contextTickets{}
	_, ok = none.take(1)
	assert.False(t, ok)
	assert.True(t, none.low.Load())
}

// A kept geometry is for addresses with its alignments alone.
func TestAlignmentsOfAGeometry(t *testing.T) {
	e := &fitted{lows: []uint64{0, 4, 8}}
	for _, c := range []struct {
		addresses [3]uint64
		want      bool
	}{
		{[3]uint64{0, 4, 8}, true}, {[3]uint64{4096, 4100, 16*5 + 8}, true}, {[3]uint64{1, 4, 8}, false}, {[3]uint64{0, 0, 8}, false}, {[3]uint64{0, 4, 0}, false},
	} {
		var all [len(e.geometry.Start)]uint64
		copy(all[:], c.addresses[:])
		assert.Equal(t, c.want, e.aligned(&all), "%v", c)
	}
}
