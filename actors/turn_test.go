package actors

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/go-vram/vram/internal/leaks"
)

func TestSpawnWithoutABehavior(t *testing.T) {
	_, err := Spawn(nil, nil, "nobody", nil)
	require.Error(t, err)
}

func TestAnActorIsIdleOnceSpawned(t *testing.T) {
	r := spawn(t, &probe{})
	require.True(t, r.TryEnter())
	r.Perform(r.Leave())
	assert.Equal(t, "probe", r.Name())
}

// End does not call Detach; messages posted during the turn are received as after Leave.
func TestEndLeavesWithoutDetach(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	detached := 0
	enter(r)
	p.onDetach = func() Effects { detached++; return nil }
	r.End()
	enter(r)
	assert.Zero(t, detached)
	j := newJob(nil)
	r.Tell(j)
	r.End()
	require.NoError(t, j.wait())
	enter(r)
	assert.Equal(t, 1, detached, "the turn of the message")
	r.End()
}

func TestCallRunsOnTheCallerWhenIdle(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	ran := false
	r.Call(newJob(func() { ran = true })) // Without a lock: the race detector would object to another goroutine.
	assert.True(t, ran)
}

func TestCallOfABusyActorReturnsAtOnce(t *testing.T) {
	r := spawn(t, &probe{})
	release := occupy(r)
	j := newJob(nil)
	r.Call(j)
	assert.Zero(t, j.answerCount.Load())
	release()
	require.NoError(t, j.wait())
}

func TestTellRunsOnTheWorker(t *testing.T) {
	r := spawn(t, &probe{})
	release := make(chan struct{})
	j := newJob(func() { <-release }) // On this goroutine that would never end.
	r.Tell(j)
	close(release)
	require.NoError(t, j.wait())
}

func TestTellFromInsideATurn(t *testing.T) {
	r := spawn(t, &probe{})
	inner := newJob(nil)
	r.Call(newJob(func() { r.Tell(inner) }))
	require.NoError(t, inner.wait())
}

// Property 1.
func TestTurnsNeverOverlap(t *testing.T) {
	r := spawn(t, &probe{})
	const goroutineCount, rounds = 8, 500
	inside, turns := 0, 0 // Plain: overlapping turns are a data race.
	body := func() {
		inside++
		runtime.Gosched() // others see the turn
		assert.Equal(t, 1, inside)
		turns++
		inside--
	}
	var group sync.WaitGroup
	for g := range goroutineCount {
		group.Go(func() {
			for i := range rounds {
				switch (g + i) % 3 {
				case 0:
					r.Call(newJob(body))
				case 1:
					r.Tell(newJob(body))
				default:
					enter(r)
					body()
					r.Perform(r.Leave())
				}
			}
		})
	}
	group.Wait()
	r.Stop(nil)
	<-r.Done()
	assert.Equal(t, goroutineCount*rounds, turns)
}

// Property 1 for goroutines that find the actor idle at the same moment.
func TestOneOfManyGoroutinesEnters(t *testing.T) {
	r := spawn(t, &probe{})
	for range 1000 {
		var ready, entered atomic.Int64
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				for ready.Add(1); ready.Load() < 3; {
					runtime.Gosched()
				}
				if r.TryEnter() {
					entered.Add(1)
					leaveTurn()
				}
			})
		}
		group.Wait()
		assert.EqualValues(t, 1, entered.Load())
		enterTurn(r.Name())
		r.Perform(r.Leave()) // also if it failed: the actor ends with the test
		if t.Failed() {
			return
		}
	}
}

// System messages that many goroutines post at the same moment all arrive, each once.
func TestSystemMessagesAmongGoroutines(t *testing.T) {
	r := spawn(t, &probe{})
	const goroutineCount, messageCount = 3, 20
	for range 200 {
		enter(r)
		var ready atomic.Int64
		var group sync.WaitGroup
		for range goroutineCount {
			group.Go(func() {
				for ready.Add(1); ready.Load() < goroutineCount; {
					runtime.Gosched()
				}
				for range messageCount {
					r.box.postSystem(unsuspend{})
				}
			})
		}
		group.Wait()
		posted := 0
		for n := r.box.system.Load(); n != nil; n = n.next {
			posted++
		}
		assert.Equal(t, goroutineCount*messageCount, posted)
		r.Perform(r.Leave())
		if t.Failed() {
			return
		}
	}
}

// Property 2.
func TestMessagesOfOneSenderStayInOrder(t *testing.T) {
	r := spawn(t, &probe{})
	const senderCount, messageCount = 6, 1000
	var got [senderCount][]int
	var group sync.WaitGroup
	for s := range senderCount {
		group.Go(func() {
			for i := range messageCount {
				j := newJob(func() { got[s] = append(got[s], i) })
				if (s+i)%3 == 0 {
					r.Tell(j)
				} else {
					r.Call(j)
				}
			}
		})
	}
	group.Wait()
	r.Stop(nil)
	<-r.Done()
	for s := range senderCount {
		require.Len(t, got[s], messageCount)
		for i, v := range got[s] {
			require.Equal(t, i, v)
		}
	}
}

// Property 4: each message arrives while the actor is just going idle after the one before.
func TestNoWakeUpIsLost(t *testing.T) {
	r := spawn(t, &probe{})
	var group sync.WaitGroup
	for g := range 3 {
		group.Go(func() {
			for i := range 2000 {
				j := newJob(nil)
				if g == 0 {
					r.Tell(j)
				} else {
					r.Call(j)
				}
				if i%4 == 0 && r.TryEnter() {
					r.Perform(r.Leave())
				}
				<-j.answered
			}
		})
	}
	group.Wait()
}

// Property 4, step by step: the message arrives when the turn has looked at the queue for the last
// time.
func TestAMessageThatArrivesWhileTheTurnIsBeingLeft(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	entered := newJob(nil)
	enter(r)
	r.Tell(entered)
	assert.Nil(t, r.Leave())
	require.NoError(t, entered.wait())

	for name, post := range map[string]func(Message){"call": r.Call, "tell": r.Tell} {
		t.Run(name, func(t *testing.T) {
			late := newJob(nil)
			post(newJob(func() {
				p.onDetach = func() Effects {
					p.onDetach = nil
					r.Tell(late)
					return nil
				}
			}))
			require.NoError(t, late.wait())
		})
	}

	r.Call(newJob(func() {
		p.onDetach = func() Effects {
			p.onDetach = nil
			r.StopNow()
			return nil
		}
	}))
	<-r.Done()
}

// Property 2 where Call finds the actor idle and a message of its own still on the stack: the
// holder that will look again has not done so yet.
func TestCallComesAfterWhatIsOnTheStack(t *testing.T) {
	r := spawn(t, &probe{})
	var order []int
	require.True(t, r.box.push(newJob(func() { order = append(order, 1) })))
	r.Call(newJob(func() { order = append(order, 2) }))
	assert.Equal(t, []int{1, 2}, order)
}

// Property 2 where Call finds the actor idle, and the holder that has left has taken messages that it did not receive.
func TestCallComesAfterWhatATurnHasTaken(t *testing.T) {
	r := spawn(t, &probe{})
	b := &r.box
	var order []int
	enter(r)
	for i := range 3 {
		require.True(t, b.push(newJob(func() { order = append(order, i) })))
	}
	leaveTurn()
	left := 1
	b.turn(&left)
	require.True(t, b.leave().more)
	r.Call(newJob(func() { order = append(order, 3) }))
	assert.Equal(t, []int{0, 1, 2, 3}, order)
}

// Property 6: a poster that is held up after queueing its message, and one that took nothing yet.
func TestAPosterThatIsHeldUpDelaysNobody(t *testing.T) {
	r := spawn(t, &probe{})
	held := newJob(nil)
	require.True(t, r.box.push(held)) // And never gets further.
	j := newJob(nil)
	r.Call(j)
	require.NoError(t, j.wait())
	require.NoError(t, held.wait())
}

func TestAMessageMayBePostedAgain(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	again := &job{}
	for range 10 {
		r.Call(again)
	}
	again.run = func() {
		again.run = nil
		r.Tell(again)
	}
	r.Call(again)
	r.Stop(nil)
	<-r.Done()
	assert.Equal(t, 12, p.received)
}

func TestWhatIsOverTheInlineBudgetGoesToTheWorker(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	jobs := make([]*job, 3*maxInlineMessages)
	enter(r)
	for i := range jobs {
		jobs[i] = newJob(nil)
		require.True(t, r.box.push(jobs[i]))
	}
	r.box.runInline()
	for i, j := range jobs {
		if i >= maxInlineMessages {
			<-j.answered
		}
		require.EqualValues(t, 1, j.answerCount.Load())
	}
}

// A message that arrives while a caller's turn ends is handled on that caller too, as long as its budget lasts.
func TestWhatIsWithinTheInlineBudgetStaysOnTheCaller(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	for count := 1; count <= maxInlineMessages; count++ {
		enter(r)
		for range count {
			require.True(t, r.box.push(newJob(nil)))
		}
		late := newJob(nil)
		p.onDetach = func() Effects {
			p.onDetach = nil
			assert.True(t, r.box.push(late))
			return nil
		}
		r.box.runInline()
		if count < maxInlineMessages {
			require.EqualValues(t, 1, late.answerCount.Load(), "after %d", count)
		}
		require.NoError(t, late.wait())
	}
}

// Property 4 where Call finds the actor busy, and the holder has left the turn and seen that nothing waits before the message
// is queued.
func TestCallOfAnActorThatGoesIdle(t *testing.T) {
	r := spawn(t, &probe{})
	j, looks, release := newJob(nil), 0, occupy(r)
	j.looked = func() {
		if looks++; looks == 2 { // after Call has found the actor busy
			release()
		}
	}
	r.Call(j)
	require.NoError(t, j.wait())
}

// Property 5.
func TestEffectsMayCallAnyActor(t *testing.T) {
	for name, post := range map[string]func(*Ref){
		"call": func(r *Ref) { r.Call(newJob(nil)) },
		"tell": func(r *Ref) { r.Tell(newJob(nil)) },
		"leave": func(r *Ref) {
			enter(r)
			r.Perform(r.Leave())
		},
		"exit": func(r *Ref) { assert.NoError(t, turn(r, func() {})) },
	} {
		t.Run(name, func(t *testing.T) {
			other, p := spawn(t, &probe{}), &probe{}
			r := spawn(t, p)
			same, another := newJob(nil), newJob(nil)
			p.onDetach = once(func() {
				other.Call(another)
				r.Call(same)
			})
			post(r)
			require.NoError(t, same.wait())
			require.NoError(t, another.wait())
		})
	}
}

// Property 8.
func TestNothingIsLeftAfterDone(t *testing.T) {
	before := goleak.IgnoreCurrent()
	p := &probe{}
	r := spawn(t, p)
	r.Tell(newJob(nil))
	r.Stop(nil)
	<-r.Done()
	assert.False(t, r.TryEnter())
	assert.Equal(t, 1, p.received) // Plain access: the state is ours now.
	leaks.None(t, before)
}

// Tests of owners may run their actors on synctest's clock.
func TestInsideABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := spawn(t, &probe{})
		j := newJob(nil)
		r.Tell(j)
		synctest.Wait()
		assert.EqualValues(t, 1, j.receivedCount.Load())
	})
}
