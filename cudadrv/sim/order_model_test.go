package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// job is one piece of work of a stream in the dumb model: it runs after the jobs that it waits for, and not before it was queued.
type job struct {
	queued time.Duration
	takes  time.Duration
	after  []*job // nil stands for none

	known bool
	end   time.Duration
}

// ends computes the end of a job.
func (j *job) ends() time.Duration {
	if j == nil {
		return 0
	}
	if !j.known {
		begin := j.queued
		for _, before := range j.after {
			begin = max(begin, before.ends())
		}
		j.known, j.end = true, begin+j.takes
	}
	return j.end
}

func TestOrderAgainstAGraphOfJobs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		drv := sim.New(sim.Config{})
		_, err := drv.Open(0)
		require.NoError(t, err)
		dev := drv.Device(0)
		streams := []cudadrv.Stream{0} // then two that wait for nothing, then two that synchronise with stream 0
		const firstBlocking = 3
		for i := range 4 {
			create := dev.StreamCreate
			if i >= firstBlocking-1 {
				create = dev.StreamCreateBlocking
			}
			s, err := create()
			require.NoError(t, err)
			streams = append(streams, s)
		}
		var events []cudadrv.Event
		for range 3 {
			e, err := dev.EventCreate()
			require.NoError(t, err)
			events = append(events, e)
		}
		var tails [5]*job                   // the last job of each stream
		records := map[cudadrv.Event]*job{} // the job that an event captured
		var all []*job

		stream := func() int { return rapid.IntRange(0, len(streams)-1).Draw(t, "stream") }
		event := func() cudadrv.Event { return rapid.SampledFrom(events).Draw(t, "event") }
		put := func(s int, takes time.Duration, more ...*job) *job {
			j := &job{takes: takes, after: append(more, tails[s])}
			switch {
			case s == 0:
				j.after = append(j.after, tails[firstBlocking:]...)
			case s >= firstBlocking:
				j.after = append(j.after, tails[0])
			}
			tails[s] = j
			return j
		}
		t.Repeat(map[string]func(*rapid.T){
			"launch": func(t *rapid.T) {
				s, takes := stream(), time.Duration(rapid.Int64Range(0, 50).Draw(t, "takes"))
				require.NoError(t, dev.Launch(streams[s], takes))
				j := put(s, takes)
				j.queued = dev.Now()
				all = append(all, j)
			},
			"record": func(*rapid.T) {
				e, s := event(), stream()
				require.NoError(t, dev.EventRecord(e, streams[s]))
				records[e] = put(s, 0)
			},
			"wait": func(*rapid.T) {
				s, e := stream(), event()
				require.NoError(t, dev.StreamWaitEvent(streams[s], e))
				put(s, 0, records[e])
			},
			"renew": func(*rapid.T) { // the work of the destroyed stream is before later work of stream 0
				s := rapid.IntRange(firstBlocking, len(streams)-1).Draw(t, "which")
				require.NoError(t, dev.StreamDestroy(streams[s]))
				tails[0] = &job{after: []*job{tails[0], tails[s]}}
				tails[s] = nil
				var err error
				streams[s], err = dev.StreamCreateBlocking()
				require.NoError(t, err)
			},
			"advance": func(t *rapid.T) { dev.Advance(time.Duration(rapid.Int64Range(0, 40).Draw(t, "by"))) },
			"synchronize event": func(t *rapid.T) {
				e, before := event(), dev.Now()
				require.NoError(t, dev.EventSynchronize(e))
				require.Equal(t, max(before, records[e].ends()), dev.Now())
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
				for i, s := range streams {
					done, err := dev.StreamQuery(s)
					require.NoError(t, err)
					require.Equal(t, tails[i].ends() <= now, done, "stream %d at %v", i, now)
				}
				for _, e := range events {
					done, err := dev.EventQuery(e)
					require.NoError(t, err)
					require.Equal(t, records[e].ends() <= now, done, "event %#x at %v", e, now)
				}
				require.NoError(t, dev.Audit())
			},
		})
	})
}
