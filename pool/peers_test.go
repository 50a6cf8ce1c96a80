package pool

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// waitLimit is how long a test waits for an answer that may never come: on a busy machine seconds.
const waitLimit = time.Minute

// accesses counts the calls that make memory accessible.
func (h *house) accesses() uint64 { return h.faults.Calls("cuMemSetAccess") }

// forgetPeers makes the next EnablePeer of a device the first one. No job is in flight.
func (h *house) forgetPeers() {
	h.settle()
	h.inTurn(func() {
		h.pool.sharing.(*peers).ordinals = []int{0}
	})
}

func TestPeersGetAccessToEachMapping(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	c := h.testClient(1)
	c.must(4)
	before := h.accesses()
	require.NoError(t, h.pool.EnablePeer(1))
	assert.Equal(t, uint64(1), h.accesses()-before, "one call for pages side by side")
	require.NoError(t, h.pool.EnablePeer(1))
	require.NoError(t, h.pool.EnablePeer(0))
	assert.Equal(t, uint64(1), h.accesses()-before, "they have access already")
	run := c.must(4)
	assert.Equal(t, uint64(2), h.accesses()-before, "one for all devices")
	require.ErrorIs(t, h.pool.EnablePeer(7), cudadrv.InvalidDevice)
	before = h.accesses()
	c.must(4)
	assert.Equal(t, uint64(1), h.accesses()-before)
	assert.Equal(t, []int{0, 1}, h.pool.sharing.(*peers).ordinals, "a device that was refused is no peer")

	// Unmapped pages are not made accessible to a later peer.
	c.free(run)
	_, err := h.pool.Trim(t.Context(), 0)
	require.NoError(t, err)
	h.forgetPeers()
	before = h.accesses()
	require.NoError(t, h.pool.EnablePeer(1))
	assert.Equal(t, uint64(2), h.accesses()-before, "the pages before the hole and those behind it")
}

// A mapping that is not accessible to a peer is undone, and its request gets the error.
func TestAMappingWithoutItsPeerIsUndone(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	c := h.testClient(1)
	c.must(2)
	require.NoError(t, h.pool.EnablePeer(1))
	require.NoError(t, h.faults.Add(fault.Rule{Func: "cuMemSetAccess", Result: cudadrv.Unknown}))
	before := h.settle().ReservedBytes
	_, err := c.get(4)
	require.ErrorIs(t, err, cudadrv.Unknown)
	assert.Equal(t, before, h.settle().ReservedBytes)
	h.faults.Clear()
	c.touch(c.must(4))
}

func TestNoPeerAccess(t *testing.T) {
	t.Parallel()
	h := plain().build(t, roomy(64))
	require.ErrorIs(t, h.pool.EnablePeer(1), ErrNoPeerAccess)
	h = build(t, roomy(64))
	c := h.testClient(1)
	c.must(2)
	require.NoError(t, h.faults.Add(fault.Rule{Func: "cuMemSetAccess", Result: cudadrv.Unknown}))
	require.ErrorIs(t, h.pool.EnablePeer(1), cudadrv.Unknown)
	h.faults.Clear()
	for _, exit := range exits(t) {
		h.faults.SetBefore(func(string) { exit() })
		require.ErrorIs(t, h.pool.EnablePeer(1), ErrDriverPanic)
		h.faults.SetBefore(nil)
	}
	assert.Equal(t, []int{0}, h.pool.sharing.(*peers).ordinals, "neither has made it a peer")
	require.NoError(t, h.pool.Close())
	require.ErrorIs(t, h.pool.EnablePeer(1), ErrClosed)
}

// A job that comes while a peer is given access begins afterwards; a peer that comes while a job is in flight gets access to
// the memory that it maps; and one that waits when the pool is closed gets an answer.
func TestPeersAndJobsTakeTurns(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	c := h.testClient(1)
	first := c.must(2)
	inside := make(chan struct{})
	release := h.hold("cuMemSetAccess", func() { close(inside) })
	enabled := make(chan error, 1)
	go func() { enabled <- h.pool.EnablePeer(1) }()
	<-inside
	before := h.faults.Calls("cuMemCreate")
	wait := c.refill(4)
	h.inTurn(func() {}) // the request's turn is over
	assert.Equal(t, before, h.faults.Calls("cuMemCreate"))
	release()
	require.NoError(t, <-enabled)
	var second core.Run
	select {
	case a := <-wait:
		require.NoError(t, a.err)
		second = a.run
	case <-time.After(waitLimit):
		require.FailNow(t, "the job was lost")
	}
	c.touch(second)
	h.settle()
	h.inTurn(func() { assert.Equal(t, []core.Run{{First: first.First, Pages: 6}}, h.pool.core.Mapped()) })

	h.forgetPeers()
	h.inTurn(func() { h.pool.driver.share = nil })
	inside = make(chan struct{})
	release = h.hold("cuMemCreate", func() { close(inside) })
	wait = c.refill(4)
	<-inside
	go func() { enabled <- h.pool.EnablePeer(1) }()
	h.awaitPeer(1)
	h.faults.SetBefore(nil)
	at := h.accesses()
	release()
	require.NoError(t, <-enabled)
	c.touch((<-wait).run)
	assert.Equal(t, uint64(2), h.accesses()-at, "the mapping, and the peer's access to all pages")

	inside = make(chan struct{})
	release = h.hold("cuMemCreate", func() { close(inside) })
	wait = c.refill(4)
	<-inside
	go func() { enabled <- h.pool.EnablePeer(1) }()
	h.awaitPeer(1)
	closed := h.later(h.pool.Close)
	require.ErrorIs(t, <-enabled, ErrClosed, "the job in flight does not keep it")
	release()
	require.NoError(t, <-closed)
	<-wait
}

// Calls for several peers that come before a job are made with that one, each with its own answer.
func TestSeveralPeersAtATime(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	c := h.testClient(1)
	c.must(2)
	inside := make(chan struct{})
	release := h.hold("cuMemCreate", func() { close(inside) })
	wait := c.refill(4)
	<-inside
	answers := map[int]chan error{0: make(chan error, 1), 1: make(chan error, 1), 7: make(chan error, 1)}
	for ordinal, answer := range answers {
		go func() { answer <- h.pool.EnablePeer(ordinal) }()
	}
	h.awaitPeer(3)
	release()
	require.NoError(t, within(t, answers[0]))
	require.NoError(t, within(t, answers[1]))
	require.ErrorIs(t, within(t, answers[7]), cudadrv.InvalidDevice)
	<-wait
}

// A pool whose actor has ended gives no access, and keeps no caller waiting.
func TestPeersOfAPoolThatHasFailed(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	c := h.testClient(1)
	inside := make(chan struct{})
	release := sync.OnceFunc(h.hold("cuMemCreate", func() { close(inside) }))
	t.Cleanup(release) // also where no answer comes: the pool's end waits for the call
	wait := c.refill(4)
	<-inside
	answer := make(chan error, 1)
	go func() { answer <- h.pool.EnablePeer(1) }()
	h.awaitPeer(1)
	cause := recoveredtest.Planted("the end")
	h.pool.ref.Stop(cause)
	err := within(t, answer)
	release()
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, h.pool.EnablePeer(1), cause)
	require.Error(t, (<-wait).err)
	<-h.pool.ref.Done()
	x := h.pool.sharing.(*peers)
	assert.Empty(t, x.begun, "calls that have their answers")
	assert.Empty(t, x.wanted)
}

// within returns an answer that comes in time.
func within(t *testing.T, answer <-chan error) error {
	t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(waitLimit):
		require.FailNow(t, "no answer")
		return nil
	}
}

// awaitPeer waits until so many calls of EnablePeer wait.
func (h *house) awaitPeer(count int) {
	h.t.Helper()
	for found := false; !found; {
		h.inTurn(func() { x, ok := h.pool.sharing.(*peers); found = ok && len(x.wanted) == count })
	}
}

// A pool keeps the calls for peers of one job alone, however many there were.
func TestAPoolKeepsNoCallsForPeers(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	for range 10 {
		require.NoError(t, h.pool.EnablePeer(1))
	}
	h.inTurn(func() {
		x := h.pool.sharing.(*peers)
		assert.LessOrEqual(t, len(x.begun), 1)
		assert.Empty(t, x.wanted)
	})
}

// Peers that are wanted in several receptions of one turn get access in one job, each with its answer.
func TestPeersOfOneTurn(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(64))
	h.testClient(1).must(2)
	require.NoError(t, h.pool.EnablePeer(0))
	h.settle()
	questions := []*question{{peer: 1}, {peer: 0}, {peer: 7}}
	h.inTurn(func() {
		x := h.pool.sharing.(*peers)
		for _, q := range questions {
			x.wanted = append(x.wanted, q)
			x.turnEnds()
		}
	})
	h.settle()
	for _, q := range questions {
		_, completed, err := q.reply.Future().Poll()
		require.True(t, completed)
		assert.Equal(t, q.peer == 7, err != nil, "device %d: %v", q.peer, err)
	}
	assert.Equal(t, []int{0, 1}, h.pool.sharing.(*peers).ordinals)
}
