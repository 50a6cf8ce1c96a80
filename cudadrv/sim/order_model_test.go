package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// job is one piece of work of a stream in the dumb model: it runs after its predecessor, after the jobs
// that it waits for, and not before it was queued.
type job struct {
	queued time.Duration
	takes  time.Duration
	after  []*job
}

// ends recomputes the end of a job.
func (j *job) ends() time.Duration {
	begin := j.queued
	for _, before := range j.after {
		begin = max(begin, before.ends())
	}
	return begin + j.takes
}

func TestOrderAgainstAGraphOfJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drv := sim.New(sim.Config{})
		_, err := drv.Open(0)
		require.NoError(t, err)
		dev := drv.Device(0)
		streams := []cudadrv.Stream{0}
		for range 2 {
			s, err := dev.StreamCreate()
			require.NoError(t, err)
			streams = append(streams, s)
		}
		var events []cudadrv.Event
		for range 3 {
			e, err := dev.EventCreate()
			require.NoError(t, err)
			events = append(events, e)
		}
		tails := map[cudadrv.Stream]*job{}   // the last job of each stream
		records := map[cudadrv.Event]*job{}  // the job that an event captured
		waits := map[cudadrv.Stream][]*job{} // jobs that the next job of a stream waits for
		var all []*job

		stream := func() cudadrv.Stream { return rapid.SampledFrom(streams).Draw(t, "stream") }
		event := func() cudadrv.Event { return rapid.SampledFrom(events).Draw(t, "event") }
		put := func(s cudadrv.Stream, takes time.Duration) {
			j := &job{queued: dev.Now(), takes: takes, after: waits[s]}
			if tail := tails[s]; tail != nil {
				j.after = append(j.after, tail)
			}
			waits[s] = nil
			tails[s] = j
			all = append(all, j)
		}
		t.Repeat(map[string]func(*rapid.T){
			"launch": func(t *rapid.T) {
				s, takes := stream(), time.Duration(rapid.Int64Range(0, 50).Draw(t, "takes"))
				require.NoError(t, dev.Launch(s, takes))
				put(s, takes)
			},
			"record": func(t *rapid.T) {
				e, s := event(), stream()
				require.NoError(t, dev.EventRecord(e, s))
				if len(waits[s]) > 0 { // a wait is something that a stream does, too
					j := &job{after: waits[s]}
					if tail := tails[s]; tail != nil {
						j.after = append(j.after, tail)
					}
					waits[s], tails[s] = nil, j
				}
				records[e] = tails[s]
			},
			"wait": func(t *rapid.T) {
				s, e := stream(), event()
				require.NoError(t, dev.StreamWaitEvent(s, e))
				if j := records[e]; j != nil {
					waits[s] = append(waits[s], j)
				}
			},
			"advance": func(t *rapid.T) { dev.Advance(time.Duration(rapid.Int64Range(0, 40).Draw(t, "by"))) },
			"synchronize event": func(t *rapid.T) {
				e, before := event(), dev.Now()
				require.NoError(t, dev.EventSynchronize(e))
				if j := records[e]; j != nil {
					require.Equal(t, max(before, j.ends()), dev.Now())
				}
			},
			"synchronize context": func(t *rapid.T) {
				end := dev.Now()
				for _, j := range all {
					end = max(end, j.ends())
				}
				require.NoError(t, dev.CtxSynchronize())
				require.Equal(t, end, dev.Now())
			},
			"": func(t *rapid.T) {
				now := dev.Now()
				for _, s := range streams {
					done, err := dev.StreamQuery(s)
					require.NoError(t, err)
					want := tails[s] == nil || tails[s].ends() <= now
					for _, j := range waits[s] {
						want = want && j.ends() <= now
					}
					require.Equal(t, want, done, "stream %#x at %v", s, now)
				}
				for _, e := range events {
					done, err := dev.EventQuery(e)
					require.NoError(t, err)
					require.Equal(t, records[e] == nil || records[e].ends() <= now, done, "event %#x at %v", e, now)
				}
				require.NoError(t, dev.Audit())
			},
		})
	})
}
