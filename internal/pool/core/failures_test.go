package core

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// A request that is not a Refill ends once, whichever of its jobs fails, at the first call or after the last but one: with that
// error, or without one where another job made up for it. The books balance, and the same request then ends without an error.
func TestARequestEndsOnceWhicheverOfItsJobsFails(t *testing.T) {
	t.Parallel()
	const token = 77
	for name, m := range map[string]struct {
		message Message
		before  []Message
	}{
		"charge": {message: Charge(2, 3*pageBytes, token)},
		"sleep":  {message: Sleep(4, token)},
		"wake":   {message: Wake(4, token), before: []Message{Sleep(4, 1)}},
		"trim":   {message: Trim{Token: token}},
		"warm":   {message: Warm{Token: token, Runs: []uint32{1, 1}}, before: []Message{Trim{Token: 1}}},
	} {
		for _, failure := range []error{errBroken, cudadrv.OutOfMemory} {
			for _, late := range []bool{false, true} {
				for at, jobs := 0, 1; at < jobs; at++ {
					s := openShop(t)
					s.do(Return{Client: 1, Runs: []Run{{First: 0, Pages: 5}}, Fence: 1, Sent: 1})
					s.passed = []Passed{{1, 1}}
					s.do(Join{Client: 4})
					s.do(Apart(4))
					s.do(Refill{Client: 4, Token: 5, Pages: 1, Bytes: pageBytes})
					require.True(t, s.served[5])
					for _, before := range m.before {
						s.do(before)
					}
					s.do(Return{Client: 1, Runs: []Run{{First: 5, Pages: 1}}, Fence: 2, Sent: 2}) // a fence to poll
					s.passed = []Passed{{1, 2}}
					s.ends, s.jobs = nil, 0
					s.fails = func(job int, j *Job) (done int, err error) {
						if job != at {
							return len(j.Ops), nil
						}
						if late {
							return max(0, len(j.Ops)-1), failure
						}
						return 0, failure
					}
					what := fmt.Sprintf("%s, job %d, %v, late: %v", name, at, failure, late)
					s.do(m.message)
					if s.jobs > at {
						jobs = at + 2
					}
					require.Len(t, s.ends, 1, what)
					end := s.ends[0]
					assert.EqualValues(t, token, end.Token, what)
					if short := new(ShortError); !errors.As(end.Err, &short) && (end.Err != nil || at == 0 && errors.Is(failure, errBroken)) {
						require.ErrorIs(t, end.Err, failure, what)
					}
					require.NoError(t, s.core.Check(), what)
					assert.Nil(t, s.core.InFlight(), what)

					s.ends, s.fails = nil, nil
					s.do(m.message)
					require.Len(t, s.ends, 1, what)
					assert.NoError(t, s.ends[0].Err, what)
					require.NoError(t, s.core.Check(), what)
				}
			}
		}
	}
}

// Pages of a window whose job fails are clean where the job has seen their fence pass: nobody reports it again.
func TestAFencePassesInAJobThatFails(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{errBroken, cudadrv.OutOfMemory} {
		for passed, clean := range map[Fence]bool{8: false, 9: true} {
			s := openShop(t)
			settings := s.core.settings
			settings.LimitBytes = 10 * pageBytes // a window of the two pages and of two that are created
			s.core.SetSettings(settings)
			s.do(Return{Client: 1, Runs: []Run{{First: 6, Pages: 2}}, Fence: 9, Sent: 1})
			tagged := 0
			s.fails = func(_ int, j *Job) (done int, err error) {
				if len(j.Parts) == 0 {
					s.passed = []Passed{{Client: 1, Fence: passed}} // the next job says so
					return len(j.Ops), nil
				}
				tagged++
				s.passed = nil
				return 0, failure
			}
			s.do(Refill{Client: 1, Token: 5, Pages: 4, Bytes: 4 * pageBytes}) // its own pages need no wait
			require.Positive(t, tagged, "a job has pages under a fence")
			assert.Equal(t, clean, s.core.memory.TaggedBytes(1) == 0, "fence %d", passed)
			require.NoError(t, s.core.Check())
		}
	}
}
