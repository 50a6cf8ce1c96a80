package cuda_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

const foldPTX = `.version 7.0
.target sm_70
.address_size 64
.visible .entry fold(.param .u64 to, .param .u64 a, .param .u64 b, .param .u32 n) { ret; }
`

// fold is what the kernel of that name stores in the first word of its first buffer: each order of two such kernels, of which one
// reads what the other writes, has a result of its own.
func fold(to, a, b, n uint32) uint32 { return to*31 + a*7 + b*3 + n }

// folds executes the kernel fold, also on memory of other devices.
type folds struct {
	memory map[int]func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool) // by device, once that has executed one
}

func (f *folds) Load([]byte, map[string]sim.Variable) (sim.Program, error) { return f, nil }

func (f *folds) Launch(k sim.KernelLaunch) (sim.Execution, error) {
	pointer := func(i int) cudadrv.Ptr { return cudadrv.Ptr(binary.LittleEndian.Uint64(k.Params[8*i:])) }
	n := binary.LittleEndian.Uint32(k.Params[24:])
	return func(memory func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error {
		f.memory[k.Ordinal] = memory
		var words [3][]byte
		for i := range words {
			for _, of := range f.memory {
				if start, all, ok := of(pointer(i)); ok {
					words[i] = all[pointer(i)-start:]
				}
			}
			if words[i] == nil {
				return fmt.Errorf("no memory at %#x", pointer(i))
			}
		}
		word := binary.LittleEndian.Uint32
		binary.LittleEndian.PutUint32(words[0], fold(word(words[0]), word(words[1]), word(words[2]), n))
		return nil
	}, nil
}

// word is a buffer, or memory that a graph keeps, with the first word that it has to have.
type word struct {
	buffer cuda.Buffer
	device int
	home   *cuda.Context // of the memory
	value  uint32
	frozen bool
}

// folding is a random program on two devices with three streams each. Its work is done to words on the host in the order of the
// calls.
type folding struct {
	*testing.T
	random   *rand.Rand
	machine  *sim.Driver
	devices  []*vram.Device
	contexts [][]*cuda.Context // by device
	kernels  []*cuda.Function  // likewise
	reach    bool              // kernels touch buffers of the other device
	live     []*word
	graphs   []*foldingGraph
	refused  int
}

// foldingGraph is a graph of kernels with their arguments: three words and a number each.
type foldingGraph struct {
	*cuda.Graph

	device   int
	args     [][3]*word
	captured []*word // that its work wrote at the capture: they count as written until Close
}

const foldedNumber = 5

func newFolding(t *testing.T, seed uint64) *folding {
	t.Helper()
	p := &folding{T: t, random: rand.New(rand.NewPCG(seed, 3)), reach: seed%2 == 1} //nolint:gosec // a test
	executor := &folds{map[int]func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool){}}
	p.machine = sim.New(sim.Config{Devices: 2, Bytes: true, Executor: executor, KernelTime: func(_ string, g cudadrv.Geometry) time.Duration {
		return time.Duration(g.Grid.X) * time.Millisecond
	}})
	for ordinal := range 2 {
		config := vram.Config{Driver: p.machine, Ordinal: ordinal}
		var checker *hazard.Driver
		if !p.reach { // else the checker of a device does not see the order that events of the other one make
			config, checker = vramtest.Watch(config)
		}
		dev, err := vram.Open(config)
		require.NoError(t, err)
		t.Cleanup(func() {
			assert.NoError(t, dev.Close())
			if checker != nil {
				assert.NoError(t, checker.Checker(ordinal).Err())
			}
		})
		p.devices, p.contexts = append(p.devices, dev), append(p.contexts, nil)
		for range 3 {
			s, err := dev.NewStream()
			require.NoError(t, err)
			c, err := cuda.NewContext(s)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, c.Close()) })
			p.contexts[ordinal] = append(p.contexts[ordinal], c)
		}
		f, err := p.contexts[ordinal][0].Kernel(foldPTX, "fold")
		require.NoError(t, err)
		p.kernels = append(p.kernels, f)
		x := p.alloc(p.contexts[ordinal][0], mib)
		p.fold(p.contexts[ordinal][0], ordinal, [3]*word{x, x, x}) // the executor knows the device from here on
		require.NoError(t, p.contexts[ordinal][0].Synchronize(t.Context()))
	}
	if p.reach {
		require.NoError(t, p.devices[0].EnablePeerAccess(p.devices[1]))
		require.NoError(t, p.devices[1].EnablePeerAccess(p.devices[0]))
	}
	return p
}

func (p *folding) on(device int) *cuda.Context {
	return p.contexts[device][p.random.IntN(len(p.contexts[device]))]
}

// pick returns a live word of a device, or of any if that is below 0: old ones more often.
func (p *folding) pick(device int) *word {
	for {
		if w := p.live[p.random.IntN(1+p.random.IntN(len(p.live)))]; device < 0 || w.device == device {
			return w
		}
	}
}

func (p *folding) alloc(home *cuda.Context, bytes int64) *word {
	b, err := home.AllocZeroed(bytes)
	require.NoError(p, err)
	w := &word{buffer: b, device: home.Info().Ordinal, home: home}
	p.live = append(p.live, w)
	return w
}

// picks returns words for a kernel of a device.
func (p *folding) picks(device int) [3]*word {
	if p.reach {
		device = -1
	}
	return [3]*word{p.pick(device), p.pick(device), p.pick(device)}
}

func argsOf(all [3]*word) []cuda.Arg {
	return []cuda.Arg{cuda.InOut(all[0].buffer), cuda.In(all[1].buffer), cuda.In(all[2].buffer), cuda.Value(uint32(foldedNumber))}
}

func folded(all [3]*word) {
	all[0].value = fold(all[0].value, all[1].value, all[2].value, foldedNumber)
}

// long returns a geometry that takes the kernel one to sixteen milliseconds.
func (p *folding) long() cuda.Geometry { return cuda.Cover(1<<p.random.IntN(5), 1) }

// allowed checks that a write was refused where the word is frozen, and otherwise not.
func (p *folding) allowed(err error, frozen bool) bool {
	p.Helper()
	if frozen {
		require.ErrorIs(p, err, cuda.ErrFrozen)
		p.refused++
		return false
	}
	require.NoError(p, err)
	return true
}

func (p *folding) fold(c *cuda.Context, device int, all [3]*word) {
	if p.allowed(c.Launch(p.kernels[device], p.long(), argsOf(all)...), all[0].frozen) {
		folded(all)
	}
}

// copy copies a word to another one, of its device or of the other.
func (p *folding) copy(to, from *word) {
	dst, src := cuda.Part(to.buffer, 0, 4), cuda.Part(from.buffer, 0, 4)
	var err error
	if to.device == from.device {
		err = p.on(to.device).Copy(dst, src)
	} else {
		err = p.on(to.device).CopyPeer(dst, p.on(from.device), src)
	}
	if p.allowed(err, to.frozen) {
		to.value = from.value
	}
}

// capture captures kernels on two streams of a device.
func (p *folding) capture() {
	g := &foldingGraph{device: p.random.IntN(2)}
	some := slices.DeleteFunc(slices.Clone(p.live), func(w *word) bool { return w.device != g.device })
	c, branch := p.on(g.device), p.on(g.device)
	graph, err := c.Capture(func() error {
		for range 1 + p.random.IntN(3) {
			all := [3]*word{some[p.random.IntN(len(some))], some[p.random.IntN(len(some))], some[p.random.IntN(len(some))]}
			at := c
			if p.random.IntN(2) == 0 {
				at = branch
			}
			err := branch.Wait(c)
			if err == nil {
				err = at.Launch(p.kernels[g.device], p.long(), argsOf(all)...)
			}
			if all[0].frozen {
				require.ErrorIs(p, err, cuda.ErrFrozen)
				err = nil
			} else {
				g.args, g.captured = append(g.args, all), append(g.captured, all[0])
			}
			if err = errors.Join(err, c.Wait(branch)); err != nil {
				return err
			}
		}
		return nil
	})
	require.NoError(p, err)
	g.Graph = graph
	p.graphs = append(p.graphs, g)
}

func (p *folding) launch(g *foldingGraph) {
	isFrozen := func(w *word) bool { return w.frozen }
	frozen := slices.ContainsFunc(g.captured, isFrozen) || slices.ContainsFunc(g.args, func(all [3]*word) bool { return isFrozen(all[0]) })
	if p.allowed(g.Launch(p.on(g.device)), frozen) {
		for _, all := range g.args {
			folded(all)
		}
	}
}

// replace replaces an argument of a graph's kernel.
func (p *folding) replace(g *foldingGraph) {
	if len(g.args) == 0 {
		return
	}
	i, at, w := p.random.IntN(len(g.args)), p.random.IntN(3), p.pick(g.device)
	if p.allowed(g.SetArg(i, at, argsOf([3]*word{w, w, w})[at]), at == 0 && w.frozen) {
		g.args[i][at] = w
	}
}

// free frees a word and allocates another one, or hands it over to another stream or to the other device. Graphs have the old
// memory.
func (p *folding) free(how int) {
	i := p.random.IntN(len(p.live))
	w := p.live[i]
	switch how {
	case 0:
		require.NoError(p, w.buffer.Free())
		p.live = slices.Delete(p.live, i, i+1)
		w.frozen = false
		p.alloc(w.home, w.buffer.Bytes()) // of the same memory, if that was free
	case 1:
		b, err := w.buffer.Transfer(p.on(w.device).Stream())
		require.NoError(p, err)
		w.buffer = b
	default:
		there := &word{device: 1 - w.device, home: p.on(1 - w.device), value: w.value}
		b, err := there.home.TransferPeer(p.on(w.device), w.buffer)
		require.NoError(p, err)
		there.buffer, p.live[i] = b, there
		w.frozen = false
	}
}

func (p *folding) check(w *word) {
	got := make([]byte, 4)
	require.NoError(p, p.on(w.device).CopyOutAt(got, w.buffer, 0))
	if value := binary.LittleEndian.Uint32(got); value != w.value {
		require.FailNow(p, "words differ", "%#x instead of %#x in %v of device %d", value, w.value, w.buffer, w.device)
	}
}

func (p *folding) step() {
	switch n := p.random.IntN(100); {
	case n < 4, len(p.live) < 4, !slices.ContainsFunc(p.live, func(w *word) bool { return w.device != p.live[0].device }):
		p.alloc(p.on(p.random.IntN(2)), []int64{4, 512, 8192, 2 * mib}[p.random.IntN(4)])
	case n < 40:
		device := p.random.IntN(2)
		p.fold(p.on(device), device, p.picks(device))
	case n < 45:
		w, value := p.pick(-1), p.random.Uint32()
		if p.allowed(p.on(w.device).Fill32(cuda.Part(w.buffer, 0, 4), value), w.frozen) {
			w.value = value
		}
	case n < 53:
		if to, from := p.pick(-1), p.pick(-1); to != from {
			p.copy(to, from)
		}
	case n < 60:
		p.free(p.random.IntN(3))
	case n < 66:
		w := p.pick(-1)
		require.NoError(p, p.on(w.device).Freeze(w.buffer))
		w.frozen = true
	case n < 73:
		w := p.pick(-1)
		require.NoError(p, p.on(w.device).Thaw(w.buffer))
		w.frozen = false
	case n < 78 && len(p.graphs) < 6:
		p.capture()
	case n < 90 && len(p.graphs) > 0:
		p.launch(p.graphs[p.random.IntN(len(p.graphs))])
	case n < 93 && len(p.graphs) > 0:
		p.replace(p.graphs[p.random.IntN(len(p.graphs))])
	case n < 95 && len(p.graphs) > 0:
		i := p.random.IntN(len(p.graphs))
		require.NoError(p, p.graphs[i].Close())
		p.graphs = slices.Delete(p.graphs, i, i+1)
	default:
		p.check(p.pick(-1))
	}
}

// A random program of kernels, graphs, copies, frees and transfers on two devices with three streams each leaves the words that
// the same work leaves which is done at once, in the order of the calls: a work that writes waits for all that read before, and
// one that reads for the last that wrote. Kernels of every other program touch buffers of both devices. VRAM_PROGRAMS and
// VRAM_SEED are as in TestProgramsDoWhatTheirWorkDoes.
func TestProgramsOfReadersAndWritersAreInOrder(t *testing.T) {
	refused := 0
	for seed := range seeds(t, "two devices", 4*programs()) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			p := newFolding(t, seed)
			for range 300 {
				p.step()
			}
			for _, w := range p.live {
				p.check(w)
				require.NoError(t, w.buffer.Free())
			}
			for _, g := range p.graphs {
				require.NoError(t, g.Close())
			}
			refused += p.refused
		})
		if t.Failed() {
			return
		}
	}
	assert.Positive(t, refused)
}
