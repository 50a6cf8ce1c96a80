package actors

import (
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	errClosed  = errors.New("device closed")
	errBooks   = errors.New("books do not balance")
	errLuck    = errors.New("out of luck")
	errUnasked = errors.New("nobody asked")
)

func TestStopHandlesWhatIsQueued(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	release := occupy(r)
	queued := newJob(nil)
	r.Tell(queued)
	r.Stop(errClosed)
	r.Stop(errUnasked)
	late := newJob(nil)
	r.Tell(late)
	require.ErrorIs(t, late.wait(), errClosed)
	late = newJob(nil)
	r.Call(late)
	require.ErrorIs(t, late.wait(), errClosed)
	select {
	case <-r.Done():
		t.Error("done while a turn runs")
	default:
	}
	release()
	require.NoError(t, queued.wait())
	<-r.Done()
	assert.EqualValues(t, 1, p.stoppedCount.Load())
	assert.Equal(t, errClosed, p.stoppedCause)
	assert.Equal(t, 0, r.box.UserMessageCount())
}

// A message that a closed mailbox refused is as it was before: posted again elsewhere it comes alone, also where its first attempt
// lost against another post, whose message it names since.
func TestARefusedMessageBringsNobodyAlong(t *testing.T) {
	r, other := spawn(t, &probe{}), spawn(t, &probe{})
	r.Stop(nil)
	<-r.Done()
	again, stranger := newJob(nil), newJob(nil)
	for _, post := range []func(Message){r.Tell, r.Call} {
		stranger.message = stranger // It waits in the mailbox, as the attempt found it.
		again.next = &stranger.Link
		post(again)
		require.ErrorIs(t, again.err, ErrStopped)
		assert.Nil(t, again.next)

		other.Call(again)
		assert.Zero(t, stranger.receivedCount.Load())
		stranger.message, again.next = nil, nil
	}
	assert.EqualValues(t, 2, again.receivedCount.Load())
}

func TestNothingIsAcceptedBehindThePoison(t *testing.T) {
	r := spawn(t, &probe{})
	release := occupy(r)
	late := newJob(nil)
	r.Tell(newJob(func() {
		r.Tell(late)
		assert.EqualValues(t, 1, late.failedCount.Load(), "refused at once, though the poison has left the stack")
	}))
	r.Stop(errClosed)
	release()
	require.ErrorIs(t, late.wait(), errClosed)
}

func TestStopFromInsideATurn(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	r.Call(newJob(func() { r.Stop(nil) }))
	<-r.Done()
	assert.Equal(t, ErrStopped, p.stoppedCause)

	p = &probe{}
	r = spawn(t, p)
	enter(r)
	r.Stop(errClosed)
	assert.Nil(t, r.Leave())
	<-r.Done()
	assert.Equal(t, errClosed, p.stoppedCause)
}

func TestProtoactorStopFailsWhatIsQueued(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	release := occupy(r)
	jobs := []*job{newJob(nil), newJob(nil), newJob(nil)}
	for _, j := range jobs {
		r.Tell(j)
	}
	assert.Equal(t, 1, r.box.UserMessageCount())
	r.Root().Stop(r.PID())
	r.Root().Stop(r.PID())
	release()
	for _, j := range jobs {
		require.ErrorIs(t, j.wait(), ErrStopped)
		assert.Zero(t, j.receivedCount.Load())
	}
	<-r.Done()
	late := newJob(nil)
	r.Call(late)
	require.ErrorIs(t, late.wait(), ErrStopped)
	assert.EqualValues(t, 1, p.stoppedCount.Load())
	assert.False(t, r.TryEnter())
	r.Stop(errClosed)
	r.Root().Stop(r.PID())
	r.Root().Poison(r.PID())
}

func TestProtoactorPoisonHandlesWhatIsBeforeIt(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	release := occupy(r)
	before, behind := newJob(nil), newJob(nil)
	r.Tell(before)
	r.Root().Poison(r.PID())
	r.Tell(behind)
	release()
	require.NoError(t, before.wait())
	require.ErrorIs(t, behind.wait(), ErrStopped)
	<-r.Done()
	assert.EqualValues(t, 1, p.stoppedCount.Load())
}

func TestStopAndProtoactorStopTogether(t *testing.T) {
	for range 200 {
		p := &probe{}
		r := spawn(t, p)
		go r.Root().Stop(r.PID())
		go r.Root().Poison(r.PID())
		r.Stop(errClosed)
		<-r.Done()
		assert.EqualValues(t, 1, p.stoppedCount.Load())
	}
}

func TestMessagesThroughProtoactor(t *testing.T) {
	r := spawn(t, &probe{})
	j := newJob(nil)
	r.Root().Send(r.PID(), j)
	require.NoError(t, j.wait())

	enveloped := newJob(nil)
	r.Root().RequestWithCustomSender(r.PID(), enveloped, nil)
	require.NoError(t, enveloped.wait())

	r.Root().Send(r.PID(), nil) // Keeps protoactor's own mailboxes busy forever.
	r.Root().Send(r.PID(), "unknown")
	_, err := r.Root().RequestFuture(r.PID(), &actor.Touch{}, -1).Result()
	require.NoError(t, err)
}

func TestDeadLetters(t *testing.T) {
	r := spawn(t, &probe{})
	_, err := r.Root().RequestFuture(r.PID(), "unknown", -1).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter, "a request nobody understands does not hang")

	release := occupy(r)
	queued := r.Root().RequestFuture(r.PID(), "queued", -1)
	enveloped := newJob(nil)
	r.Root().RequestWithCustomSender(r.PID(), enveloped, r.PID())
	r.Root().Stop(r.PID())
	release()
	_, err = queued.Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
	require.ErrorIs(t, enveloped.wait(), ErrStopped)

	<-r.Done()
	late := newJob(nil)
	r.Root().Send(r.PID(), late)
	require.ErrorIs(t, late.wait(), ErrStopped)
	_, err = r.Root().RequestFuture(r.PID(), "late", -1).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
}

func TestWatchersAreTold(t *testing.T) {
	r := spawn(t, &probe{})
	require.NoError(t, r.Root().StopFuture(r.PID()).Wait())
	<-r.Done()

	// Somebody who still had the mailbox in hand when the actor ended.
	watcher := actor.NewFuture(shared().ActorSystem, time.Hour)
	r.box.PostSystemMessage(&actor.Restart{})
	r.box.PostSystemMessage(&actor.Watch{Watcher: watcher.PID()})
	require.NoError(t, watcher.Wait())
	assert.False(t, r.TryEnter())
}

func TestARestartKeepsStateAndQueue(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	r.Call(newJob(nil))
	release := occupy(r)
	queued := newJob(nil)
	r.Tell(queued)
	r.box.PostSystemMessage(&actor.Restart{})
	release()
	require.NoError(t, queued.wait())
	enter(r)
	assert.Equal(t, 3, p.received)
	r.Leave()
}

// The guardian answers what protoactor escalates, which suspends the mailbox, by a restart, without a limit.
func TestTheGuardianRestarts(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	for range 30 {
		r.Call(newJob(func() { r.box.invoker.EscalateFailure(errLuck, nil) }))
		j := newJob(nil)
		r.Call(j)
		require.NoError(t, j.wait())
	}
	enter(r)
	assert.Equal(t, 60, p.received)
	r.Leave()
	assert.Zero(t, p.stoppedCount.Load())
}

func TestSuspendedByProtoactor(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	suspend := func() {
		watcher := actor.NewFuture(shared().ActorSystem, time.Hour)
		r.box.PostSystemMessage(&actor.SuspendMailbox{})
		for r.box.state.Load() != suspended {
			runtime.Gosched()
		}
		r.box.PostSystemMessage(&actor.Watch{Watcher: watcher.PID()})
	}
	suspend()
	assert.False(t, r.TryEnter())
	told, called := newJob(nil), newJob(nil)
	r.Tell(told)
	r.Call(called)
	assert.Zero(t, told.answerCount.Load()+called.answerCount.Load())
	r.box.PostSystemMessage(&actor.ResumeMailbox{})
	require.NoError(t, told.wait())
	require.NoError(t, called.wait())

	suspend()
	queued := newJob(nil)
	r.Tell(queued)
	r.Stop(nil)
	require.NoError(t, queued.wait())
	<-r.Done()
}

// The last effects are performed before anybody hears that the actor is through, also on a caller's goroutine.
func TestTheLastEffectsComeBeforeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		r := spawn(t, p)
		performed := false
		p.onDetach = once(func() {
			synctest.Wait() // whatever else goes on has come to its end
			select {
			case <-r.Done():
				t.Error("it is through, and its effects are not")
			default:
			}
			performed = true
		})
		r.Call(newJob(func() { r.Stop(errClosed) }))
		<-r.Done()
		assert.True(t, performed)
	})
}
