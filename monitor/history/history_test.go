package history_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/monitor/history"
	"github.com/go-vram/vram/monitor/snapshot"
)

func open(t *testing.T, cfg vram.Config) (*vram.Device, *vram.Stream) {
	t.Helper()
	cfg.Driver = sim.New(sim.Config{})
	d, err := vram.Open(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { _ = d.Close() }) // with live buffers
	s, err := d.NewStream()
	require.NoError(t, err)
	return d, s
}

func start(t *testing.T, d *vram.Device, o history.Options) *history.Recorder {
	t.Helper()
	r, err := history.Start(d, o)
	require.NoError(t, err)
	return r
}

func alloc(t *testing.T, s *vram.Stream, bytes int64, tag string) vram.Buffer {
	t.Helper()
	b, err := s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tag: tag})
	require.NoError(t, err)
	return b
}

func read(t *testing.T, r *history.Recorder) *trace.Trace {
	t.Helper()
	var text bytes.Buffer
	require.NoError(t, r.WriteTrace(&text))
	tr, err := trace.Read("recorded", &text)
	require.NoError(t, err, "%s", text.String())
	return tr
}

// Each event between Start and Stop is recorded, with size, tag and place, and none after.
func TestEvents(t *testing.T) {
	d, s := open(t, vram.Config{LimitBytes: 256 << 20})
	r := start(t, d, history.Options{Stacks: true})
	b := alloc(t, s, 5000, "a")
	require.NoError(t, b.Free())
	_, err := s.Alloc(200 << 20)
	require.NoError(t, err)
	_, err = s.Alloc(200 << 20)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	r.Stop()
	r.Stop()
	require.NoError(t, alloc(t, s, 5000, "late").Free())
	count := map[history.Kind]int{}
	for i, e := range r.Events() {
		assert.EqualValues(t, i, e.Number)
		count[e.Kind]++
		if e.Kind == history.Allocated || e.Kind == history.Freed {
			assert.Contains(t, e.Stack.String(), "history_test.")
			assert.Equal(t, s.ID(), e.Stream)
			assert.False(t, e.Time.IsZero())
		}
		if e.Ptr == b.Ptr() && e.Bytes == 5000 {
			assert.Equal(t, "a", e.Tag)
		}
	}
	assert.Equal(t, 2, count[history.Allocated])
	assert.Equal(t, 1, count[history.Freed])
	assert.Equal(t, 1, count[history.OutOfMemory])
	assert.Positive(t, count[history.Growth])
	assert.Zero(t, r.Snapshot().LostCount)
	assert.Len(t, r.Snapshot().Live, 1)
}

// The ring keeps the latest events, and counts the lost ones; a trace of it has the buffers whose allocation was lost at its
// beginning, and is well formed.
func TestLostEvents(t *testing.T) {
	d, s := open(t, vram.Config{})
	var early []vram.Buffer // before the recording
	for range 10 {
		early = append(early, alloc(t, s, 3000, ""))
	}
	r := start(t, d, history.Options{Events: 100})
	var lost []vram.Buffer
	for range 50 {
		lost = append(lost, alloc(t, s, 70_000, "")) // their allocations are lost
	}
	for range 200 {
		require.NoError(t, alloc(t, s, 1<<20, "").Free())
	}
	for _, b := range append(early[:5:5], lost[:20]...) {
		require.NoError(t, b.Free())
	}
	r.Stop()
	snapshot := r.Snapshot()
	require.Len(t, snapshot.Events, 100)
	assert.Len(t, snapshot.Live, 35)
	growths := snapshot.LostCount - (50 + 400 + 25 - 100)
	assert.Less(t, growths, uint64(50), "all else is counted")
	for _, e := range snapshot.Events {
		assert.False(t, e.Stack.Known())
	}
	tr := read(t, r)
	assert.Equal(t, 25+(100-25)/2+1+35, tr.Info.AllocCount) // a pair is cut in two
	assert.Equal(t, 25+(100-25)/2+1, tr.Info.FreeCount)
	assert.EqualValues(t, 5*3072+30*70_000, tr.Info.LeftoverBytes)
}

// A replay has the recorded allocations, frees, bytes and peak: of one stream and of several, with batches, with buffers from
// before the recording.
func TestRecordAndReplay(t *testing.T) {
	d, s := open(t, vram.Config{})
	other, err := d.NewStream()
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	var held []vram.Buffer
	liveBytes, peakBytes, allocs, frees := int64(0), int64(0), 0, 0
	keep := func(b vram.Buffer, err error) {
		require.NoError(t, err)
		held = append(held, b)
		liveBytes += b.Bytes()
		peakBytes = max(peakBytes, liveBytes)
		allocs++
	}
	step := func() {
		bytes := 1 + random.Int64N(1<<uint(random.IntN(24)))
		switch random.IntN(4) {
		case 0:
			keep(s.Alloc(bytes))
		case 1:
			keep(other.Alloc(bytes))
		case 2:
			dst := make([]vram.Buffer, 3)
			require.NoError(t, other.AllocBatch(dst, []int64{bytes, 512, bytes}))
			for _, b := range dst {
				keep(b, nil)
			}
		}
		for len(held) > 60 {
			i := random.IntN(len(held))
			require.NoError(t, held[i].Free())
			liveBytes -= held[i].Bytes()
			frees++
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
	}
	for range 8 { // of whole blocks: of buffers of before, a recording knows the blocks
		keep(s.Alloc(1 << 20))
	}
	r := start(t, d, history.Options{})
	for range 3000 {
		step()
	}
	r.Stop()
	tr := read(t, r)
	assert.Equal(t, allocs, tr.Info.AllocCount)
	assert.Equal(t, frees, tr.Info.FreeCount)
	assert.Equal(t, peakBytes, tr.Info.PeakLiveBytes)
	assert.Equal(t, liveBytes, tr.Info.LeftoverBytes)
	assert.Equal(t, 2, tr.Info.StreamCount)
}

// Goroutines are recorded while they allocate, and a recording may begin, end, and be read at the same time.
func TestManyGoroutines(t *testing.T) {
	d, s := open(t, vram.Config{})
	var group sync.WaitGroup
	defer group.Wait()
	for range 4 {
		group.Go(func() {
			for i := range 3000 {
				b, err := s.Alloc(int64(i*7919%50_000 + 1))
				if assert.NoError(t, err) {
					assert.NoError(t, b.Free())
				}
			}
		})
	}
	for range 5 {
		r := start(t, d, history.Options{Events: 500})
		second := start(t, d, history.Options{Events: 10})
		require.NoError(t, alloc(t, s, 100, "").Free()) // others may not have begun
		_ = read(t, r)
		second.Stop()
		r.Stop()
		_ = read(t, r)
		_ = read(t, second)
	}
}

func TestRefusals(t *testing.T) {
	d, s := open(t, vram.Config{})
	_, err := history.Start(d, history.Options{Events: -1})
	require.EqualError(t, err, "history: Events is -1, want 0 or more")
	r := start(t, d, history.Options{})
	require.ErrorIs(t, r.WriteTrace(broken{}), history.ErrEmpty)
	_ = alloc(t, s, 100, "")
	require.ErrorIs(t, r.WriteTrace(broken{}), errBroken)
	require.Error(t, d.Close()) // a buffer lives
	r.Stop()
	assert.Empty(t, r.Snapshot().Live)
	_, err = history.Start(d, history.Options{})
	require.ErrorIs(t, err, vram.ErrClosed)
	_, err = history.Start(nil, history.Options{})
	require.ErrorIs(t, err, vram.ErrNotOpen)
	assert.Equal(t, "out of memory", history.OutOfMemory.String())
	assert.Equal(t, "Kind(9)", history.Kind(9).String())
	assert.Equal(t, "Kind(7)", (history.Unmapped + 1).String())
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// The memory of a device with a recording can be shown: its blocks are the live buffers with the places that allocated them,
// and all events that lead to it fit.
func TestMemory(t *testing.T) {
	d, s := open(t, vram.Config{LimitBytes: 256 << 20})
	before := alloc(t, s, 3<<20, "before")
	r := start(t, d, history.Options{Stacks: true})
	small, large := alloc(t, s, 5000, "small"), alloc(t, s, 40<<20, "large")
	gone := alloc(t, s, 7<<20, "gone")
	require.NoError(t, gone.Free())
	_, err := s.Alloc(250 << 20)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)

	m, leftOut, err := r.Memory(t.Context())
	require.NoError(t, err)
	assert.Zero(t, leftOut)
	require.NoError(t, snapshot.Check(m))
	found := map[uint64]snapshot.Block{}
	var heldBytes int64
	for _, segment := range m.Segments {
		heldBytes += segment.Bytes
		assert.True(t, segment.Expandable, "its memory is mapped and unmapped in parts")
		for _, b := range segment.Blocks {
			if b.State == snapshot.Live {
				found[b.Address] = b
			}
		}
	}
	assert.Equal(t, d.Stats().ReservedBytes, heldBytes)
	require.Len(t, found, 3)
	for _, b := range []vram.Buffer{before, small, large} {
		at := found[uint64(b.Ptr())]
		assert.Equal(t, b.Bytes(), at.RequestedBytes)
		if b != before {
			require.NotEmpty(t, at.Stack)
			assert.Contains(t, at.Stack[0].Function, "history_test.alloc")
		}
	}
	var actions []snapshot.Action
	for _, e := range m.Traces[0] {
		actions = append(actions, e.Action)
	}
	assert.Equal(t, []snapshot.Action{
		snapshot.Alloc, snapshot.Map, snapshot.Alloc, snapshot.Map, snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted, snapshot.OutOfMemory,
	}, actions)

	var text bytes.Buffer
	require.NoError(t, r.WriteMemory(t.Context(), &text))
	assert.Equal(t, byte(0x80), text.Bytes()[0], "a pickle")
	require.ErrorIs(t, r.WriteMemory(t.Context(), broken{}), errBroken)
	ended, end := context.WithCancel(t.Context())
	end()
	_, _, err = r.Memory(ended)
	require.ErrorIs(t, err, context.Canceled)
	for _, b := range []vram.Buffer{before, small, large} {
		require.NoError(t, b.Free())
	}
	r.Stop()
	require.NoError(t, d.Close())
	_, _, err = r.Memory(t.Context())
	require.ErrorIs(t, err, vram.ErrClosed)
	require.ErrorIs(t, r.WriteMemory(t.Context(), io.Discard), vram.ErrClosed)
}

// Each live block has the stack of its own allocation, of many buffers of several streams.
func TestMemoryHasTheStackOfEachBuffer(t *testing.T) {
	d, first := open(t, vram.Config{LimitBytes: 256 << 20})
	second, err := d.NewStream()
	require.NoError(t, err)
	r := start(t, d, history.Options{Stacks: true})
	at := map[uint64]string{}
	var gone []vram.Buffer
	for i := range 40 {
		s := []*vram.Stream{second, first}[i%2]
		b := alloc(t, s, int64(1+i%7)<<16, "")
		if i%3 == 0 {
			gone = append(gone, b)
			continue
		}
		at[uint64(b.Ptr())] = "alloc"
	}
	for _, b := range gone { // other buffers take their places, at addresses below the others'
		require.NoError(t, b.Free())
	}
	for range 10 {
		b, err := first.Alloc(1 << 16)
		require.NoError(t, err)
		at[uint64(b.Ptr())] = "TestMemoryHasTheStackOfEachBuffer"
	}
	m, _, err := r.Memory(t.Context())
	require.NoError(t, err)
	for _, segment := range m.Segments {
		for _, b := range segment.Blocks {
			if b.State == snapshot.Live {
				require.NotEmpty(t, b.Stack, "%#x", b.Address)
				assert.Contains(t, b.Stack[0].Function, "history_test."+at[b.Address])
				delete(at, b.Address)
			}
		}
	}
	assert.Empty(t, at, "live buffers that the memory has not")
	r.Stop()
}

// A trace of no snapshot, and of one without allocations, is refused. Times never fall, also where goroutines entered events out of
// their order.
func TestTracesOfSnapshots(t *testing.T) {
	var none *history.Snapshot
	require.ErrorIs(t, none.WriteTrace(io.Discard), history.ErrEmpty)
	began := time.Unix(1000, 0)
	s := history.Snapshot{Events: []history.Event{{Kind: history.Growth, Bytes: 1 << 21, Time: began}}}
	require.ErrorIs(t, s.WriteTrace(io.Discard), history.ErrEmpty)
	at := func(micros int) time.Time { return began.Add(time.Duration(micros) * time.Microsecond) }
	s.Events = append(s.Events,
		history.Event{Kind: history.Allocated, Stream: 7, Ptr: 512, Bytes: 100, Time: at(5)},
		history.Event{Kind: history.Allocated, Stream: 3, Ptr: 1024, Bytes: 0, Time: at(3)}, // overtaken
		history.Event{Kind: history.Freed, Stream: 7, Ptr: 512, Bytes: 100, Time: at(9)},
		history.Event{Kind: history.Freed, Stream: 3, Ptr: 2048, Bytes: 60, Time: at(10)}, // allocated before
		history.Event{Kind: history.Allocated, Stream: 7, Ptr: 1024, Bytes: 70, Time: at(11)},
	)
	s.Live = []history.Event{{Stream: 9, Ptr: 4096, Bytes: 80}, {Stream: 7, Ptr: 1024, Bytes: 70}}
	var text strings.Builder
	require.NoError(t, s.WriteTrace(&text))
	assert.Equal(t, `t_us,op,id,size,stream
0,a,0,60,0
0,a,1,80,1
5,a,2,100,2
5,a,3,1,0
9,f,2,100,2
10,f,0,60,0
11,f,3,1,0
11,a,4,70,2
`, text.String())

	// Earlier buffers are in the order of their streams and addresses.
	before := []history.Event{{Stream: 1, Ptr: 512, Bytes: 1}, {Stream: 1, Ptr: 1536, Bytes: 2}, {Stream: 2, Ptr: 1024, Bytes: 3}}
	for first := range before {
		s := history.Snapshot{Live: slices.Concat(before[first:], before[:first])}
		text.Reset()
		require.NoError(t, s.WriteTrace(&text))
		assert.Equal(t, "t_us,op,id,size,stream\n0,a,0,1,0\n0,a,1,2,0\n0,a,2,3,1\n", text.String())
	}
}

// A snapshot has the memory that was mapped and unmapped around its buffers: also memory that the device no longer holds, and
// plain segments. Without it events of such memory would not fit.
func TestMemoryHasTheSegmentsThatCameAndWent(t *testing.T) {
	for _, segments := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		d, s := open(t, vram.Config{LimitBytes: 256 << 20, Segments: segments})
		r := start(t, d, history.Options{})
		kept, gone := alloc(t, s, 10<<20, ""), alloc(t, s, 80<<20, "")
		require.NoError(t, gone.Free())
		_, err := d.Trim(t.Context(), 0)
		require.NoError(t, err)
		m, leftOut, err := r.Memory(t.Context())
		require.NoError(t, err)
		assert.Zero(t, leftOut)
		require.NoError(t, snapshot.Check(m))
		bytes := map[snapshot.Action]int64{}
		mapped, live := map[uint64]int64{}, false
		for _, e := range m.Traces[0] {
			bytes[e.Action] += e.Bytes
			switch e.Action {
			case snapshot.Map:
				mapped[e.Address] = e.Bytes
			case snapshot.Alloc:
				live = true
			case snapshot.Unmap:
				assert.True(t, live, "nothing was allocated before")
			}
		}
		assert.GreaterOrEqual(t, bytes[snapshot.Unmap], int64(80<<20))
		assert.Equal(t, d.Stats().ReservedBytes, bytes[snapshot.Map]-bytes[snapshot.Unmap])
		count := map[history.Kind]int{}
		for _, e := range r.Events() {
			count[e.Kind]++
			if e.Kind == history.Mapped {
				assert.Equal(t, mapped[uint64(e.Ptr)], e.Bytes)
			}
		}
		assert.Positive(t, count[history.Mapped])
		assert.Positive(t, count[history.Unmapped])
		require.NoError(t, kept.Free())
		r.Stop()
		require.NoError(t, d.Close())
	}
}

// A snapshot of a busy device can be shown, too: inconsistent events are left out.
func TestMemoryOfADeviceAtWork(t *testing.T) {
	d, _ := open(t, vram.Config{LimitBytes: 256 << 20})
	r := start(t, d, history.Options{Events: 4096, Stacks: true})
	var work sync.WaitGroup
	var ended atomic.Bool
	for range 3 {
		s, err := d.NewStream()
		require.NoError(t, err)
		work.Go(func() {
			for i := int64(0); !ended.Load(); i++ {
				b, err := s.Alloc(i % 50 << 14)
				if !assert.NoError(t, err) || !assert.NoError(t, b.Free()) {
					return
				}
			}
		})
	}
	for range 20 {
		m, _, err := r.Memory(t.Context())
		require.NoError(t, err)
		require.NoError(t, snapshot.Check(m))
	}
	ended.Store(true)
	work.Wait()
	r.Stop()
}

// All events of one goroutine fit to the resulting memory, also where memory is moved, unmapped and mapped again.
func TestMemoryOfManyEvents(t *testing.T) {
	d, first := open(t, vram.Config{LimitBytes: 96 << 20})
	second, err := d.NewStream()
	require.NoError(t, err)
	r := start(t, d, history.Options{})
	random := rand.New(rand.NewPCG(3, 4))
	var held []vram.Buffer
	for i := range 2000 {
		b, err := []*vram.Stream{first, second}[i%2].Alloc(1 + random.Int64N(1<<uint(random.IntN(26))))
		if err == nil {
			held = append(held, b)
		}
		for len(held) > 20 || err != nil && len(held) > 3 {
			at := random.IntN(len(held))
			require.NoError(t, held[at].Free())
			held[at] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		switch i % 100 {
		case 50:
			require.NoError(t, d.Coalesce(t.Context()))
		case 99:
			_, err := d.Trim(t.Context(), 0)
			require.NoError(t, err)
		}
	}
	m, leftOut, err := r.Memory(t.Context())
	require.NoError(t, err)
	require.NoError(t, snapshot.Check(m))
	count := map[snapshot.Action]int{}
	for _, e := range m.Traces[0] {
		count[e.Action]++
	}
	assert.Zero(t, leftOut)
	assert.Positive(t, count[snapshot.Map])
	assert.Positive(t, count[snapshot.Unmap])
	r.Stop()
}

// A recorder that could not be started has recorded nothing, and a deferred Stop of it does nothing.
func TestNoRecorder(t *testing.T) {
	none, err := history.Start(nil, history.Options{})
	require.ErrorIs(t, err, vram.ErrNotOpen)
	for _, r := range []*history.Recorder{none, {}} {
		r.Stop()
		assert.Empty(t, r.Events())
		require.ErrorIs(t, r.WriteTrace(io.Discard), history.ErrEmpty)
		require.ErrorIs(t, r.WriteMemory(t.Context(), io.Discard), vram.ErrNotOpen)
		_, _, err := r.Memory(t.Context())
		require.ErrorIs(t, err, vram.ErrNotOpen)
		assert.Equal(t, "no recorder", r.String())
	}
}

// Stop keeps the buffers that live at that time, whatever becomes of them; a further Stop changes nothing.
func TestStopKeepsTheLiveBuffers(t *testing.T) {
	d, s := open(t, vram.Config{})
	r := start(t, d, history.Options{})
	b, err := s.AllocFor(t.Context(), vram.Request{Bytes: 5000, Tag: "kept"})
	require.NoError(t, err)
	r.Stop()
	want := r.Snapshot()
	require.Len(t, want.Live, 1)
	require.NoError(t, b.Free())
	other, err := s.Alloc(100)
	require.NoError(t, err)
	r.Stop()
	require.Equal(t, want, r.Snapshot())
	require.NoError(t, other.Free())
}

// A snapshot after Stop belongs to its caller: neither a write to another one nor a reading of the memory, also of several goroutines
// at once, changes it.
func TestSnapshotsAfterStopShareNothing(t *testing.T) {
	d, s := open(t, vram.Config{})
	r := start(t, d, history.Options{Stacks: true})
	b := make([]vram.Buffer, 20)
	for i := range b {
		b[i] = alloc(t, s, int64(1000*(1+i*37%11)), "kept")
	}
	r.Stop()
	first, want := r.Snapshot(), r.Snapshot()
	want.Live = slices.Clone(want.Live)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			_, _, err := r.Memory(t.Context())
			assert.NoError(t, err)
		})
	}
	readers.Wait()
	assert.Equal(t, want, first, "a reading of the memory sorts its own")
	first.Live[0].Tag = "mine"
	assert.Equal(t, want, r.Snapshot())
	for i := range b {
		require.NoError(t, b[i].Free())
	}
}

// Of several goroutines that stop a recorder at the same time, each finds the buffers that lived at one Stop, also if it frees some then.
func TestStopsMeet(t *testing.T) {
	const goroutineCount, rounds = 4, 40
	d, s := open(t, vram.Config{})
	for range rounds {
		r := start(t, d, history.Options{Events: 1})
		var all [goroutineCount]vram.Buffer
		for i := range all {
			all[i] = alloc(t, s, 5000, "")
		}
		var seen [goroutineCount][]history.Event
		var stops sync.WaitGroup
		begin := make(chan struct{})
		for i := range all {
			stops.Go(func() {
				<-begin
				r.Stop()
				seen[i] = r.Snapshot().Live
				assert.NoError(t, all[i].Free())
			})
		}
		close(begin)
		stops.Wait()
		for _, live := range seen {
			assert.Len(t, live, goroutineCount)
			assert.Equal(t, r.Snapshot().Live, live)
		}
	}
}
