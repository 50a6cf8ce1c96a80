package modes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

// block is a live buffer of a trace that is being made.
type block struct {
	id     int
	bytes  int64
	stream int
}

// maker makes a trace from a seed.
type maker struct {
	random *rand.Rand
	text   strings.Builder
	micros int
	nextID int
}

// made are the shapes of traces, each with how it is made.
func made() map[string]func(m *maker) {
	return map[string]func(m *maker){
		"shifting":  (*maker).shifting,
		"replacing": (*maker).replacing,
		"bursts":    (*maker).bursts,
		"serving":   (*maker).serving,
		"spike":     (*maker).spike,
	}
}

// makeTrace makes a trace of a shape.
func makeTrace(t *testing.T, shape string, seed uint64) *trace.Trace {
	t.Helper()
	m := &maker{random: rand.New(rand.NewPCG(seed, 0x6d616465))} //nolint:gosec // reproducible is the point
	m.text.WriteString("t_us,op,id,size,stream\n")
	made()[shape](m)
	tr, err := trace.Read(fmt.Sprintf("%s_%d", shape, seed), strings.NewReader(m.text.String()))
	require.NoError(t, err)
	return tr
}

func (m *maker) event(op string, b block) {
	m.micros += 3
	fmt.Fprintf(&m.text, "%d,%s,%d,%d,%d\n", m.micros, op, b.id, b.bytes, b.stream)
}

func (m *maker) alloc(stream int, bytes int64) block {
	b := block{m.nextID, bytes, stream}
	m.nextID++
	m.event("a", b)
	return b
}

func (m *maker) free(blocks ...block) {
	for _, b := range blocks {
		m.event("f", b)
	}
}

// between is a size whose logarithm is as likely anywhere between two.
func (m *maker) between(minBytes, maxBytes int64) int64 {
	low, high := math.Log(float64(minBytes)), math.Log(float64(maxBytes))
	return int64(math.Exp(low + m.random.Float64()*(high-low)))
}

// takeAny takes a random block out of a list.
func (m *maker) takeAny(from *[]block) block {
	all := *from
	i := m.random.IntN(len(all))
	b := all[i]
	all[i] = all[len(all)-1]
	*from = all[:len(all)-1]
	return b
}

// shifting has four streams that allocate and free in random order, all the time, and sizes that grow and shrink by a factor
// of eight.
func (m *maker) shifting() {
	const events, mostLive = 12_000, 300
	var live []block
	for n := range events {
		scale := math.Exp2(3 * math.Sin(2*math.Pi*float64(n)/events))
		if len(live) < 10 || len(live) < mostLive && m.random.Float64() < 0.6 {
			bytes := float64(m.between(64<<10, 16<<20)) * scale
			live = append(live, m.alloc(m.random.IntN(4), int64(bytes)))
		} else {
			m.free(m.takeAny(&live))
		}
	}
	m.free(live...)
}

// replacing has four streams on which five hundred buffers live: one after the other is freed, and another allocated, of
// another size and on any stream.
func (m *maker) replacing() {
	const steps, live = 12_000, 500
	var all []block
	one := func() block { return m.alloc(m.random.IntN(4), m.between(64<<10, 64<<20)) }
	for range live {
		all = append(all, one())
	}
	for range steps {
		m.free(m.takeAny(&all))
		all = append(all, one())
	}
	m.free(all...)
}

// bursts has five tenants, each on a stream with buffers of its own, one of which has a burst of buffers at a time: small,
// middle or large ones. A few stay.
func (m *maker) bursts() {
	var base []block
	for stream := range 5 {
		for range 6 {
			base = append(base, m.alloc(stream, m.between(1<<20, 64<<20)))
		}
	}
	kinds := [][2]int64{{4 << 10, 256 << 10}, {256 << 10, 8 << 20}, {1 << 20, 64 << 20}}
	for range 120 {
		stream, kind := m.random.IntN(5), kinds[m.random.IntN(len(kinds))]
		var live []block
		for range 10 + m.random.IntN(100) {
			live = append(live, m.alloc(stream, m.between(kind[0], kind[1])))
			if m.random.IntN(5) < 2 {
				m.free(m.takeAny(&live))
			}
		}
		for len(live) > 2 {
			m.free(m.takeAny(&live))
		}
		base = append(base, live...)
		for len(base) > 60 {
			m.free(m.takeAny(&base))
		}
	}
	m.free(base...)
}

// session is a request that a server works on: its cache grows by a block now and then until it ends.
type session struct {
	stepsLeft int
	cache     []block
}

// serving has four streams with weights that serve requests: caches of sessions that grow, and activations. One is busy at a
// time.
func (m *maker) serving() {
	var weights []block
	for stream := range 4 {
		weights = append(weights, m.alloc(stream, m.between(64<<20, 256<<20)))
	}
	sessions := make([][]session, 4)
	for step := range 2400 {
		for stream := range 4 {
			busy := 0.15
			if stream == step/300%4 {
				busy = 1
			}
			if m.random.Float64() < 0.2*busy {
				sessions[stream] = append(sessions[stream], session{20 + m.random.IntN(180), []block{m.alloc(stream, m.between(64<<10, 1<<20))}})
			}
			if m.random.Float64() < busy {
				sessions[stream] = m.serve(stream, sessions[stream])
			}
		}
	}
	for _, left := range sessions {
		for _, s := range left {
			m.free(s.cache...)
		}
	}
	m.free(weights...)
}

// serve takes a step with all sessions of a stream, and returns the unfinished ones.
func (m *maker) serve(stream int, sessions []session) (left []session) {
	var activations []block
	for range 1 + m.random.IntN(3) {
		activations = append(activations, m.alloc(stream, m.between(16<<10, 32<<20)))
	}
	for _, s := range sessions {
		if m.random.IntN(20) == 0 {
			s.cache = append(s.cache, m.alloc(stream, 2<<20))
		}
		if s.stepsLeft--; s.stepsLeft > 0 {
			left = append(left, s)
		} else {
			m.free(s.cache...)
		}
	}
	m.free(activations...)
	return left
}

// spike has three streams that repeat a small step, and one of which takes twenty times as much once, in the middle.
func (m *maker) spike() {
	const steps = 120
	lengths := make([]int64, 30)
	for i := range lengths {
		lengths[i] = m.between(64<<10, 16<<20)
	}
	for step := range steps {
		for stream := range 3 {
			var live []block
			for _, bytes := range lengths {
				live = append(live, m.alloc(stream, bytes))
			}
			if step == steps/2 && stream == 1 {
				for range 100 {
					live = append(live, m.alloc(stream, m.between(8<<20, 64<<20)))
				}
			}
			for len(live) > 0 {
				m.free(m.takeAny(&live))
			}
		}
	}
}
