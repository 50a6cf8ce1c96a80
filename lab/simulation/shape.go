package simulation

import (
	"math/rand/v2"
	"time"

	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/sizeclass"
	streamcore "github.com/go-vram/vram/internal/stream/core"
)

// shape is the part of a run that its seed decides in advance.
type shape struct {
	pageBytes   int64
	totalBytes  int64
	limitBytes  int64
	callShare   int     // of 100 steps: those in which something new begins
	faultChance float64 // of each driver call, while there are faults; 0: there never are
	noPanics    bool
	reuse       bool    // names of streams
	plain       bool    // handles of one page: the free pages are known exactly
	segments    bool    // plain ones, in place of virtual memory
	sizes       []int64 // that come again
	largest     int64
	kernel      time.Duration // the longest that runs after a free; 0: none does
	scores      [scoreCount]score
}

func newShape(r *rand.Rand) shape {
	var s shape
	s.pageBytes = int64(64<<10) << r.IntN(6) // up to 2 MiB
	if s.segments = chance(r, 20); s.segments {
		s.pageBytes = 2 << 20 // the device rounds to it
	}
	pages := 6 + r.IntN(60)
	s.totalBytes = int64(pages) * s.pageBytes
	s.limitBytes = s.totalBytes
	if chance(r, 40) {
		s.limitBytes = s.totalBytes / 2
	}
	s.callShare = 10 + r.IntN(50)
	if chance(r, 60) {
		s.faultChance = []float64{0.01, 0.05, 0.2, 0.5}[r.IntN(4)]
	}
	s.noPanics, s.reuse, s.plain = chance(r, 40), chance(r, 50), chance(r, 30)
	s.kernel = []time.Duration{0, 30, 300, 3000}[r.IntN(4)] * time.Microsecond
	s.largest = max(s.pageBytes, s.limitBytes/int64(3+r.IntN(12)))
	for range 2 + r.IntN(5) {
		s.sizes = append(s.sizes, s.anySize(r.Uint64()))
	}
	for i := range s.scores {
		s.scores[i] = s.newScore(r.Uint64())
	}
	return s
}

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// anySize returns a size of any kind: nothing, small, large, huge.
func (s *shape) anySize(draw uint64) int64 {
	r := int64(mixed(draw, 1) >> 2)
	switch draw % 16 {
	case 0:
		return 0
	case 1, 2, 3, 4:
		return 1 + r%(64<<10)
	case 5, 6, 7:
		return 1 + r%s.pageBytes
	case 8:
		return 1 + r%(s.limitBytes+s.pageBytes) // also more than there may be
	default:
		return sizeclass.MaxBytes + 1 + r%s.largest
	}
}

// size is most often one that comes again.
func (s *shape) size(draw uint32) int64 {
	if draw%10 < 7 {
		return s.sizes[draw/10%uint32(len(s.sizes))]
	}
	return s.anySize(mixed(uint64(draw), 2))
}

// maxLongPages is the most pages of a handle.
const maxLongPages = 40

// maxHandlePages returns how many pages a handle may have.
func (s *shape) maxHandlePages() int64 {
	if s.plain {
		return 1
	}
	return maxLongPages
}

// ageTicks is after how many ticks free memory is old; 0: never.
func ageTicks(draw uint64) uint32 { return []uint32{0, 2, 15, 150}[mixed(draw, 12)%4] }

// settings returns the settings of a pool.
func (s *shape) settings(draw uint64) poolcore.Settings {
	pick := func(of ...int64) int64 {
		draw = mixed(draw, 3)
		return of[draw%uint64(len(of))]
	}
	policy := poolcore.Policy{
		HandlePages: uint32(pick(1, 2, 3, 5, 8, 16)), Step: pick(0, 16, 200), SteadyStep: pick(0, 40, 300),
		Slack: pick(0, 12, 140, 500), SteadySlack: pick(0, 80, 300),
		MergePages: uint32(pick(0, 2, 6)), SpareBytes: s.pageBytes * pick(0, 0, 3), SharedSlack: pick(0, 300), OverStep: pick(0, 8, 200), //nolint:gosec // a few
		LongPages: uint32(pick(0, 12, maxLongPages)), //nolint:gosec // a few
		PageWorth: pick(0, 4, 24),
	}
	policy.MostSharedSlack = policy.SharedSlack * 4 / 3
	if s.plain {
		policy.HandlePages, policy.LongPages = 1, 0
	}
	return poolcore.Settings{
		Policy: policy, LimitBytes: s.limitBytes,
		CacheBytes: s.pageBytes * pick(0, 0, 1, 4, 8), CacheRuns: int(pick(0, 0, 0, 1, 4)), AgeTicks: ageTicks(draw),
		Waits: poolcore.Waits(pick(0, 0, 1, 2)), //nolint:gosec // 0 to 2
	}
}

// ofStream are settings of a stream.
func (s *shape) ofStream(draw uint64) streamcore.Settings {
	return streamcore.Settings{Budget: s.budget(draw), Exact: mixed(draw, 6)%6 == 0, AgeTicks: int(ageTicks(draw))}
}

// budget returns the budget of a stream.
func (s *shape) budget(draw uint64) streamcore.Budget {
	b := streamcore.Budget{}
	if draw%4 == 0 {
		b.CacheBytes = s.pageBytes * int64(1+mixed(draw, 4)%6)
	}
	if draw%7 == 0 {
		b.CacheRanges = 1 + int(mixed(draw, 5)%4)
	}
	return b
}
