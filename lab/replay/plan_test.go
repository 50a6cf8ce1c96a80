package replay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

func read(t *testing.T, rows ...string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read("rows.csv", strings.NewReader("t_us,op,id,size,stream\n"+strings.Join(rows, "\n")+"\n"))
	require.NoError(t, err)
	return tr
}

func TestPlanForOneGoroutine(t *testing.T) {
	tr := read(t, "0,a,0,100,0", "1,a,1,50,1", "2,f,0,100,1", "3,f,1,50,1")
	programs, gates := plan(tr, false)
	assert.Nil(t, gates)
	assert.Equal(t, []program{{
		steps: []step{
			{bytes: 100, id: 0, stream: 0, kind: stepAlloc},
			{bytes: 50, id: 1, stream: 1, kind: stepAlloc},
			{bytes: 100, id: 0, stream: 0, kind: stepFree},
			{bytes: 50, id: 1, stream: 1, kind: stepFree},
		},
		events: []int{0, 1, 2, 3},
	}}, programs)
}

func TestPlanForAGoroutineEachStream(t *testing.T) {
	tr := read(t, "0,a,0,100,0", "1,a,1,50,1", "2,f,0,100,1", "3,f,1,50,1")
	programs, gates := plan(tr, true)
	assert.Equal(t, []program{
		{
			steps:  []step{{bytes: 100, id: 0, stream: 0, kind: stepAllocShared}},
			events: []int{0},
		},
		{
			steps: []step{
				{bytes: 50, id: 1, stream: 1, kind: stepAlloc},
				{bytes: 100, id: 0, stream: 0, kind: stepFreeForeign},
				{bytes: 50, id: 1, stream: 1, kind: stepFree},
			},
			events: []int{1, 2, 3},
		},
	}, programs)
	require.Len(t, gates, 2)
	assert.NotNil(t, gates[0])
	assert.Nil(t, gates[1])
}

func TestGateLetsPassAfterOpening(t *testing.T) {
	var g gate
	for range 2 { // each round closes it again
		g.close()
		passed := make(chan error)
		go func() { passed <- (&player{session: &session{}}).pass(t.Context(), &g, nil) }()
		select {
		case <-passed:
			require.Fail(t, "passed a closed gate")
		default:
		}
		g.open()
		require.NoError(t, <-passed)
		require.NoError(t, (&player{session: &session{}}).pass(t.Context(), &g, nil), "open for everybody")
	}
}
