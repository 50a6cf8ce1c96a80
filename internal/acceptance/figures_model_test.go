package acceptance_test

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/watermark/shared"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// account is a dumb record of a program on one device, by the results of its calls, by the GPU and by the map of the memory. The
// statistics are compared with it. The program is one goroutine, so each figure has one right value.
type account struct {
	h   *house
	rng *rand.Rand

	level vram.StatsLevel
	seen  map[string]bool // figures that were not 0
	open  []*streamAccount
	gone  []*streamAccount // ended and forgotten: their counts stay
	guest *vram.Tenant
	quota vram.Quota
	owned partyAccount // of the guest

	tries  pool.RequestCounts // of requests without a stream
	set    int64              // bytes in reservations
	waits  waitAccount
	rescue *heldBuffer // OnOutOfMemory frees it
	limit  int64

	peakLive, peakPending int64
	peakReserved          shared.Mark
	peakRead              int64             // of live bytes
	injected              map[string]uint64 // failures, by function
	ownTime               time.Duration     // of the program's own calls, without its looks at the used bytes
	looks                 int64
	lookTime              time.Duration    // of each
	goneStats             vram.StreamStats // sums of sources of streams that are gone
	m                     vram.MemoryMap   // of the moment at which the statistics are compared
	played                []string         // steps
	last                  vram.Stats       // that were compared
}

type partyAccount struct {
	live                   []*heldBuffer
	allocs, frees          uint64
	peakHeld, chargedBytes int64
	queued                 int
	outOfMemory, overQuota uint64
	durations              []time.Duration
	longest                time.Duration
}

type waitAccount struct {
	waiting     int
	demandBytes int64
	count       uint64
	deadlocks   uint64
	durations   []time.Duration
	longest     time.Duration
}

type streamAccount struct {
	*vram.Stream
	live           []*heldBuffer
	pendingBytes   int64
	sizes          map[int64]*streams.SizeStats
	tries          pool.RequestCounts
	misses, pooled uint64
	fromBatches    bool // where the blocks of its batches came from, only sums tell
	waiting        int
	peakPending    int64
}

type heldBuffer struct {
	vram.Buffer
	of         *streamAccount
	blockBytes int64
	guest      bool
}

// lengths are requests and their blocks: a class, another one, whole units of 512 bytes.
var lengths = [...][2]int64{
	{0, 512},
	{1, 512},
	{700, 1024},
	{4 * kib, 4 * kib},
	{36 * kib, 36 * kib},
	{64 * kib, 64 * kib},
	{65*kib + 1, 65*kib + 512},
	{mib + 513, mib + 1024},
	{2 * mib, 2 * mib},
	{3 * mib, 3 * mib},
	{9 * mib, 9 * mib},
}

const (
	accountLimit = 256 * mib
	quotaBytes   = 24 * mib
)

func newAccount(t *testing.T, seed uint64, level vram.StatsLevel) *account {
	t.Helper()
	a := &account{
		level: level, seen: map[string]bool{},
		rng: rand.New(rand.NewPCG(seed, 0)), limit: accountLimit, injected: map[string]uint64{}, quota: vram.Quota{LimitBytes: quotaBytes, ShareBytes: mib},
	}
	a.h = openHouse(t, vram.Config{LimitBytes: accountLimit, Stats: level, OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
		b := a.rescue
		if b == nil {
			return false
		}
		a.rescue = nil
		a.free(t, b)
		return true
	}}, sim.Config{TotalBytes: 4 * gib})
	a.lookTime = a.timed(func() { a.h.usedBytes() })
	a.ownTime = a.h.gpu.ModelledTime()
	a.h.faults.SetBefore(func(function string) {
		if function == "cuMemUnmap" || function == "cuMemMap" { // the look's time is a part of the call's
			a.peakReserved.Raise(a.h.usedBytes())
		}
	})
	a.guest = a.h.tenant("guest", a.quota)
	for range 3 {
		a.openStream()
	}
	return a
}

// timed returns the modelled time of calls.
func (a *account) timed(calls func()) time.Duration {
	before := a.h.gpu.ModelledTime()
	calls()
	return a.h.gpu.ModelledTime() - before
}

// usedBytes looks at the used bytes of the GPU.
func (a *account) usedBytes() int64 {
	a.looks++
	return a.h.usedBytes()
}

func (a *account) openStream() {
	a.open = append(a.open, &streamAccount{Stream: a.h.stream(), sizes: map[int64]*streams.SizeStats{}})
}

func (a *account) any() *streamAccount { return a.open[a.rng.IntN(len(a.open))] }

func (s *streamAccount) size(blockBytes int64) *streams.SizeStats {
	of := int64(1) << bits.Len64(uint64(blockBytes-1))
	if s.sizes[of] == nil {
		s.sizes[of] = &streams.SizeStats{BlockBytes: of}
	}
	return s.sizes[of]
}

func sumBlocks(all []*heldBuffer) (sum int64) {
	for _, b := range all {
		sum += b.blockBytes
	}
	return sum
}

// add records a buffer that a request returned.
func (a *account) add(s *streamAccount, b vram.Buffer, blockBytes int64, guest bool) *heldBuffer {
	held := &heldBuffer{Buffer: b, of: s, blockBytes: blockBytes, guest: guest}
	s.live = append(s.live, held)
	z := s.size(blockBytes)
	z.AllocCount++
	z.LiveCount++
	z.LiveBytes += blockBytes
	if guest {
		a.owned.live = append(a.owned.live, held)
		a.owned.allocs++
		a.owned.peakHeld = max(a.owned.peakHeld, sumBlocks(a.owned.live))
	}
	a.peakLive = max(a.peakLive, a.liveBytes())
	return held
}

func (a *account) liveBytes() (sum int64) {
	for _, s := range a.open {
		sum += sumBlocks(s.live)
	}
	return sum
}

func (a *account) free(t *testing.T, b *heldBuffer) {
	t.Helper()
	require.NoError(t, b.Free())
	s := b.of
	at := slices.Index(s.live, b)
	s.live = slices.Delete(s.live, at, at+1)
	z := s.size(b.blockBytes)
	z.FreeCount++
	z.LiveCount--
	z.LiveBytes -= b.blockBytes
	if b.guest {
		at := slices.Index(a.owned.live, b)
		a.owned.live = slices.Delete(a.owned.live, at, at+1)
		a.owned.frees++
	}
}

// heldBytes returns the bytes that a stream holds, by the map.
func (a *account) heldBytes(s *streamAccount) int64 {
	b := a.states(s.ID())
	return b.LiveBytes + b.PendingBytes + b.CachedBlockBytes + b.CachedRangeBytes
}

// states returns the bytes of a stream by state, by the map.
func (a *account) states(stream uint32) vram.MemoryBytes {
	m, err := a.h.MemoryMap(context.Background(), 512)
	require.NoError(a.h.t, err)
	return statesOf(m, stream)
}

func statesOf(m vram.MemoryMap, stream uint32) (sum vram.MemoryBytes) {
	for _, segment := range m.Segments {
		for _, r := range segment.Ranges {
			if r.Stream != stream {
				continue
			}
			switch r.State {
			case vram.MemoryLive:
				sum.LiveBytes += r.Bytes
			case vram.MemoryPending:
				sum.PendingBytes += r.Bytes
			case vram.MemoryCachedBlock:
				sum.CachedBlockBytes += r.Bytes
			case vram.MemoryCachedRange:
				sum.CachedRangeBytes += r.Bytes
			case vram.MemoryFree, vram.MemorySetAside, vram.MemoryBusy, vram.MemoryLent, vram.MemoryMixed:
			}
		}
	}
	return sum
}

// runs returns the unbroken runs in a state, of one stream or of all. A run is of one stream, or of none.
func runs(m vram.MemoryMap, state vram.MemoryState, of func(stream uint32) bool) (all [][2]int64) {
	last := uint32(0)
	for _, segment := range m.Segments {
		for _, r := range segment.Ranges {
			if r.State != state || !of(r.Stream) {
				continue
			}
			begin := int64(segment.Address) + r.OffsetBytes //nolint:gosec // addresses of the simulation are below 1 << 63
			if n := len(all); n > 0 && all[n-1][1] == begin && last == r.Stream {
				all[n-1][1] = begin + r.Bytes
				continue
			}
			last = r.Stream
			all = append(all, [2]int64{begin, begin + r.Bytes})
		}
	}
	return all
}

func longest(all [][2]int64) (bytes int64) {
	for _, r := range all {
		bytes = max(bytes, r[1]-r[0])
	}
	return bytes
}
