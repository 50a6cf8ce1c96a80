package sleep_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// pair is two devices, of which kernels of the second reach memory of the first, and an arena on the first.
type pair struct {
	faults   *fault.Driver
	devices  [2]*vram.Device
	home     *cuda.Context // of a stream of the first device
	second   *cuda.Context // of another one
	far      *cuda.Context // of the other device
	arena    *sleep.Arena
	x        cuda.Buffer // of the arena
	own      cuda.Buffer // of the second context
	there    cuda.Buffer // of the other device
	touch    *cuda.Function
	touchFar *cuda.Function
	graph    *cuda.Graph // on memory of the arena
}

// pairBytes is how long its buffers are.
const pairBytes = mib / 8

func newPair(t *testing.T) *pair {
	t.Helper()
	machine := sim.New(sim.Config{Devices: 2, Bytes: true, TimedKernels: true})
	p := &pair{faults: fault.Wrap(machine)}
	var contexts []*cuda.Context
	for i := range p.devices {
		var err error
		p.devices[i], err = vram.Open(vram.Config{Driver: p.faults, Ordinal: i})
		require.NoError(t, err)
	}
	for i := range 3 {
		stream, err := p.devices[i%2].NewStream()
		require.NoError(t, err)
		c, err := cuda.NewContext(stream)
		require.NoError(t, err)
		contexts = append(contexts, c)
	}
	p.home, p.far, p.second = contexts[0], contexts[1], contexts[2]
	require.NoError(t, p.devices[1].EnablePeerAccess(p.devices[0]))
	touch := func(c *cuda.Context) *cuda.Function {
		m, err := c.LoadModule([]byte(ptx))
		require.NoError(t, err)
		f, err := m.Function("touch")
		require.NoError(t, err)
		return f
	}
	p.touch, p.touchFar = touch(p.home), touch(p.far)
	var err error
	p.arena, err = sleep.New(p.home, sleep.Options{})
	require.NoError(t, err)
	p.x, err = p.arena.Alloc(pairBytes)
	require.NoError(t, err)
	p.own, err = p.second.Alloc(pairBytes)
	require.NoError(t, err)
	p.there, err = p.far.Alloc(pairBytes)
	require.NoError(t, err)
	p.graph, err = p.second.Capture(func() error { return p.second.Launch(p.touch, cuda.Cover(1, 1), cuda.InOut(p.x)) })
	require.NoError(t, err)
	return p
}

func (p *pair) close(t *testing.T) {
	t.Helper()
	for _, c := range []*cuda.Context{p.home, p.second, p.far} {
		require.NoError(t, c.Synchronize(t.Context()))
	}
	require.NoError(t, errors.Join(p.graph.Close(), p.x.Free(), p.own.Free(), p.there.Free(), p.arena.Close()))
	require.NoError(t, errors.Join(p.home.Close(), p.second.Close(), p.far.Close(), p.devices[1].Close(), p.devices[0].Close()))
}

// Sleep does not return in any driver call of work on the arena's memory, whichever stream and device submit it: the memory stays
// until the work was submitted, and then until it has finished. Or the work is refused.
func TestSleepWaitsForWorkThatIsBeingSubmitted(t *testing.T) {
	one := cuda.Cover(1, 1)
	set := func(device cudadrv.Device, on cudadrv.Stream, x cuda.Buffer) error {
		return device.MemsetD8Async(x.Ptr(), 1, pairBytes, on)
	}
	host := make([]byte, pairBytes)
	works := map[string]func(p *pair) error{
		"Launch of the owner":          func(p *pair) error { return p.home.Launch(p.touch, one, cuda.InOut(p.x)) },
		"Launch of another stream":     func(p *pair) error { return p.second.Launch(p.touch, one, cuda.InOut(p.x)) },
		"Launch of another device":     func(p *pair) error { return p.far.Launch(p.touchFar, one, cuda.InOut(p.x)) },
		"Fill of another stream":       func(p *pair) error { return p.second.Fill8(cuda.Whole(p.x), 1) },
		"Copy to it":                   func(p *pair) error { return p.second.Copy(cuda.Whole(p.x), cuda.Whole(p.own)) },
		"Copy from it":                 func(p *pair) error { return p.second.Copy(cuda.Whole(p.own), cuda.Whole(p.x)) },
		"CopyPeer to it":               func(p *pair) error { return p.second.CopyPeer(cuda.Whole(p.x), p.far, cuda.Whole(p.there)) },
		"CopyPeer from it":             func(p *pair) error { return p.far.CopyPeer(cuda.Whole(p.there), p.second, cuda.Whole(p.x)) },
		"CopyPeer by the owner":        func(p *pair) error { return p.far.CopyPeer(cuda.Whole(p.there), p.home, cuda.Whole(p.x)) },
		"CopyPeer to it, by the owner": func(p *pair) error { return p.home.CopyPeer(cuda.Whole(p.x), p.far, cuda.Whole(p.there)) },
		"TransferPeer from it": func(p *pair) error {
			b, err := p.arena.Alloc(pairBytes)
			if err != nil {
				return err
			}
			moved, err := p.far.TransferPeer(p.second, b)
			if err != nil {
				return errors.Join(err, b.Free())
			}
			return moved.Free()
		},
		"CopyIn":                       func(p *pair) error { return p.second.CopyInAt(p.x, 0, host) },
		"CopyOut":                      func(p *pair) error { return p.home.CopyOutAt(host, p.x, 0) },
		"Launch of a graph":            func(p *pair) error { return p.graph.Launch(p.second) },
		"Launch of a graph, elsewhere": func(p *pair) error { return p.graph.Launch(p.home) },
		"LaunchWith": func(p *pair) error {
			return p.second.LaunchWith("library", func(device cudadrv.Device, on cudadrv.Stream) error { return set(device, on, p.x) }, cuda.Out(p.x))
		},
		"Submit": func(p *pair) error {
			return p.second.Submit(func(device cudadrv.Device, on cudadrv.Stream) error { return set(device, on, p.x) }, cuda.Whole(p.x))
		},
	}
	for name, work := range works {
		t.Run(name, func(t *testing.T) {
			for n := 1; ; n++ {
				reached := false
				synctest.Test(t, func(t *testing.T) { reached = sleepIn(t, n, work) })
				if !reached {
					break
				}
			}
		})
	}
}

// sleepIn begins a Sleep in the n-th driver call of some work, and looks whether it ends within. It reports whether there is such
// a call.
func sleepIn(t *testing.T, n int, work func(*pair) error) bool {
	t.Helper()
	p := newPair(t)
	defer p.close(t)
	var calls atomic.Int64
	in, early := "", false
	slept := make(chan error, 1)
	p.faults.SetBefore(func(function string) {
		if calls.Add(1) != int64(n) {
			return
		}
		in = function
		go func() { slept <- p.arena.Sleep(t.Context(), sleep.Save) }()
		synctest.Wait() // it has ended, or it waits for the work
		early = p.arena.State() == sleep.Asleep
	})
	err := work(p)
	p.faults.SetBefore(nil)
	if in == "" {
		require.NoError(t, err)
		return false
	}
	if err != nil {
		require.ErrorIs(t, err, sleep.ErrAsleep, "in %s", in)
	} else if !strings.HasSuffix(in, "Synchronize") { // a wait for work that was submitted, as Sleep's own
		assert.False(t, early, "Sleep ended in %s, and then the work was submitted", in)
	}
	require.NoError(t, <-slept)
	require.NoError(t, p.arena.Wake(t.Context()))
	return true
}
