package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// modelExec is a graph that can be launched in the model: how long each kernel takes, and the end of the last launch.
type modelExec struct {
	made    cudadrv.Graph
	takes   []uint32
	drained time.Duration
}

// modelGraphs is the dumb reference of graphs: numbers of milliseconds, and the time at which each stream is empty.
type modelGraphs struct {
	t       *rapid.T
	dev     *sim.Device
	kernel  cudadrv.Function
	streams []cudadrv.Stream
	drained map[cudadrv.Stream]time.Duration
	graphs  map[cudadrv.Graph][]uint32
	nodes   map[cudadrv.Graph][]cudadrv.GraphNode // also of those that were destroyed
	execs   map[cudadrv.GraphExec]*modelExec
	gone    []cudadrv.GraphExec
}

// pick draws a key of a map, 0 if it is empty.
func pick[K ~uint64, V any](t *rapid.T, m map[K]V, what string) K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return 0
	}
	slices.Sort(keys)
	return rapid.SampledFrom(keys).Draw(t, what)
}

func (m *modelGraphs) stream(what string) cudadrv.Stream {
	return rapid.SampledFrom(m.streams).Draw(m.t, what)
}

// capture makes a graph of a few kernels, on one stream or two by turns.
func (m *modelGraphs) capture(*rapid.T) {
	takes := rapid.SliceOfN(rapid.Uint32Range(1, 9), 0, 4).Draw(m.t, "takes")
	first, second := m.stream("first"), m.stream("second")
	at := first
	require.NoError(m.t, m.dev.StreamBeginCapture(first, cudadrv.CaptureRelaxed))
	turn := func(to cudadrv.Stream) {
		if at == to {
			return
		}
		e, err := m.dev.EventCreate()
		require.NoError(m.t, err)
		require.NoError(m.t, m.dev.EventRecord(e, at))
		require.NoError(m.t, m.dev.StreamWaitEvent(to, e))
		at = to
	}
	for i, threads := range takes {
		turn([]cudadrv.Stream{first, second}[i%2])
		require.NoError(m.t, m.dev.LaunchKernel(m.kernel, shape(threads), nil, at))
	}
	turn(first)
	g, err := m.dev.StreamEndCapture(first)
	require.NoError(m.t, err)
	require.NotContains(m.t, m.nodes, g, "ids are never used again")
	m.graphs[g] = takes
	m.nodes[g], err = m.dev.GraphGetNodes(g)
	require.NoError(m.t, err)
	require.Len(m.t, m.nodes[g], len(takes))
}

func (m *modelGraphs) destroy(*rapid.T) {
	if g := pick(m.t, m.graphs, "graph"); g != 0 {
		require.NoError(m.t, m.dev.GraphDestroy(g))
		delete(m.graphs, g)
		require.ErrorIs(m.t, m.dev.GraphDestroy(g), cudadrv.InvalidHandle)
	}
}

func (m *modelGraphs) instantiate(*rapid.T) {
	g := pick(m.t, m.nodes, "graph")
	x, err := m.dev.GraphInstantiate(g)
	if _, live := m.graphs[g]; !live {
		require.ErrorIs(m.t, err, cudadrv.InvalidHandle)
		return
	}
	require.NoError(m.t, err)
	require.NotContains(m.t, m.gone, x)
	require.NotContains(m.t, m.execs, x)
	m.execs[x] = &modelExec{made: g, takes: slices.Clone(m.graphs[g])}
}

func (m *modelGraphs) update(*rapid.T) {
	x, g := pick(m.t, m.execs, "exec"), pick(m.t, m.graphs, "graph")
	if x == 0 || g == 0 {
		return
	}
	err := m.dev.GraphExecUpdate(x, g)
	if len(m.graphs[g]) != len(m.execs[x].takes) {
		require.ErrorIs(m.t, err, cudadrv.UpdateFailure)
		return
	}
	require.NoError(m.t, err, "all nodes are kernels in a row")
	m.execs[x].takes = slices.Clone(m.graphs[g])
}

func (m *modelGraphs) setParams(*rapid.T) {
	x, g := pick(m.t, m.execs, "exec"), pick(m.t, m.nodes, "graph")
	if x == 0 || len(m.nodes[g]) == 0 {
		return
	}
	i, threads := rapid.IntRange(0, len(m.nodes[g])-1).Draw(m.t, "node"), rapid.Uint32Range(1, 9).Draw(m.t, "takes")
	err := m.dev.GraphExecKernelNodeSetParams(x, m.nodes[g][i], m.kernel, shape(threads), nil)
	if g != m.execs[x].made {
		require.ErrorIs(m.t, err, cudadrv.InvalidValue)
		return
	}
	require.NoError(m.t, err)
	m.execs[x].takes[i] = threads
}

func (m *modelGraphs) launch(*rapid.T) {
	x, s := pick(m.t, m.execs, "exec"), m.stream("stream")
	if x == 0 {
		return
	}
	require.NoError(m.t, m.dev.GraphLaunch(x, s))
	end := max(m.drained[s], m.execs[x].drained)
	for _, threads := range m.execs[x].takes {
		end = max(end, m.dev.Now()) + time.Duration(threads)*time.Millisecond
	}
	m.drained[s], m.execs[x].drained = end, end
}

func (m *modelGraphs) end(*rapid.T) {
	x := pick(m.t, m.execs, "exec")
	if x == 0 {
		return
	}
	require.NoError(m.t, m.dev.GraphExecDestroy(x))
	delete(m.execs, x)
	m.gone = append(m.gone, x)
	require.ErrorIs(m.t, m.dev.GraphLaunch(x, m.stream("stream")), cudadrv.InvalidHandle)
}

func (m *modelGraphs) check(*rapid.T) {
	for _, s := range m.streams {
		over, err := m.dev.StreamQuery(s)
		require.NoError(m.t, err)
		require.Equal(m.t, m.drained[s] <= m.dev.Now(), over)
	}
	require.NoError(m.t, m.dev.Audit())
}

func TestGraphsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drv := sim.New(sim.Config{KernelTime: milliseconds})
		dev, err := drv.Open(0)
		require.NoError(t, err)
		m := &modelGraphs{
			t: t, dev: drv.Device(0), drained: map[cudadrv.Stream]time.Duration{}, graphs: map[cudadrv.Graph][]uint32{},
			nodes: map[cudadrv.Graph][]cudadrv.GraphNode{}, execs: map[cudadrv.GraphExec]*modelExec{},
		}
		module, err := m.dev.ModuleLoadData([]byte(addText))
		require.NoError(t, err)
		m.kernel, err = m.dev.ModuleGetFunction(module, "empty")
		require.NoError(t, err)
		for range 3 {
			s, err := dev.StreamCreate()
			require.NoError(t, err)
			m.streams = append(m.streams, s)
		}
		t.Repeat(map[string]func(*rapid.T){
			"capture": m.capture, "destroy": m.destroy, "instantiate": m.instantiate, "update": m.update, "set": m.setParams,
			"launch": m.launch, "launch again": m.launch, "end": m.end, "": m.check,
			"time": func(t *rapid.T) { m.dev.Advance(time.Duration(rapid.IntRange(1, 20).Draw(t, "ms")) * time.Millisecond) },
			"wait": func(*rapid.T) {
				s := m.stream("stream")
				require.NoError(t, m.dev.StreamSynchronize(s))
				require.GreaterOrEqual(t, m.dev.Now(), m.drained[s])
			},
		})
		require.NoError(t, dev.Close())
	})
}
