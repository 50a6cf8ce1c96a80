package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// A stream that is closed returns its pages, also while the pool puts them to sleep or wakes them.
func TestPagesAreReturnedWhileTheySleepOrWake(t *testing.T) {
	t.Parallel()
	for _, returned := range []Run{{First: 0, Pages: 8}, {First: 2, Pages: 3}} {
		for wakes := range 2 {
			t.Run(fmt.Sprintf("%v, wake %d", returned, wakes), func(t *testing.T) {
				t.Parallel()
				c := New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: 64 * pageBytes})
				send := func(m Message) *Effects {
					fx := c.Step(m)
					require.NoError(t, c.Check())
					return fx
				}
				done := func(j *Job) *Effects {
					require.NotNil(t, j)
					for i := range j.Ops {
						if op := &j.Ops[i]; op.Verb == memory.Create {
							op.Handle = cudadrv.Handle(100 + i) //nolint:gosec // a few
						}
					}
					return send(JobDone{Job: j, Done: len(j.Ops)})
				}
				send(Join{Client: 1})
				send(Apart(1))
				fx := done(send(Refill{Client: 1, Token: 1, Pages: 8, Bytes: 8 * pageBytes}).Job)
				require.Equal(t, Run{First: 0, Pages: 8}, effect.Left(&fx.Grants)[0].Run)
				job := send(Sleep(1, 2)).Job
				if wakes > 0 {
					done(job)
					job = send(Wake(1, 3)).Job
				}
				send(Return{Client: 1, Runs: []Run{returned}, Final: true})
				send(Leave{Client: 1, Synced: true})
				require.Len(t, effect.Left(&done(job).Ends), 1)
				fx = send(Close{Token: 4})
				if fx.Job != nil {
					fx = done(fx.Job)
				}
				require.Equal(t, []End{{Token: 4}}, effect.Left(&fx.Ends))
				require.Zero(t, c.ReservedBytes())
			})
		}
	}
}

// A client that is apart gets all that the driver has: once the driver has refused its new handles a few times, though it says
// that it has memory, all whole free handles are given back for the request or moved to it, before it is refused.
func TestAnApartClientGetsAllFreeHandlesInTheEnd(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	settings := s.core.settings
	settings.LimitBytes = 64 * pageBytes
	s.core.SetSettings(settings)
	s.do(Join{Client: 4})
	s.do(Apart(4))
	s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 6}}, Final: true})
	var moved []int
	asked := map[Client]bool{}
	fx := s.core.Step(Refill{Client: 4, Token: 5, Pages: 2, Bytes: 2 * pageBytes})
	for len(effect.Left(&fx.Denials)) == 0 {
		require.Less(t, len(moved), 2*maxRefusals)
		switch {
		case len(effect.Left(&fx.Asks)) > 0:
			for _, a := range slices.Clone(effect.Left(&fx.Asks)) {
				asked[a.Client] = true
				fx = s.core.Step(Return{Client: a.Client, Answer: true})
			}
		case fx.Job == nil:
			require.FailNow(t, "nothing follows")
		case fx.Job.Purpose == memory.Fill:
			moved = append(moved, fx.Job.Moved())
			require.True(t, fx.Job.Moved() == 0 || asked[1], "first the others return what they do not use")
			fx = s.core.Step(JobDone{Job: fx.Job, Err: cudadrv.OutOfMemory, FreeBytes: 32 * pageBytes})
		default:
			fx = s.core.Step(JobDone{Job: fx.Job, Done: len(fx.Job.Ops)})
		}
		require.NoError(t, s.core.Check())
	}
	require.Equal(t, 0, moved[0], "there is room beyond")
	for at, n := range moved {
		require.True(t, at < clearingRefusals || n == 6, "%d moved after %d refusals", n, at)
	}
	require.Equal(t, 6, moved[len(moved)-1])
}

// A client that is apart keeps within a limit that is no whole number of pages.
func TestAnApartClientKeepsWithinAnyLimit(t *testing.T) {
	t.Parallel()
	for _, left := range []int64{-pageBytes, -1, 0, 1} {
		s := &shop{
			core:  New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: 8*pageBytes + left}),
			shelf: map[Client][]Run{}, served: map[uint64]bool{}, denied: map[uint64]error{},
		}
		s.do(Join{Client: 1})
		s.do(Apart(1))
		s.do(Refill{Client: 1, Token: 5, Pages: 8, Bytes: 8 * pageBytes})
		require.Equal(t, left >= 0, s.served[5], "%d bytes more than the request", left)
		require.Len(t, s.denied, map[bool]int{true: 0, false: 1}[left >= 0])
		require.NoError(t, s.core.Check())
	}
}

// A wake that fails for another reason than memory ends with that error. For want of memory it is tried again, after free memory
// was given back, and ends with a ShortError that has the driver's.
func TestAWakeThatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		tries int
	}{"memory": {cudadrv.OutOfMemory, wakeTries}, "another reason": {errBroken, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			core := New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 4}, LimitBytes: 64 * pageBytes})
			var ends []End
			tries := 0
			run := func(m Message, fails bool) {
				for m != nil {
					fx := core.Step(m)
					require.NoError(t, core.Check())
					ends = append(ends, effect.Left(&fx.Ends)...)
					j := fx.Job
					if m = nil; j == nil {
						continue
					}
					creates := false
					for i := range j.Ops {
						if op := &j.Ops[i]; op.Verb == memory.Create {
							op.Handle, creates = cudadrv.Handle(100+i), true //nolint:gosec // a few
						}
					}
					if creates && fails {
						tries++
						m = JobDone{Job: j, Err: c.err}
					} else {
						m = JobDone{Job: j, Done: len(j.Ops)}
					}
				}
			}
			run(Join{Client: 1}, false)
			run(Apart(1), false)
			run(Refill{Client: 1, Token: 1, Pages: 8, Bytes: 8 * pageBytes}, false)
			run(Sleep(1, 2), false)
			require.Equal(t, []End{{Token: 2, Bytes: 8 * pageBytes}}, ends)
			ends = nil
			run(Wake(1, 3), true)
			require.Len(t, ends, 1)
			require.ErrorIs(t, ends[0].Err, c.err)
			require.Equal(t, c.tries, tries)
			var short *ShortError
			require.Equal(t, c.tries > 1, errors.As(ends[0].Err, &short))
			if short != nil {
				require.EqualValues(t, 8*pageBytes, short.MissingBytes)
			}
			ends = nil
			run(Wake(1, 4), false)
			require.Equal(t, []End{{Token: 4}}, ends)
			require.EqualValues(t, 8*pageBytes, core.ReservedBytes())
		})
	}
}

// A Sleep that fails has the bytes that sleep by then, and another one the bytes of both.
func TestASleepThatFailsSaysHowMuchSleeps(t *testing.T) {
	t.Parallel()
	s := &shop{
		core:  New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 1}, LimitBytes: 8 * pageBytes}),
		shelf: map[Client][]Run{}, served: map[uint64]bool{}, denied: map[uint64]error{},
	}
	s.do(Join{Client: 1})
	s.do(Apart(1))
	s.do(Refill{Client: 1, Token: 5, Pages: 4, Bytes: 4 * pageBytes})
	s.fails = func(_ int, j *Job) (int, error) { return len(j.Ops) - 1, cudadrv.Unknown } // one release is left
	s.do(Sleep(1, 6))
	require.Equal(t, []End{{Token: 6, Bytes: 3 * pageBytes, Err: cudadrv.Unknown}}, s.ends)
	s.fails = nil
	s.do(Sleep(1, 7))
	require.Equal(t, []End{{Token: 7, Bytes: 4 * pageBytes}}, s.ends[1:])
	require.NoError(t, s.core.Check())
}

// sleeper is a core whose only user is apart and asleep, with eight pages, and that has free handles of two pages.
func sleeper(t *testing.T, freePages uint32) *shop {
	t.Helper()
	s := &shop{
		core:  New(pageBytes, 64, Settings{Policy: Policy{HandlePages: 2}, LimitBytes: 64 * pageBytes}),
		shelf: map[Client][]Run{}, served: map[uint64]bool{}, denied: map[uint64]error{},
	}
	s.do(Join{Client: 1})
	s.do(Apart(1))
	s.do(Refill{Client: 1, Token: 1, Pages: 8, Bytes: 8 * pageBytes})
	s.do(Sleep(1, 2))
	s.do(Join{Client: 2})
	s.do(Refill{Client: 2, Token: 3, Pages: freePages, Bytes: int64(freePages) * pageBytes})
	require.EqualValues(t, int64(freePages)*pageBytes, s.core.ReservedBytes())
	s.ends, s.asked = nil, nil
	return s
}

// A wake asks others for memory exactly where the limit does not leave enough, to the byte, and keeps within it.
func TestAWakeKeepsWithinAnyLimit(t *testing.T) {
	t.Parallel()
	for _, returns := range []bool{false, true} {
		for _, left := range []int64{-pageBytes, -1, 0, 1, pageBytes} {
			s := sleeper(t, 12)
			settings := s.core.settings
			settings.LimitBytes = 20*pageBytes + left
			s.core.SetSettings(settings)
			if !returns {
				s.shelf[2] = nil
			}
			s.do(Wake(1, 4))
			require.NoError(t, s.core.Check())
			require.Len(t, s.ends, 1)
			var short *ShortError
			require.Equal(t, left < 0 && !returns, errors.As(s.ends[0].Err, &short), "%d bytes more than it wants", left)
			require.Equal(t, left < 0, len(s.asked) > 0, "%d bytes more than it wants", left)
			require.LessOrEqual(t, s.core.ReservedBytes(), settings.LimitBytes)
		}
	}
}

// Where the driver refuses, a wake is tried again when as much free memory as it wants was released, and then when all was.
func TestAWakeReleasesFreeMemoryStepByStep(t *testing.T) {
	t.Parallel()
	s := sleeper(t, 20)
	var reserved []int64
	s.fails = func(_ int, j *Job) (int, error) {
		if !slices.ContainsFunc(j.Ops, func(op memory.Op) bool { return op.Verb == memory.Create }) {
			return len(j.Ops), nil
		}
		reserved = append(reserved, s.core.ReservedBytes()/pageBytes)
		return 0, cudadrv.OutOfMemory
	}
	s.do(Wake(1, 4))
	require.Equal(t, []int64{20, 12, 0}, reserved)
	require.Len(t, s.ends, 1)
	require.ErrorIs(t, s.ends[0].Err, cudadrv.OutOfMemory)
}

// A Sleep where nothing can sleep needs no job, nor does a Wake where nothing sleeps.
func TestNothingSleepsWithoutAJob(t *testing.T) {
	t.Parallel()
	s := &shop{core: New(pageBytes, 64, Settings{LimitBytes: 64 * pageBytes})}
	s.do(Join{Client: 1})
	s.do(Apart(1))
	s.do(Sleep(1, 1))
	s.do(Wake(1, 2))
	require.Equal(t, []End{{Token: 1}, {Token: 2}}, s.ends)
	require.Zero(t, s.jobs)
}
