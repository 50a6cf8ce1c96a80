package pool

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

const page = sim.DefaultGranularityBytes

// house is a pool over a simulated device with a driver that fails on demand.
type house struct {
	t      *testing.T
	faults *fault.Driver
	sim    *sim.Device
	device cudadrv.Device
	fences *fence.Events

	ownEvents int // that the test keeps
	pool      *Pool

	observer Observer // set before open
}

// roomy grows freely; the tests of shortage lower the limit.
func roomy(limitPages int64) core.Settings {
	return core.Settings{Policy: core.Policy{HandlePages: 2, Slack: 4096}, LimitBytes: limitPages * page}
}

// waiting is settings with another policy of waits.
func waiting(s core.Settings, w core.Waits) core.Settings {
	s.Waits = w
	return s
}

// kind is a kind of segments, with the driver calls that such a pool makes.
type kind struct {
	*testing.T // of a test that runs for each kind
	name       string
	plain      bool
	grow       []string // calls in their order
	give       []string
	last       string // of Close
	first      uint32 // page that is mapped first
}

func virtual() kind {
	return kind{nil, "virtual", false, []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess"}, []string{"cuMemUnmap", "cuMemRelease"}, "cuMemAddressFree", 0}
}

func plain() kind {
	return kind{nil, "plain", true, []string{"cuMemAlloc"}, []string{"cuMemFree"}, "cuMemFree", 1}
}

// usable returns the last call of growth.
func (k kind) usable() string { return k.grow[len(k.grow)-1] }

// eachKind runs a test on a device with virtual memory and on one without.
func eachKind(t *testing.T, test func(k kind)) {
	t.Helper()
	for _, k := range []kind{virtual(), plain()} {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			k.T = t
			test(k)
		})
	}
}

// build opens a pool with virtual memory: see kind.build.
func build(t *testing.T, s core.Settings) *house {
	t.Helper()
	return virtual().build(t, s)
}

// prepare opens a device with virtual memory.
func prepare(t *testing.T) *house {
	t.Helper()
	return virtual().prepare(t)
}

// build opens a pool. Unless the test closes it itself, it is closed at the end, and all memory
// must be back.
func (k kind) build(t *testing.T, s core.Settings) *house {
	t.Helper()
	h := k.prepare(t)
	h.open(s)
	t.Cleanup(func() {
		h.faults.Clear()
		h.faults.SetBefore(nil)
		assert.NoError(t, h.pool.Close())
		h.assertEmpty()
	})
	return h
}

// open starts the pool.
func (h *house) open(s core.Settings) {
	h.t.Helper()
	var err error
	h.pool, err = New(Config{Device: h.device, Fences: h.fences, Settings: s, Observer: h.observer, Debug: true})
	require.NoError(h.t, err)
}

// prepare opens the device.
func (k kind) prepare(t *testing.T) *house {
	t.Helper()
	simulator := sim.New(sim.Config{Devices: 2, TotalBytes: 256 * page, NoVirtualMemory: k.plain})
	h := &house{t: t, faults: fault.Wrap(simulator), sim: simulator.Device(0)}
	var err error
	h.device, err = h.faults.Open(0)
	require.NoError(t, err)
	h.fences = fence.NewEvents(h.device)
	return h
}

// assertEmpty: the device has all its memory, its books add up, and each mark was released.
func (h *house) assertEmpty() {
	h.t.Helper()
	free, total, err := h.sim.MemGetInfo()
	assert.NoError(h.t, err)
	assert.Equal(h.t, total, free, "bytes free of all")
	assert.NoError(h.t, h.sim.Audit())
	assert.NoError(h.t, h.fences.Close())
	assert.Equal(h.t, h.ownEvents, h.sim.Objects()["event"], "events of marks that the pool has not released, and of the test")
}

// snapshot reads the pool's books, which must balance.
func (h *house) snapshot() Snapshot {
	h.t.Helper()
	s, err := h.pool.Snapshot(context.Background())
	require.NoError(h.t, err)
	require.NoError(h.t, s.CheckError)
	require.NoError(h.t, h.sim.Audit())
	return s
}

// settle waits until nothing waits and no job is in flight.
func (h *house) settle() Snapshot {
	h.t.Helper()
	for quiet := false; !quiet; {
		h.inTurn(func() { quiet = h.pool.core.InFlight() == nil && h.pool.core.Books().Waiting == 0 })
		runtime.Gosched()
	}
	return h.snapshot()
}

// inTurn runs f inside the pool's turn.
func (h *house) inTurn(f func()) {
	h.enter()
	f()
	h.pool.ref.Perform(h.pool.ref.Leave())
}

// occupy holds up the pool until release: messages queue.
func (h *house) occupy() (release func()) {
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		h.inTurn(func() {
			close(entered)
			<-leave
		})
	}()
	<-entered
	return func() {
		close(leave)
		<-left
	}
}

// enter begins a turn of the pool on this goroutine.
func (h *house) enter() {
	for !h.pool.ref.TryEnter() {
		runtime.Gosched()
	}
}

// testClient is a simple client: it keeps pages beyond its request as free runs, and at a reclaim
// request returns free runs, the longest first.
type testClient struct {
	reporter *Reporter
	house    *house
	id       core.Client
	stream   cudadrv.Stream

	mu       sync.Mutex
	token    uint64
	fence    core.Fence
	idle     []core.Run
	live     int64
	waits    map[uint64]waiter
	reclaims int
	mute     bool // does not answer
	panics   bool // in Granted and Denied
}

// waiter is an active request.
type waiter struct {
	pages  uint32
	answer chan answer
}

type answer struct {
	run core.Run
	err error
}

var errTwice = errors.New("answered twice")

func (h *house) testClient(id core.Client) *testClient {
	h.t.Helper()
	s, err := h.device.StreamCreate()
	require.NoError(h.t, err)
	c := &testClient{house: h, id: id, stream: s, waits: map[uint64]waiter{}}
	c.reporter = h.pool.NewReporter(id, c)
	h.pool.Join(c.reporter, false)
	return c
}

// Granted implements Client.
func (c *testClient) Granted(token uint64, runs []core.Run, _ bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if token == 0 {
		c.idle = append(c.idle, runs...)
		return
	}
	run, spare := runs[0].Front(c.waits[token].pages)
	if spare.Pages > 0 {
		c.idle = append(c.idle, spare)
	}
	c.answer(token, answer{run: run})
}

// Denied implements Client.
func (c *testClient) Denied(token uint64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer(token, answer{err: err})
}

func (c *testClient) answer(token uint64, a answer) {
	w, ok := c.waits[token]
	if !ok {
		c.house.t.Errorf("client %d, token %d: %v: %+v", c.id, token, errTwice, a)
		return
	}
	delete(c.waits, token)
	w.answer <- a
	if c.panics {
		panic(recoveredtest.Planted("a client's own mistake"))
	}
}

// Asked implements Client.
func (c *testClient) Asked(_ uint64, pages uint32) {
	c.mu.Lock()
	c.reclaims++
	mute := c.mute
	c.mu.Unlock()
	if !mute {
		c.release(pages)
	}
}

// Offered implements Client.
func (c *testClient) Offered(token, _ uint64) { c.house.pool.AnswerOffer(c.id, token, false) }

// Demanded implements Client.
func (c *testClient) Demanded() {}

// Look implements Client: it keeps no freed memory.
func (c *testClient) Look() {}

// Usage implements Client. It is read before every decision.
func (c *testClient) Usage() core.Usage {
	defer c.reporter.Changed()
	c.mu.Lock()
	defer c.mu.Unlock()
	u := core.Usage{UsedBytes: max(c.live, 0)}
	for _, r := range c.idle {
		u.FreePages += r.Pages
		u.MaxFreePages = max(u.MaxFreePages, r.Pages)
	}
	return u
}

// Idle implements Client.
func (c *testClient) Idle() bool {
	idle, err := c.house.device.StreamQuery(c.stream)
	return idle && err == nil
}

// Follow implements Client.
func (c *testClient) Follow(m fence.Mark) error { return c.house.fences.Precede(m, c.stream) }

// release answers a reclaim request with the longest free runs, until they come to so many pages;
// 0: with all.
func (c *testClient) release(pages uint32) {
	c.mu.Lock()
	slices.SortStableFunc(c.idle, func(a, b core.Run) int { return cmp.Compare(b.Pages, a.Pages) })
	count, sum := 0, uint32(0)
	for ; count < len(c.idle) && (pages == 0 || sum < pages); count++ {
		sum += c.idle[count].Pages
	}
	runs := c.idle[:count:count]
	c.idle = c.idle[count:]
	c.mu.Unlock()
	c.sendReturn(true, runs...)
}

// refill sends a request and does not wait.
func (c *testClient) refill(pages uint32) <-chan answer {
	r, answer := c.expect(pages)
	c.house.pool.Refill(c, r)
	return answer
}

// expect returns a request that is still to be sent.
func (c *testClient) expect(pages uint32) (core.Refill, <-chan answer) {
	c.mu.Lock()
	c.token++
	w := make(chan answer, 1)
	c.waits[c.token] = waiter{pages, w}
	c.live += int64(pages) * page
	r := core.Refill{Client: c.id, Token: c.token, Pages: pages, Bytes: int64(pages) * page, LiveBytes: c.live}
	r.OpenBytes, r.BlockBytes, r.RequestedBytes = r.Bytes, r.Bytes, r.Bytes
	c.mu.Unlock()
	return r, w
}

// get sends a request and waits.
func (c *testClient) get(pages uint32) (core.Run, error) {
	a := <-c.refill(pages)
	if a.err != nil {
		c.use(-int64(pages))
	}
	return a.run, a.err
}

// must is get for a request that must succeed.
func (c *testClient) must(pages uint32) core.Run {
	c.house.t.Helper()
	run, err := c.get(pages)
	require.NoError(c.house.t, err)
	return run
}

func (c *testClient) use(pages int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live += pages * page
}

// free returns used runs, under a fence after the stream's work so far.
func (c *testClient) free(runs ...core.Run) {
	for _, r := range runs {
		c.use(-int64(r.Pages))
	}
	c.sendReturn(false, runs...)
}

// sendReturn returns runs with a fence. A fence that cannot be recorded never passes.
func (c *testClient) sendReturn(answer bool, runs ...core.Run) {
	c.mu.Lock()
	c.fence++
	r := core.Return{Client: c.id, Runs: runs, Fence: c.fence, LiveBytes: max(c.live, 0), Answer: answer}
	c.mu.Unlock()
	mark, _ := c.house.fences.Record(c.stream)
	c.house.pool.Return(r, mark)
}

// touch fails the test unless the device can reach every byte of a run.
func (c *testClient) touch(r core.Run) {
	c.house.t.Helper()
	at := c.house.pool.at(r.First)
	require.NoError(c.house.t, c.house.sim.MemsetD8Async(at, 0, int64(r.Pages)*page, c.stream))
}
