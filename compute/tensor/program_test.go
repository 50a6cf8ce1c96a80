package tensor_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/internal/reference"
	"github.com/go-vram/vram/cuda"
)

// shadow is a tensor with the values that its storage has to have, and the places of its elements.
type shadow struct {
	tensor *tensor.Tensor
	values []int32 // of the storage, shared by its views
	view   reference.View
}

// player plays a random program of views, copies, fills, writes, frees, scopes and captures, and does the
// same to slices of the host.
type player struct {
	*testing.T
	random   *rand.Rand
	contexts []*cuda.Context
	scopes   []*tensor.Scope // nested
	live     []*shadow
	freed    []*shadow
	graphs   []played
	record   *[]func() // of the current capture
}

// played is a graph and its work on the shadows.
type played struct {
	graph *cuda.Graph
	steps []func()
}

// at is a context, or the innermost scope.
func (p *player) at() tensor.Context {
	if n := len(p.scopes); n > 0 && p.random.IntN(2) == 0 {
		return p.scopes[n-1]
	}
	return p.context()
}

func (p *player) context() *cuda.Context { return p.contexts[p.random.IntN(len(p.contexts))] }

func (p *player) one() *shadow { return p.live[p.random.IntN(len(p.live))] }

// does does work of the host, and again at each launch of the graph that it is part of.
func (p *player) does(work func()) {
	if p.record != nil {
		*p.record = append(*p.record, work)
		return
	}
	work()
}

func (p *player) shape() (shape []int, count int) {
	count = 1
	for range p.random.IntN(4) {
		shape = append(shape, p.random.IntN(6))
		count *= shape[len(shape)-1]
	}
	return shape, count
}

func (p *player) make() {
	shape, n := p.shape()
	s := &shadow{values: make([]int32, n), view: reference.Whole(shape...)}
	var err error
	switch p.random.IntN(3) {
	case 0:
		s.tensor, err = tensor.Zeros(p.at(), tensor.Int32, shape...)
	case 1:
		value := p.random.Int32()
		s.tensor, err = tensor.Full(p.at(), value, shape...)
		for i := range s.values {
			s.values[i] = value
		}
	default:
		for i := range s.values {
			s.values[i] = p.random.Int32()
		}
		if len(shape) == 0 {
			s.tensor, err = tensor.Scalar(p.at(), s.values[0])
		} else {
			s.tensor, err = tensor.From(p.at(), s.values, shape...)
		}
	}
	require.NoError(p, err)
	p.live = append(p.live, s)
}

// derive makes a random view.
func (p *player) derive(from *shadow) *shadow {
	x, v := from.tensor, from.view
	rank := len(v.Shape)
	var err error
	op := p.random.IntN(6)
	if rank == 0 && op < 4 {
		op = 4
	}
	switch d := p.random.IntN(max(rank, 1)); op {
	case 0:
		n := v.Shape[d]
		begin, step := p.random.IntN(n+1), 1+p.random.IntN(3)
		end := begin + p.random.IntN(n-begin+1)
		if p.random.IntN(2) == 0 {
			begin, end, step = end-1, begin-1, -step
		}
		var indices []int
		for i := begin; step > 0 && i < end || step < 0 && i > end; i += step {
			indices = append(indices, i)
		}
		x, err = x.Slice(d, begin, end, step)
		v = v.Slice(d, indices)
	case 1:
		if v.Shape[d] == 0 {
			return from
		}
		at := p.random.IntN(v.Shape[d])
		x, err = x.Index(d, at)
		v = v.Index(d, at)
	case 2:
		dims := p.random.Perm(rank)
		x, err = x.Permute(dims...)
		v = v.Permute(dims)
	case 3:
		flat, failed := x.Flatten(0, -1)
		if failed != nil {
			return from
		}
		x, v = flat, v.Reshape([]int{len(v.Places)})
	case 4:
		if rank == 4 {
			return from
		}
		x, err = x.Unsqueeze(0)
		v = v.Reshape(slices.Insert(slices.Clone(v.Shape), 0, 1))
	default:
		shape := slices.Clone(v.Shape)
		for i, n := range shape {
			if n == 1 {
				shape[i] = p.random.IntN(4)
			}
		}
		x, err = x.Broadcast(shape...)
		v = v.Broadcast(shape)
	}
	require.NoError(p, err)
	return &shadow{x, from.values, v}
}

func (p *player) view() *shadow {
	s := p.one()
	for range p.random.IntN(4) {
		s = p.derive(s)
	}
	return s
}

// repeats reports whether a view has a place twice.
func (s *shadow) repeats() bool {
	return len(slices.Compact(slices.Sorted(slices.Values(s.view.Places)))) < len(s.view.Places)
}

// work submits a copy or a fill.
func (p *player) work() {
	dst := p.view()
	at := p.at()
	if p.random.IntN(4) == 0 {
		value := p.random.Int32()
		err := tensor.Fill(at, dst.tensor, value)
		if p.refused(dst, err) {
			return
		}
		p.does(func() {
			for _, place := range dst.view.Places {
				dst.values[place] = value
			}
		})
		return
	}
	for range 30 {
		src := p.view()
		err := tensor.Copy(at, dst.tensor, src.tensor)
		var shape *tensor.ShapeError
		if errors.As(err, &shape) {
			continue // another one may fit
		}
		if p.refused(dst, err) {
			return
		}
		places := src.view.Broadcast(dst.view.Shape).Places
		p.does(func() {
			values := make([]int32, len(places))
			for i, place := range places {
				values[i] = src.values[place]
			}
			for i, place := range dst.view.Places {
				dst.values[place] = values[i]
			}
		})
		return
	}
}

// refused checks that a destination is refused if it repeats elements, and only then.
func (p *player) refused(dst *shadow, err error) bool {
	if dst.repeats() {
		require.IsType(p, &tensor.LayoutError{}, err, "%v", dst.tensor)
		return true
	}
	require.NoError(p, err)
	return false
}

func (p *player) write() {
	s := p.view()
	values := make([]int32, len(s.view.Places))
	for i := range values {
		values[i] = p.random.Int32()
	}
	if p.refused(s, tensor.Write(s.tensor, values)) {
		return
	}
	for i, place := range s.view.Places {
		s.values[place] = values[i]
	}
}

func (p *player) check(s *shadow) {
	got, err := tensor.Read[int32](s.tensor)
	require.NoError(p, err)
	want := make([]int32, len(s.view.Places))
	for i, place := range s.view.Places {
		want[i] = s.values[place]
	}
	require.True(p, slices.Equal(want, got), "%v: want %v, got %v", s.tensor, want, got)
}

// sweep removes freed tensors from the live ones: the tensors of ended scopes, and no others.
func (p *player) sweep() {
	p.live = slices.DeleteFunc(p.live, func(s *shadow) bool {
		if !s.tensor.Live() {
			p.freed = append(p.freed, s)
			return true
		}
		return false
	})
}

func (p *player) capture() {
	c := p.contexts[0]
	for _, s := range p.live { // so that no first use is part of the graph
		require.NoError(p, s.tensor.Allocate())
	}
	var steps []func()
	g, err := c.Capture(func() error {
		p.record = &steps
		contexts, scopes := p.contexts, p.scopes
		p.contexts, p.scopes = contexts[:1], nil
		defer func() { p.record, p.contexts, p.scopes = nil, contexts, scopes }()
		return tensor.Scoped(c, func(s *tensor.Scope) error {
			p.scopes = []*tensor.Scope{s}
			for range 1 + p.random.IntN(5) {
				p.work()
			}
			return nil
		})
	})
	require.NoError(p, err)
	p.graphs = append(p.graphs, played{g, steps})
}

func (p *player) step() {
	switch n := p.random.IntN(100); {
	case n < 15 || len(p.live) < 3:
		p.make()
	case n < 60:
		p.work()
	case n < 70:
		p.write()
	case n < 80:
		p.check(p.view())
	case n < 85:
		s := p.one()
		require.NoError(p, s.tensor.Free())
		p.sweep()
	case n < 88 && len(p.freed) > 0:
		s := p.freed[p.random.IntN(len(p.freed))]
		require.ErrorIs(p, s.tensor.Free(), tensor.ErrFreed)
		_, err := s.tensor.Flatten(0, -1)
		require.ErrorIs(p, err, tensor.ErrFreed)
	case n < 92 && len(p.scopes) < 4:
		var at tensor.Context = p.context()
		if len(p.scopes) > 0 {
			at = p.scopes[len(p.scopes)-1]
		}
		s, err := tensor.NewScope(at)
		require.NoError(p, err)
		p.scopes = append(p.scopes, s)
	case n < 95 && len(p.scopes) > 0:
		last := len(p.scopes) - 1
		if kept := p.one(); p.random.IntN(2) == 0 {
			require.NoError(p, p.scopes[last].Keep(kept.tensor))
		}
		require.NoError(p, p.scopes[last].Close())
		p.scopes = p.scopes[:last]
		p.sweep()
	case n < 97 && len(p.graphs) < 3:
		p.capture()
	case len(p.graphs) > 0:
		i := p.random.IntN(len(p.graphs))
		require.NoError(p, p.graphs[i].graph.Launch(p.context()))
		for _, s := range p.graphs[i].steps {
			s()
		}
		if p.random.IntN(3) == 0 {
			require.NoError(p, p.graphs[i].graph.Close())
			p.graphs = slices.Delete(p.graphs, i, i+1)
		}
	}
}

// play plays a program, and checks each value at its end.
func play(t *testing.T, contexts []*cuda.Context, seed uint64, steps int) {
	t.Helper()
	p := &player{T: t, random: rand.New(rand.NewPCG(seed, 1)), contexts: contexts}
	for range steps {
		p.step()
	}
	for _, s := range p.live {
		p.check(s)
		require.NoError(t, s.tensor.Free())
	}
	for len(p.scopes) > 0 {
		last := len(p.scopes) - 1
		require.NoError(t, p.scopes[last].Close())
		p.scopes = p.scopes[:last]
	}
	for _, g := range p.graphs {
		require.NoError(t, g.graph.Close())
	}
	require.NoError(t, contexts[0].Synchronize(t.Context()))
}

// programs plays random programs, one for each seed. VRAM_PROGRAMS is for how long, such as 10m, from the
// seed VRAM_SEED on.
func programs(t *testing.T, play func(t *testing.T, seed uint64)) {
	t.Helper()
	span, _ := time.ParseDuration(os.Getenv("VRAM_PROGRAMS"))
	first, _ := strconv.ParseUint(os.Getenv("VRAM_SEED"), 10, 64)
	least := uint64(30)
	if testing.Short() {
		least = 8
	}
	begun, seed := time.Now(), first
	for ; seed < first+least || time.Since(begun) < span; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { play(t, seed) })
		if t.Failed() {
			return
		}
	}
	t.Logf("%d programs, the last of seed %d", seed-first, seed-1)
}

// A random program on two streams, with scopes and graphs, leaves the values that the same work leaves on
// slices of the host; the checker finds no hazard in it.
func TestProgramsDoTheirWork(t *testing.T) {
	programs(t, func(t *testing.T, seed uint64) {
		t.Helper()
		r, c := newRig(t)
		play(t, []*cuda.Context{c, r.context()}, seed, 300)
		assert.Zero(t, r.liveBytes())
		assert.Empty(t, r.dev.Hazards())
	})
}

// So does one on a library of CUDA's interface, or on a GPU.
func TestProgramsOnALibrary(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: library(t)})
	require.NoError(t, err)
	programs(t, func(t *testing.T, seed uint64) {
		t.Helper()
		var contexts []*cuda.Context
		for range 2 {
			c, err := cuda.NewContext(must(dev.NewStream())(t))
			require.NoError(t, err)
			contexts = append(contexts, c)
		}
		play(t, contexts, seed, 300)
		assert.Zero(t, dev.Stats().LiveBytes)
		for _, c := range contexts {
			require.NoError(t, c.Close())
			require.NoError(t, c.Stream().Close())
		}
	})
	require.NoError(t, dev.Close())
}

// A matrix of several megabytes is transposed, reversed and filled, as on a device it is.
func TestLargeViewsOnALibrary(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: library(t)})
	require.NoError(t, err)
	c, err := cuda.NewContext(must(dev.NewStream())(t))
	require.NoError(t, err)
	const rows, columns = 1024, 768
	require.NoError(t, tensor.Scoped(c, func(s *tensor.Scope) error {
		x := must(tensor.From(s, count[float32](rows*columns), rows, columns))(t)
		turned := must(x.Transpose(0, 1))(t)
		packed := must(tensor.Read[float32](must(tensor.Clone(s, turned))(t)))(t)
		seen := must(tensor.Read[float32](turned))(t)
		assert.True(t, slices.Equal(packed, seen))
		for i, v := range packed {
			if want := float32(i%rows*columns + i/rows); v != want {
				require.Equal(t, want, v, "%d", i)
			}
		}
		reversed := must(x.Slice(0, rows-1, -1, -1))(t)
		require.NoError(t, tensor.Copy(s, x, reversed))
		require.NoError(t, tensor.Fill(s, must(x.Slice(1, 0, columns, 2))(t), float32(-1)))
		for i, v := range must(tensor.Read[float32](x))(t) {
			want := float32((rows-1-i/columns)*columns + i%columns)
			if i%2 == 0 {
				want = -1
			}
			if v != want {
				require.Equal(t, want, v, "%d", i)
			}
		}
		return nil
	}))
	require.NoError(t, c.Close())
	require.NoError(t, dev.Close())
}
