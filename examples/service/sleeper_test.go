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
