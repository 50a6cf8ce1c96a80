package cuda_test

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// shadow is a buffer, or memory that a graph holds, with the bytes that it has to have.
type shadow struct {
	buffer cuda.Buffer
	bytes  []byte
}

// step is the effect of a piece of work on shadows.
type step func()

// player plays a random program, and has each piece of work done to shadows on the host in the order of the calls.
type player struct {
	*testing.T
	random   *rand.Rand
	dev      *vram.Device
	contexts []*cuda.Context
	live     []*shadow
	graphs   []*playedGraph
	pool     *cuda.Pool
}

type playedGraph struct {
	graph   *cuda.Graph
	steps   []step
	results []*shadow // outlive the capture; they have contents from the first launch on
}

func (p *player) context() *cuda.Context { return p.contexts[p.random.IntN(len(p.contexts))] }

func (p *player) one() *shadow { return p.live[p.random.IntN(len(p.live))] }

func (p *player) alloc(c *cuda.Context) *shadow {
	n := int64(1) << p.random.IntN(22)
	b, err := c.AllocZeroed(n)
	require.NoError(p, err)
	return &shadow{b, make([]byte, n)}
}

// work submits a piece of work on some of the shadows, and returns its effect on them.
func (p *player) work(c *cuda.Context, all []*shadow) step {
	to, from := all[p.random.IntN(len(all))], all[p.random.IntN(len(all))]
	if to == from || p.random.IntN(3) == 0 {
		at := p.random.Int64N(to.buffer.Bytes())
		n := 1 + p.random.Int64N(to.buffer.Bytes()-at)
		value := byte(p.random.Uint32())
		require.NoError(p, c.Fill8(cuda.Part(to.buffer, at, n), value))
		return func() {
			for i := range to.bytes[at : at+n] {
				to.bytes[at+int64(i)] = value
			}
		}
	}
	n := 1 + p.random.Int64N(min(to.buffer.Bytes(), from.buffer.Bytes()))
	dst, src := p.random.Int64N(to.buffer.Bytes()-n+1), p.random.Int64N(from.buffer.Bytes()-n+1)
	require.NoError(p, c.Copy(cuda.Part(to.buffer, dst, n), cuda.Part(from.buffer, src, n)))
	return func() { copy(to.bytes[dst:dst+n], from.bytes[src:src+n]) }
}

// capture makes a graph of some work on live buffers and on some of its own.
func (p *player) capture() {
	c := p.context()
	g := &playedGraph{}
	var with []cuda.Option
	shared := false
	switch p.random.IntN(4) {
	case 0:
		shared = true
		with = append(with, cuda.Shared(p.pool))
	case 1:
		with = append(with, cuda.Mode(cuda.ThreadLocal))
	}
	branch := p.context()
	var err error
	g.graph, err = c.Capture(func() error {
		on := []*cuda.Context{c}
		if branch != c && p.random.IntN(2) == 0 {
			require.NoError(p, branch.Wait(c))
			on = append(on, branch)
		}
		some := []*shadow{p.one(), p.one(), p.one()}
		var mine []*shadow
		if len(on) > 1 && p.random.IntN(2) == 0 {
			for range 1 + p.random.IntN(4) {
				some, mine = p.fork(g, on, some, mine)
			}
		} else {
			mine = p.inOrder(g, on, some, mine)
		}
		for _, s := range mine {
			if !shared && p.random.IntN(3) == 0 { // another graph of the pool may write over a result
				g.results = append(g.results, s)
			} else {
				require.NoError(p, s.buffer.Free())
			}
		}
		if len(on) > 1 {
			require.NoError(p, c.Wait(branch))
		}
		return nil
	}, with...)
	require.NoError(p, err)
	p.graphs = append(p.graphs, g)
}

// inOrder captures steps on streams each of which waits for all before it.
func (p *player) inOrder(g *playedGraph, on []*cuda.Context, some, mine []*shadow) []*shadow {
	for range 1 + p.random.IntN(12) {
		at := on[p.random.IntN(len(on))]
		if len(on) > 1 { // the other branch may touch it, too
			require.NoError(p, at.Wait(on[0]))
			require.NoError(p, at.Wait(on[1]))
		}
		some, mine = p.captured(g, at, some, mine)
		if len(on) > 1 {
			require.NoError(p, on[0].Wait(at))
			require.NoError(p, on[1].Wait(at))
		}
	}
	return mine
}

// captured captures a step: an allocation, a free, or work.
func (p *player) captured(g *playedGraph, at *cuda.Context, some, mine []*shadow) (_, _ []*shadow) {
	switch {
	case p.random.IntN(3) == 0 || len(some) == 0:
		s := p.alloc(at)
		g.steps = append(g.steps, func() { clear(s.bytes) })
		mine, some = append(mine, s), append(some, s)
	case len(mine) > 0 && p.random.IntN(4) == 0:
		s := mine[len(mine)-1]
		mine = mine[:len(mine)-1]
		some = slices.DeleteFunc(some, func(o *shadow) bool { return o == s })
		require.NoError(p, s.buffer.Free())
	default:
		g.steps = append(g.steps, p.work(at, some))
	}
	return some, mine
}

// fork captures steps on two streams that run at the same time, each on buffers of its own and on new ones, and joins them.
// After the join, and not before, either may reuse memory that the other has freed.
func (p *player) fork(g *playedGraph, on []*cuda.Context, some, mine []*shadow) (_, _ []*shadow) {
	var parts, owned [2][]*shadow
	side := map[*shadow]int{}
	for _, s := range some {
		if _, twice := side[s]; !twice {
			side[s] = p.random.IntN(2)
			parts[side[s]] = append(parts[side[s]], s)
		}
	}
	for _, s := range mine {
		owned[side[s]] = append(owned[side[s]], s)
	}
	require.NoError(p, on[1].Wait(on[0]))
	for range 1 + p.random.IntN(10) {
		i := p.random.IntN(2)
		parts[i], owned[i] = p.captured(g, on[i], parts[i], owned[i])
	}
	require.NoError(p, on[0].Wait(on[1]))
	return append(parts[0], parts[1]...), append(owned[0], owned[1]...)
}

// close closes a graph, and frees its results if it was never launched.
func (p *player) close(g *playedGraph) {
	require.NoError(p, g.graph.Close())
	for _, s := range g.results {
		require.NoError(p, s.buffer.Free())
	}
}

func (p *player) check(s *shadow) {
	got := make([]byte, len(s.bytes))
	require.NoError(p, p.context().CopyOutAt(got, s.buffer, 0))
	if !bytes.Equal(s.bytes, got) {
		require.FailNow(p, "bytes differ", "%v", s.buffer)
	}
}

func (p *player) step() {
	switch n := p.random.IntN(100); {
	case n < 15 || len(p.live) < 4:
		p.live = append(p.live, p.alloc(p.context()))
	case n < 25:
		i := p.random.IntN(len(p.live))
		require.NoError(p, p.live[i].buffer.Free())
		p.live = append(p.live[:i], p.live[i+1:]...)
	case n < 60:
		p.work(p.context(), p.live)()
	case n < 68 && len(p.graphs) < 8:
		p.capture()
	case n < 85 && len(p.graphs) > 0:
		g := p.graphs[p.random.IntN(len(p.graphs))]
		require.NoError(p, g.graph.Launch(p.context()))
		for _, s := range g.steps {
			s()
		}
		p.live = append(p.live, g.results...)
		g.results = nil
	case n < 89 && len(p.graphs) > 0:
		i := p.random.IntN(len(p.graphs))
		p.close(p.graphs[i])
		p.graphs = append(p.graphs[:i], p.graphs[i+1:]...)
	case n < 92:
		_, err := p.dev.Trim(p.Context(), 0)
		require.NoError(p, err)
	case n < 97:
		p.check(p.one())
	default:
		require.NoError(p, p.context().Synchronize(p.Context()))
	}
}

// play plays a program, and checks every byte at its end.
func play(t *testing.T, dev *vram.Device, seed uint64, steps int) {
	t.Helper()
	p := &player{T: t, random: rand.New(rand.NewPCG(seed, 1)), dev: dev}
	var streams []*vram.Stream
	for range 3 {
		s, err := dev.NewStream()
		require.NoError(t, err)
		c, err := cuda.NewContext(s)
		require.NoError(t, err)
		streams, p.contexts = append(streams, s), append(p.contexts, c)
	}
	var err error
	p.pool, err = p.contexts[0].NewPool()
	require.NoError(t, err)
	for range steps {
		p.step()
	}
	for _, s := range p.live {
		p.check(s)
		require.NoError(t, s.buffer.Free())
	}
	for _, g := range p.graphs {
		p.close(g)
	}
	require.NoError(t, p.pool.Close())
	for i, c := range p.contexts {
		require.NoError(t, c.Close())
		require.NoError(t, streams[i].Close())
	}
	_, err = dev.Trim(t.Context(), 0)
	require.NoError(t, err)
	for range 1000 { // memory freed on a closed stream may still be in transfer
		if dev.Stats().ReservedBytes == 0 {
			return
		}
		runtime.Gosched()
		_, err = dev.Trim(t.Context(), 0)
		require.NoError(t, err)
	}
	require.FailNow(t, "memory stays reserved", "%+v", dev.Stats())
}

// A random program on three streams, with graphs, leaves the bytes that the same work leaves which is done at once, in the
// order of the calls. VRAM_PROGRAMS is for how long, such as 10m, from the seed VRAM_SEED on.
func TestProgramsDoWhatTheirWorkDoes(t *testing.T) {
	for name, driver := range players(t) {
		for seed := range seeds(t, name, programs()) {
			watched, checker := vramtest.Watch(vram.Config{Driver: driver})
			dev, err := vram.Open(watched)
			require.NoError(t, err)
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) { play(t, dev, seed, 400) })
			require.NoError(t, dev.Close())
			require.NoError(t, checker.Checker(0).Err())
			if t.Failed() {
				return
			}
		}
	}
}

// seeds returns the seeds of random programs: as many as least, and more until the time of VRAM_PROGRAMS is over.
func seeds(t *testing.T, name string, least uint64) iter.Seq[uint64] {
	t.Helper()
	span, _ := time.ParseDuration(os.Getenv("VRAM_PROGRAMS"))
	first, _ := strconv.ParseUint(os.Getenv("VRAM_SEED"), 10, 64)
	return func(yield func(uint64) bool) {
		begun, seed := time.Now(), first
		for ; seed < first+least || time.Since(begun) < span; seed++ {
			if !yield(seed) {
				return
			}
		}
		t.Logf("%s: %d programs, the last of seed %d", name, seed-first, seed-1)
	}
}

// programs returns how many of them there are at least.
func programs() uint64 {
	if testing.Short() {
		return 4
	}
	return 12
}
