package acceptance_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
)

// neighbourhood is devices of one machine under one checker, which knows the memory that each can access.
type neighbourhood struct {
	*testing.T
	faults  *fault.Driver
	checked *hazard.Driver
	devices []*vram.Device
	gpus    []*hazard.Device
}

func openNeighbourhood(t *testing.T, machine sim.Config, cfg vram.Config) *neighbourhood {
	t.Helper()
	n := &neighbourhood{T: t, checked: hazard.Wrap(sim.New(machine))}
	n.faults = fault.Wrap(n.checked.Allocator())
	cfg.Driver = n.faults
	for cfg.Ordinal = range machine.Devices {
		dev, err := vram.Open(cfg)
		require.NoError(t, err)
		gpu, err := n.checked.View(cfg.Ordinal)
		require.NoError(t, err)
		n.devices, n.gpus = append(n.devices, dev), append(n.gpus, gpu)
		t.Cleanup(func() {
			n.faults.Clear()
			_ = dev.Close() // a test that looks at its error has closed before
			assert.NoError(t, gpu.Close())
		})
	}
	return n
}

// reach reports whether kernels of a device reach memory.
func (n *neighbourhood) reach(ordinal int, b vram.Buffer) bool {
	n.Helper()
	_, before := n.checked.Checker(ordinal).Reports()
	require.NoError(n, n.gpus[ordinal].Kernel(0, 0, hazard.Access{Ptr: b.Ptr(), Bytes: b.Bytes()}))
	require.NoError(n, n.gpus[ordinal].CtxSynchronize())
	_, after := n.checked.Checker(ordinal).Reports()
	return after == before
}

func (n *neighbourhood) alloc(s *vram.Stream, bytes int64) vram.Buffer {
	n.Helper()
	b, err := s.Alloc(bytes)
	require.NoError(n, err)
	return b
}

// Memory of a device, mapped already or later, is accessible to the devices that were given access, and to no
// others.
func TestPeerAccess(t *testing.T) {
	n := openNeighbourhood(t, sim.Config{Devices: 3}, vram.Config{})
	s, err := n.devices[0].NewStream()
	require.NoError(t, err)
	before := n.alloc(s, 5*mib)
	assert.False(t, n.reach(1, before))
	can, err := n.devices[1].CanAccessPeer(n.devices[0])
	require.NoError(t, err)
	assert.True(t, can)
	for range 2 {
		require.NoError(t, n.devices[1].EnablePeerAccess(n.devices[0]))
	}
	after := n.alloc(s, 300*mib)
	for _, b := range []vram.Buffer{before, after} {
		assert.True(t, n.reach(1, b))
		assert.False(t, n.reach(2, b))
	}
	other, err := n.devices[1].NewStream()
	require.NoError(t, err)
	b := n.alloc(other, mib)
	assert.False(t, n.reach(0, b), "it has one direction")
	require.NoError(t, n.devices[2].EnablePeerAccess(n.devices[0]))
	assert.True(t, n.reach(2, before))

	require.NoError(t, after.Free())
	_, err = n.devices[0].Trim(t.Context(), 0)
	require.NoError(t, err)
	again := n.alloc(s, 400*mib)
	assert.True(t, n.reach(1, again))
	assert.True(t, n.reach(2, again))
	for _, b := range []vram.Buffer{before, again, b} {
		require.NoError(t, b.Free())
	}
	require.NoError(t, n.devices[1].EnablePeerAccess(n.devices[1]), "a GPU reaches its own memory")
}

func TestPeerAccessIsRefused(t *testing.T) {
	n := openNeighbourhood(t, sim.Config{Devices: 2}, vram.Config{})
	a, b := n.devices[0], n.devices[1]
	var none *vram.Device
	require.ErrorIs(t, none.EnablePeerAccess(a), vram.ErrNotOpen)
	require.ErrorIs(t, a.EnablePeerAccess(none), vram.ErrNotOpen)
	_, err := a.CanAccessPeer(new(vram.Device))
	require.ErrorIs(t, err, vram.ErrNotOpen)
	require.NoError(t, n.faults.Add(fault.Rule{Func: "cuDeviceCanAccessPeer", Result: cudadrv.Unknown}))
	require.ErrorIs(t, a.EnablePeerAccess(b), cudadrv.Unknown)
	n.faults.Clear()
	s, err := b.NewStream()
	require.NoError(t, err)
	x := n.alloc(s, mib)
	require.NoError(t, n.faults.Add(fault.Rule{Func: "cuMemSetAccess", Result: cudadrv.Unknown}))
	err = a.EnablePeerAccess(b)
	require.ErrorIs(t, err, cudadrv.Unknown)
	require.ErrorContains(t, err, "vram: access from device 0 to the memory of device 1")
	n.faults.Clear()
	require.NoError(t, a.EnablePeerAccess(b))
	require.NoError(t, n.faults.Add(fault.Rule{Func: "cuMemSetAccess", Result: cudadrv.Unknown}))
	_, err = s.Alloc(512 * mib)
	require.ErrorIs(t, err, cudadrv.Unknown, "memory that a peer does not reach is not handed out")
	n.faults.Clear()
	require.NoError(t, x.Free())
	require.NoError(t, b.Close())
	require.ErrorIs(t, a.EnablePeerAccess(b), vram.ErrClosed)

	for name, machine := range map[string]sim.Config{
		"plain segments": {Devices: 2, NoVirtualMemory: true}, "no such calls": {Devices: 2, Without: cudadrv.PeerAccess},
	} {
		n := openNeighbourhood(t, machine, vram.Config{})
		require.ErrorIs(t, n.devices[0].EnablePeerAccess(n.devices[1]), vram.ErrNoPeerAccess, name)
	}
}

// Access that is given while requests map and unmap memory misses none of it.
func TestPeerAccessWhileMemoryIsMapped(t *testing.T) {
	n := openNeighbourhood(t, sim.Config{Devices: 2}, vram.Config{})
	const goroutines = 4
	live := make([][]vram.Buffer, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		s, err := n.devices[0].NewStream()
		require.NoError(t, err)
		all.Go(func() {
			for i := range 60 {
				b, err := s.Alloc(int64(1+(7*i+g)%40) * mib)
				if !assert.NoError(t, err) {
					return
				}
				live[g] = append(live[g], b)
				if i%3 == 2 {
					assert.NoError(t, live[g][i/3].Free())
				}
				if i%10 == 9 {
					_, err = n.devices[0].Trim(t.Context(), 0)
					assert.NoError(t, err)
				}
			}
		})
	}
	require.NoError(t, n.devices[1].EnablePeerAccess(n.devices[0]))
	all.Wait()
	for g := range live {
		for _, b := range live[g][20:] {
			assert.True(t, n.reach(1, b))
			require.NoError(t, b.Free())
		}
	}
}
