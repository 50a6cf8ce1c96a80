package replay

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/go-vram/vram/internal/trace"
)

// jitterSeed is where every run's differences come from, so that two runs of one trace see the same.
const jitterSeed = 1

// ParseShare reads "2%" or "0.02": a share from 0 to 1.
func ParseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, fmt.Errorf("share %q: want a part of all, as in 2%% or 0.02", text)
	}
	return share, nil
}

// jittered returns the trace with that share of its allocations changed, another selection in each round: left out together
// with its free, with half to one and a half of its length, or swapped with the next event. The result keeps all rules of a
// trace.
func jittered(tr *trace.Trace, share float64, round int) *trace.Trace {
	random := rand.New(rand.NewPCG(jitterSeed, uint64(round))) //nolint:gosec // no secret, and rounds are positive
	j := &jitter{bytes: make([]int64, tr.Info.AllocCount), out: &trace.Trace{Name: tr.Name, Info: trace.Info{StreamCount: tr.Info.StreamCount}}}
	j.events = append(j.events, tr.Events...)
	j.micros = tr.Micros
	for i := 0; i < len(j.events); i++ {
		e := j.events[i]
		if e.Op == trace.Alloc && random.Float64() < share {
			switch random.IntN(3) {
			case 0:
				j.bytes[e.ID] = -1
				continue
			case 1:
				e.Bytes = max(1, int64(float64(e.Bytes)*(0.5+random.Float64())))
			case 2:
				if i+1 < len(j.events) && j.events[i+1].ID != e.ID {
					e, j.events[i+1] = j.events[i+1], e
				}
			}
		}
		j.add(e, j.micros[i])
	}
	j.finish()
	return j.out
}

// jitter makes a trace out of events whose ids are not dense.
type jitter struct {
	events []trace.Event
	micros []int64
	bytes  []int64 // by old id: the requested bytes; negative: left out; 0: not yet
	ids    map[uint32]uint32
	live   int64
	out    *trace.Trace
}

func (j *jitter) add(e trace.Event, micros int64) {
	if j.ids == nil {
		j.ids = map[uint32]uint32{}
	}
	info := &j.out.Info
	old := e.ID
	switch {
	case e.Op == trace.Alloc:
		j.bytes[old] = e.Bytes
		e.ID = uint32(info.AllocCount) //nolint:gosec // no more than the trace has
		j.ids[old] = e.ID
		info.AllocCount++
		j.live += e.Bytes
		info.PeakLiveBytes = max(info.PeakLiveBytes, j.live)
	case j.bytes[old] < 0:
		return
	default:
		e.Bytes, e.ID = j.bytes[old], j.ids[old]
		info.FreeCount++
		j.live -= e.Bytes
	}
	j.out.Events = append(j.out.Events, e)
	j.out.Micros = append(j.out.Micros, micros)
}

func (j *jitter) finish() {
	j.out.Info.EventCount = len(j.out.Events)
	j.out.Info.LeftoverBytes = j.live
}

// perturb makes the trace that a round plays.
func (se *session) perturb(round int) {
	se.trace = jittered(se.recorded, se.jitter, round)
	se.leftovers = leftovers(se.trace)
	programs, gates := plan(se.trace, se.parallel)
	se.gates = gates
	for i := range programs {
		se.players[i].program = programs[i]
	}
	se.peakLiveBytes = max(se.peakLiveBytes, se.trace.Info.PeakLiveBytes)
}
