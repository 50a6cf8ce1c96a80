package actors

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Property 3: senders of every kind against panics and an end of any kind at any moment. Each
// message is answered, each exactly once, and nothing hangs.
func TestEveryMessageIsAnsweredOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		senderCount := rapid.IntRange(1, 6).Draw(rt, "senders")
		messageCount := rapid.IntRange(1, 40).Draw(rt, "messages")
		panicEvery := rapid.IntRange(0, 7).Draw(rt, "panic every")
		quarantineAt := rapid.IntRange(0, 10).Draw(rt, "quarantine at")
		ending := rapid.IntRange(0, 3).Draw(rt, "ending")
		endAfter := rapid.IntRange(0, senderCount*messageCount).Draw(rt, "end after")

		panics := 0
		p := &probe{onPanic: func(Panic) error {
			if panics++; panics == quarantineAt {
				return errBooks
			}
			return nil
		}}
		effectCount := 0
		p.onDetach = func() Effects {
			if effectCount++; effectCount%5 == 0 {
				return effect(func() { panic(errLuck) })
			}
			return nil
		}
		r, err := Spawn(nil, nil, "stress", p)
		require.NoError(rt, err)

		jobs := make([][]*job, senderCount)
		begin := make(chan struct{})
		var group sync.WaitGroup
		for s := range senderCount {
			jobs[s] = make([]*job, messageCount)
			for i := range messageCount {
				j := newJob(nil)
				if panicEvery > 0 && (s+i)%panicEvery == 0 {
					j.run = func() { panic(errLuck) }
				}
				jobs[s][i] = j
			}
			group.Go(func() {
				<-begin
				for i, j := range jobs[s] {
					switch (s + i) % 4 {
					case 0:
						r.Tell(j)
					case 1:
						send(r, j)
					default:
						r.Call(j)
					}
					if i%3 == 0 && r.TryEnter() {
						func() {
							var effects Effects
							defer func() { r.Perform(effects) }()
							defer r.Exit(&effects, nil)
							if panicEvery == 1 {
								panic(errLuck)
							}
						}()
					}
					if s == 0 && i*senderCount >= endAfter {
						end(r, ending)
					}
				}
			})
		}
		close(begin)
		group.Wait()
		r.Stop(nil)
		<-r.Done()
		require.EqualValues(rt, 1, p.stoppedCount.Load())
		received := 0
		for _, row := range jobs {
			for _, j := range row {
				<-j.answered
				require.EqualValues(rt, 1, j.answerCount.Load())
				if j.run == nil {
					require.EqualValues(rt, 1, j.receivedCount.Load()+j.failedCount.Load())
				} else {
					require.EqualValues(rt, 1, j.failedCount.Load())
				}
				received += int(j.receivedCount.Load())
			}
		}
		require.Equal(rt, received, p.received)
	})
}

func end(r *Ref, ending int) {
	switch ending {
	case 0:
		r.Stop(errClosed)
	case 1:
		r.StopNow()
	case 2:
		poison(r)
	default:
	}
}
