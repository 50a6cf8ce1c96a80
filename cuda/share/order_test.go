//go:build linux && (amd64 || arm64)

package share

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The order of fences is seen on the simulated device, where work takes time, and time moves only for those who wait.
// Both sides are on one device whose handles are given descriptors here.

// sharing is a simulated machine whose handles have descriptors.
type sharing struct {
	*sim.Driver
	*sync.Mutex
	names map[uint64]cudadrv.Handle // by the file's number
	count map[cudadrv.Handle]int    // of the names of a handle
}

func newSharing(machine sim.Config) sharing {
	return sharing{
		sim.New(machine), &sync.Mutex{}, map[uint64]cudadrv.Handle{}, map[cudadrv.Handle]int{},
	}
}

func (s sharing) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := s.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return &sharingDevice{dev.(*sim.Device), s}, nil
}

type sharingDevice struct {
	*sim.Device
	of sharing
}

func (d *sharingDevice) Info() cudadrv.Info {
	info := d.Device.Info()
	info.Capabilities |= cudadrv.ShareableHandles
	return info
}

func (d *sharingDevice) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	h, err := d.MemCreate(bytes)
	if err == nil {
		d.of.Lock()
		defer d.of.Unlock()
		d.of.count[h] = 1
	}
	return h, err
}

func (d *sharingDevice) MemExportToShareableHandle(h cudadrv.Handle) (int, error) {
	f, err := os.CreateTemp("", "handle")
	if err != nil {
		return 0, err
	}
	fd, err := syscall.Dup(int(f.Fd()))
	var status syscall.Stat_t
	err = errors.Join(err, syscall.Fstat(fd, &status), f.Close(), os.Remove(f.Name()))
	d.of.Lock()
	defer d.of.Unlock()
	d.of.names[status.Ino] = h
	return fd, err
}

func (d *sharingDevice) MemImportFromShareableHandle(fd int) (cudadrv.Handle, error) {
	var status syscall.Stat_t
	err := syscall.Fstat(fd, &status)
	d.of.Lock()
	defer d.of.Unlock()
	h, ok := d.of.names[status.Ino]
	if !ok {
		return 0, errors.Join(err, os.ErrNotExist)
	}
	d.of.count[h]++
	return h, err
}

func (d *sharingDevice) MemRelease(h cudadrv.Handle) error {
	d.of.Lock()
	d.of.count[h]--
	last := d.of.count[h] <= 0
	d.of.Unlock()
	if !last {
		return nil
	}
	return d.Device.MemRelease(h)
}

// newSlowPair returns two sides on one simulated device.
func newSlowPair(t *testing.T) (a, b *side) {
	t.Helper()
	driver := newSharing(sim.Config{Bytes: true})
	return newSide(t, driver), newSide(t, driver)
}

// fillSlowly submits a fill of the memory after work that takes longer than the other side's calls.
func (s *side) fillSlowly(m *Memory, value byte) {
	s.Helper()
	for range 100 {
		require.NoError(s, s.c.Fill8(cuda.Whole(s.x), value))
	}
	require.NoError(s, m.CopyFrom(s.c, 0, cuda.Whole(s.x)))
}

// Later work of the awaiting context waits for the fence, and the host waits for no work.
func TestAwaitOrdersTheDevice(t *testing.T) {
	a, b := newSlowPair(t)
	m, theirs := linkSides(t, a, b)
	a.fill(m, 'i')
	require.NoError(t, a.c.Synchronize(t.Context()))
	b.holds(theirs, 'i')
	a.fillSlowly(m, 'o')
	e, err := a.c.Record()
	require.NoError(t, err)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	passed, err := e.Done()
	require.NoError(t, err)
	assert.False(t, passed, "neither call waits for work")
	b.holds(theirs, 'o')
	require.NoError(t, e.Close())

	// And back.
	b.fillSlowly(theirs, 'p')
	require.NoError(t, theirs.Publish(b.c))
	require.NoError(t, m.Await(t.Context(), a.c))
	a.holds(m, 'p')
}

// A fence covers the earlier ones of other contexts of its process, although they have one event.
func TestAFenceCoversEarlierOnes(t *testing.T) {
	a, b := newSlowPair(t)
	m, theirs := linkSides(t, a, b)
	a.fill(m, 'i')
	require.NoError(t, a.c.Synchronize(t.Context()))
	a.fillSlowly(m, 'e')
	quick := a.context()
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, m.Publish(quick))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	b.holds(theirs, 'e')
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.NoError(t, quick.Close())
	assert.Equal(t, Stats{Published: 2}, m.Stats())
}

// So does each fence in any order of three contexts, wherever slow work is: an await of the first waits for it, since the last record has taken its
// place.
func TestFencesOfThreeContexts(t *testing.T) {
	const contexts, fences = 3, 3
	a, b := newSlowPair(t)
	m, theirs := linkSides(t, a, b)
	all, own := []*cuda.Context{a.c, a.context(), a.context()}, make([]cuda.Buffer, contexts)
	for i, c := range all {
		var err error
		own[i], err = c.Alloc(bytes)
		require.NoError(t, err)
	}
	value, want := byte(0), uint64(0)
	for order := range contexts * contexts * contexts {
		for slow := range fences {
			value++
			for i, rest := 0, order; i < fences; i, rest = i+1, rest/contexts {
				c, x := all[rest%contexts], own[rest%contexts]
				if i == slow {
					for range 30 {
						require.NoError(t, c.Fill8(cuda.Whole(x), value))
					}
					require.NoError(t, m.CopyFrom(c, 0, cuda.Whole(x)))
				}
				require.NoError(t, m.Publish(c))
			}
			require.NoError(t, theirs.Await(t.Context(), b.c))
			b.holds(theirs, value)
			for range fences - 1 {
				require.NoError(t, theirs.Await(t.Context(), b.c))
			}
			require.NoError(t, b.c.Synchronize(t.Context()))
			want += fences
		}
	}
	assert.Equal(t, Stats{Published: want}, m.Stats())
	for i, c := range all {
		require.NoError(t, own[i].Free())
		if i > 0 {
			require.NoError(t, c.Close())
		}
	}
}

// Without events of other processes, the work has finished when Publish returns. If the wait fails, no fence was made.
func TestPublishByHostWaits(t *testing.T) {
	driver := newSharing(sim.Config{Bytes: true, Without: cudadrv.EventSharing})
	a, b := newSide(t, driver), newSide(t, driver)
	m, theirs := linkSides(t, a, b)
	for _, side := range []*Memory{m, theirs} {
		publish, await := side.Ways()
		assert.Equal(t, [2]Way{ByHost, ByHost}, [2]Way{publish, await})
	}
	a.fillSlowly(m, 'h')
	require.NoError(t, a.faults.Add(fault.Rule{Func: "cuStreamSynchronize", First: 1, Result: cudadrv.Unknown}))
	require.ErrorIs(t, m.Publish(a.c), cudadrv.Unknown)
	a.faults.Clear()
	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, theirs.Await(ended, b.c), context.Canceled)
	assert.Zero(t, m.Stats())
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, theirs.Await(t.Context(), b.c))
	b.holds(theirs, 'h')
	assert.Equal(t, Stats{Published: 1, Synchronized: 1}, m.Stats())
	assert.Equal(t, Stats{Awaited: 1}, theirs.Stats())
}

// Close waits for the work of each context that the memory was used with, before it unmaps.
func TestCloseWaitsForWork(t *testing.T) {
	a, b := newSlowPair(t)
	m, theirs := linkSides(t, a, b)
	a.fillSlowly(m, 'c')
	e, err := a.c.Record()
	require.NoError(t, err)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, m.Close())
	passed, err := e.Done()
	require.NoError(t, err)
	assert.True(t, passed)
	require.NoError(t, e.Close())

	// The peer's fence is valid, and the memory is still the peer's.
	require.NoError(t, theirs.Await(t.Context(), b.c))
	b.holds(theirs, 'c')
	require.ErrorIs(t, theirs.Await(t.Context(), b.c), ErrPeerClosed)
}

// A nil context is refused, and no fence is taken.
func TestAwaitWithoutAContext(t *testing.T) {
	a, b := newSlowPair(t)
	m, theirs := linkSides(t, a, b)
	require.NoError(t, m.Publish(a.c))
	require.ErrorIs(t, theirs.Await(nil, b.c), cuda.ErrNilContext) //nolint:staticcheck // the mistake
	require.NoError(t, theirs.Await(t.Context(), b.c))
	require.NoError(t, m.Close())
}

// An Await that waits for another one ends with its context, and takes no fence.
func TestAnAwaitAfterAnotherEndsWithItsContext(t *testing.T) {
	a, b := newSlowPair(t)
	m, theirs := linkSides(t, a, b)
	first := inBackground(func() error { return theirs.Await(background(), b.c) })
	for len(theirs.link.Load().turn) == 0 {
		runtime.Gosched()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	second := inBackground(func() error { return theirs.Await(ended, b.c) })
	require.ErrorIs(t, <-second, context.Canceled)
	require.NoError(t, m.Publish(a.c))
	require.NoError(t, <-first)
	assert.Equal(t, Stats{Awaited: 1}, theirs.Stats())
	require.NoError(t, m.Close())
}
