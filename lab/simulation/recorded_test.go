package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/streams"
)

// The last known end of work decides which buffers must be pending: a graph may be launched, and end, between the question and
// its answer.
func TestWhatMustBePendingGoesByTheLastKnownEnd(t *testing.T) {
	w := newWorld(1, mutateNothing)
	defer w.abandon()
	s, other := w.era.streams[0], &stream{}
	w.do("alloc", func() {
		b, err := s.Alloc(1000)
		w.answered(s, nil, b, 1000, 0, err)
	})
	require.Nil(t, w.fault)
	b := w.held[0]
	b.gone = true
	w.uses.add(use{span: b.span, stream: other, of: b, until: forever})
	before := w.waitingIn(s)
	require.Len(t, before, 1)

	w.uses.pending[0].until = w.watch.Now() + time.Microsecond // the graph is launched
	w.watch.Advance(2 * time.Microsecond)
	w.stillWaits(s, before, streams.Stats{})
	assert.Nil(t, w.fault)

	w.uses.pending[0].until = w.watch.Now() + time.Microsecond
	w.stillWaits(s, before, streams.Stats{})
	require.NotNil(t, w.fault)
	assert.Equal(t, "pending", w.fault.class)
}
