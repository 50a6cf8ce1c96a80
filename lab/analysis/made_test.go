package analysis_test

import (
	"fmt"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

// made is a trace in the making, ten microseconds between events.
type made struct {
	rows  strings.Builder
	count int // of events
	next  int // id
	sizes map[int]int64
}

func (m *made) row(op byte, id int, bytes int64, stream int) {
	fmt.Fprintf(&m.rows, "%d,%c,%d,%d,%d\n", 10*m.count, op, id, bytes, stream)
	m.count++
}

func (m *made) alloc(bytes int64, stream int) (id int) {
	if m.sizes == nil {
		m.sizes = map[int]int64{}
	}
	id = m.next
	m.next++
	m.sizes[id] = bytes
	m.row('a', id, bytes, stream)
	return id
}

func (m *made) free(id, stream int) { m.row('f', id, m.sizes[id], stream) }

func (m *made) trace(t require.TestingT, name string) *trace.Trace {
	tr, err := trace.Read(name, strings.NewReader("t_us,op,id,size,stream\n"+m.rows.String()))
	require.NoError(t, err)
	return tr
}

const (
	kib = 1 << 10
	mib = 1 << 20
)

// loop is steps of ten allocations of different sizes, each freed in the step, and weights that stay; keep is the number of a
// step's buffers that are not freed.
func loop(t require.TestingT, steps, keep int) *trace.Trace {
	var m made
	for i := range 3 {
		m.alloc(64*mib+int64(i), 0)
	}
	for range steps {
		var ids []int
		for i := range 10 {
			ids = append(ids, m.alloc(int64(i+1)*mib, 0))
		}
		for _, id := range ids[keep:] {
			m.free(id, 0)
		}
	}
	return m.trace(t, "loop")
}
