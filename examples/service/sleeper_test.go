package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sleepOnly counts the calls of Sleep, and has no other.
type sleepOnly struct {
	decoder
	sleeps int
}

func (d *sleepOnly) Sleep(context.Context) error {
	d.sleeps++
	return nil
}

// What comes after the end of a sleeper returns at once, and lets nothing sleep: a time without a request that has just passed, a request
// that leaves, and one that comes.
func TestTheEndOfASleeper(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} { // whether the time passes before the end
		synctest.Test(t, func(t *testing.T) {
			var d sleepOnly
			s := newSleeper(&d, time.Minute, func(err error) { t.Error(err) })
			for range 2 {
				require.NoError(t, s.enter(t.Context()))
			}
			s.leave()
			s.leave()
			if early {
				s.turn <- struct{}{}
				time.Sleep(2 * time.Minute) //nolint:forbidigo // virtual time
				synctest.Wait()             // the timer waits for the turn
				s.began++                   // a request comes
				s.present++
				<-s.turn
			} else {
				require.NoError(t, s.enter(t.Context()))
			}
			s.close()
			s.sleep(s.began - 1)
			s.leave()
			require.ErrorIs(t, s.enter(t.Context()), errStopping)
			time.Sleep(time.Hour) //nolint:forbidigo // virtual time
			synctest.Wait()
			assert.Zero(t, d.sleeps)
			assert.False(t, s.asleep.Load())
		})
	}
}

// A time without a request that has passed lets the weights sleep only where nothing has happened since, whatever that was: the timer may
// have to wait for the turn of others.
func TestALateTimerSeesWhatHasHappened(t *testing.T) {
	t.Parallel()
	enter := func(t *testing.T, s *sleeper) { t.Helper(); require.NoError(t, s.enter(t.Context())) }
	leave := func(_ *testing.T, s *sleeper) { s.leave() }
	closing := func(_ *testing.T, s *sleeper) { s.close() }
	for name, since := range map[string][]func(*testing.T, *sleeper){
		"":                     nil,
		"comes":                {enter},
		"comes, leaves":        {enter, leave},
		"comes twice, leaves":  {enter, enter, leave},
		"close":                {closing},
		"comes, close":         {enter, closing},
		"comes, close, leaves": {enter, closing, leave},
		"comes, leaves, close": {enter, leave, closing},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var d sleepOnly
				s := newSleeper(&d, time.Hour, func(err error) { t.Error(err) })
				enter(t, s)
				s.leave()
				passed := s.began // of the time that has passed
				s.stop()
				for _, happens := range since {
					happens(t, s)
				}
				s.sleep(passed)
				assert.Equal(t, len(since) == 0, s.asleep.Load())
				assert.Equal(t, len(since) == 0, d.sleeps == 1)
				s.close()
			})
		})
	}
}
