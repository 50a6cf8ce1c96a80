package streams

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
)

// listeningPool is a pool that keeps the reports of suspensions. It may do something else when it is asked for its demand, or before it
// has a report.
type listeningPool struct {
	demand  int64
	reports []poolcore.Suspend
	first   func()
}

func (p *listeningPool) Demand() int64 {
	p.interrupt()
	return p.demand
}

func (p *listeningPool) Suspend(m poolcore.Suspend) {
	p.interrupt()
	p.reports = append(p.reports, m)
}

func (p *listeningPool) interrupt() {
	if f := p.first; f != nil {
		p.first = nil
		f()
	}
}

// known returns the report that counts for the pool.
func (p *listeningPool) known() (m poolcore.Suspend) {
	for _, r := range p.reports {
		if r.Number > m.Number {
			m = r
		}
	}
	return m
}

// waitsOf returns the streams of each wait.
func waitsOf(all []*suspension) (by [][]poolcore.Client) {
	for _, x := range all {
		by = append(by, x.by)
	}
	return by
}

// The pool gets a report of each change that it has to know: of the begin of a wait while requests wait, of its end once it has had any
// report, and of each stream that frees from now on. It gets none without a change, and no wait in a report is over. A change that comes
// while another is being reported is in the report with the highest number.
func TestThePoolKnowsTheSuspensions(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		draw := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // reproducible is the point
		p := &listeningPool{}
		s := &suspensions{id: 1, pool: p, peers: &Peers{}}
		var open, over []*suspension
		var freers []poolcore.Client
		count := 0 // of the reports to be
		var change func(inside bool)
		change = func(inside bool) {
			if !inside && draw.IntN(3) == 0 {
				p.first = func() { change(true) }
			}
			switch draw.IntN(5) {
			case 0:
				x := &suspension{by: []poolcore.Client{poolcore.Client(draw.Uint32N(4)), 9}[:draw.IntN(3)]}
				open = append(open, x)
				if p.demand > 0 {
					count++
				}
				s.suspend(x)
			case 1:
				if len(open) == 0 {
					return
				}
				at := draw.IntN(len(open))
				x := open[at]
				open, over = slices.Delete(open, at, at+1), append(over, x)
				if s.reported.Load() {
					count++
				}
				s.resume(x)
			case 2:
				if len(over) > 0 {
					x := over[draw.IntN(len(over))]
					if !x.told.Load() && s.reported.Load() { // inside the report of its end
						count++
					}
					s.resume(x)
				}
			case 3:
				id := poolcore.Client(draw.Uint32N(6))
				switch listed := slices.Contains(freers, id); {
				case !listed:
					freers = append(freers, id)
					count++
				case s.known.Load() < s.progress.Load().since: // inside the report of a stream that frees
					count++
				}
				s.addFreer(id)
			case 4:
				if !inside { // the count of reports above has the demand
					p.demand = int64(draw.IntN(2))
				}
			}
		}
		for range 40 {
			change(false)
			p.first = nil
			require.Len(t, p.reports, count, "seed %d", seed)
			known := p.known()
			if known.Number == 0 {
				continue
			}
			now := s.progress.Load()
			assert.Equal(t, waitsOf(open), waitsOf(now.all), "seed %d", seed)
			for _, by := range known.Waits {
				assert.True(t, slices.ContainsFunc(open, func(x *suspension) bool { return slices.Equal(x.by, by) }), "seed %d: one is over", seed)
			}
			assert.Equal(t, freers, known.FreedBy, "seed %d", seed)
			if p.demand > 0 && known.Number == now.number {
				assert.Equal(t, waitsOf(open), known.Waits, "seed %d", seed)
			}
		}
	}
}

// A turn reports suspensions that the pool does not know once requests wait, once: also a stream that frees, without any wait.
func TestATurnReportsSuspensionsOnce(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(s *Stream){
		"a wait":              func(s *Stream) { s.Suspend() },
		"a stream that frees": func(s *Stream) { s.suspensions.addFreer(7) },
	} {
		r, s, end := wantedRig(t, false)
		p := &listeningPool{}
		during := func(f func()) { // a turn: one that runs already may hear of a demand
			t.Helper()
			require.NoError(t, s.inTurn(t.Context(), f))
		}
		before := s.suspensions.pool
		during(func() { s.suspensions.pool = p })
		s.client.Demanded()
		during(func() { assert.Empty(t, p.reports, name) })
		begin(s)
		during(func() { p.reports = nil })
		for range 3 {
			s.client.Demanded()
			during(func() { assert.Len(t, p.reports, 1, name) })
		}
		during(func() {
			assert.Equal(t, s.suspensions.progress.Load().number, p.known().Number, name)
			s.suspensions.pool = before
		})
		end()
		r.quiet(s)
	}
}

// A call that ends a suspension, or notes a stream that frees, as another call does the same and has yet to report it, returns when the pool knows.
func TestCallsThatReportTheSame(t *testing.T) {
	t.Parallel()
	const b poolcore.Client = 7
	for name, call := range map[string]func(s *suspensions, x *suspension){
		"the end of a wait":   func(s *suspensions, x *suspension) { s.resume(x) },
		"a stream that frees": func(s *suspensions, _ *suspension) { s.addFreer(b) },
	} {
		p := &listeningPool{demand: 1}
		s := &suspensions{id: 3, pool: p}
		x := &suspension{by: []poolcore.Client{b}}
		s.suspend(x)
		require.Len(t, p.known().Waits, 1, name)
		before := s.progress.Load().number
		p.first = func() { // inside the first call's report
			p.demand = 0
			s.suspend(&suspension{}) // a change that is not reported
			call(s, x)
			assert.Greater(t, p.known().Number, before, name)
			if name == "the end of a wait" {
				assert.NotContains(t, p.known().Waits, x.by, name)
			} else {
				assert.Equal(t, []poolcore.Client{b}, p.known().FreedBy, name)
			}
		}
		call(s, x)
		require.Nil(t, p.first, name)
		count := len(p.reports)
		call(s, x)
		assert.Len(t, p.reports, count, "%s: the pool knows", name)
	}
}

// The list of streams that free keeps ended ones until it has doubled: to look for them visits all streams of the device.
func TestEndedStreamsLeaveTheListOfFreersWhenItHasDoubled(t *testing.T) {
	t.Parallel()
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	for len(r.streams) <= minFreers {
		s.suspensions.addFreer(r.stream(core.Budget{}).id)
	}
	freers := func() int { return len(s.suspensions.progress.Load().freedBy) }
	require.Equal(t, minFreers, freers())
	for ended := 1; ended <= minFreers; ended++ {
		s.suspensions.addFreer(poolcore.Client(1000 + ended))
		assert.Equal(t, minFreers+ended, freers())
	}
	s.suspensions.addFreer(1000)
	assert.Equal(t, minFreers+1, freers())
}

// A wait that is over is no suspension from that moment on, also where its end is not in the list yet; and a wait for a stream of another
// device is none.
func TestWhichWaitsAreSuspensions(t *testing.T) {
	t.Parallel()
	r, s, own := pair(t, 16*mib)
	x := &suspension{by: []poolcore.Client{own.id}}
	s.suspensions.suspend(x)
	assert.Equal(t, [][]uint32{{own.ID()}}, control(s).Suspensions())
	x.over.Store(true)
	assert.Empty(t, control(s).Suspensions())
	_, foreign, _ := pair(t, 16*mib)
	for _, by := range [][]*Stream{{foreign}, {own, foreign}, {foreign, own}, {nil}, {own, nil}} {
		s.Suspend(by...)()
		resume := s.Suspend(by...)
		assert.Empty(t, control(s).Suspensions())
		resume()
	}
	assert.Equal(t, poolcore.Client(own.ID()), NewHandover[int](s, own, 1).receiverID())
	assert.Equal(t, poolcore.Anybody, NewHandover[int](s, foreign, 1).receiverID())
	assert.Equal(t, poolcore.Anybody, NewHandover[int](s, nil, 1).receiverID())
	r.quiet(s)
}
