//go:build !vram_builtin

package actors

import (
	"runtime"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recovered"
)

// debugVars is the pattern that expvar registers: protoactor imports OpenTelemetry's exporter for Prometheus, which imports
// Prometheus' client, which imports expvar.
const debugVars = "GET /debug/vars"

// send posts m by the framework's own way in.
func send(r *Ref, m Message) { Root().Send(PID(r), m) }

// poison stops the actor by the framework's own way, after the queued messages.
func poison(r *Ref) { Root().Poison(PID(r)) }

func TestNamesNeedNotBeUnique(t *testing.T) {
	assert.NotEqual(t, PID(spawn(t, &probe{})).Id, PID(spawn(t, &probe{})).Id)
}

func TestProtoactorPoisonHandlesWhatIsBeforeIt(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	release := occupy(r)
	before, behind := newJob(nil), newJob(nil)
	r.Tell(before)
	Root().Poison(PID(r))
	r.Tell(behind)
	release()
	require.NoError(t, before.wait())
	require.ErrorIs(t, behind.wait(), ErrStopped)
	<-r.Done()
	assert.EqualValues(t, 1, p.stoppedCount.Load())
}

func TestMessagesThroughProtoactor(t *testing.T) {
	r := spawn(t, &probe{})
	j := newJob(nil)
	Root().Send(PID(r), j)
	require.NoError(t, j.wait())

	enveloped := newJob(nil)
	Root().RequestWithCustomSender(PID(r), enveloped, nil)
	require.NoError(t, enveloped.wait())

	Root().Send(PID(r), nil) // Keeps protoactor's own mailboxes busy forever.
	Root().Send(PID(r), "unknown")
	_, err := Root().RequestFuture(PID(r), &actor.Touch{}, -1).Result()
	require.NoError(t, err)
}

func TestDeadLetters(t *testing.T) {
	r := spawn(t, &probe{})
	_, err := Root().RequestFuture(PID(r), "unknown", -1).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter, "a request nobody understands does not hang")

	release := occupy(r)
	queued := Root().RequestFuture(PID(r), "queued", -1)
	enveloped := newJob(nil)
	Root().RequestWithCustomSender(PID(r), enveloped, PID(r))
	Root().Stop(PID(r))
	release()
	_, err = queued.Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
	require.ErrorIs(t, enveloped.wait(), ErrStopped)

	<-r.Done()
	late := newJob(nil)
	Root().Send(PID(r), late)
	require.ErrorIs(t, late.wait(), ErrStopped)
	_, err = Root().RequestFuture(PID(r), "late", -1).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
}

func TestWatchersAreTold(t *testing.T) {
	r := spawn(t, &probe{})
	require.NoError(t, Root().StopFuture(PID(r)).Wait())
	<-r.Done()

	// A sender that still had the mailbox when the actor ended.
	watcher := actor.NewFuture(shared().ActorSystem, time.Hour)
	r.box.postSystem(&actor.Restart{})
	r.box.postSystem(&actor.Watch{Watcher: watcher.PID()})
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
	r.box.postSystem(&actor.Restart{})
	release()
	require.NoError(t, queued.wait())
	enter(r)
	assert.Equal(t, 3, p.received)
	r.Leave()
}

// The guardian answers a failure that protoactor escalates, which suspends the mailbox, by a
// restart, without a limit.
func TestTheGuardianRestarts(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	for range 30 {
		r.Call(newJob(func() { r.box.framework.invoker.(actor.MessageInvoker).EscalateFailure(errLuck, nil) }))
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
		r.box.postSystem(&actor.SuspendMailbox{})
		for r.box.state.Load() != suspended {
			runtime.Gosched()
		}
		r.box.postSystem(&actor.Watch{Watcher: watcher.PID()})
	}
	suspend()
	assert.False(t, r.TryEnter())
	told, called := newJob(nil), newJob(nil)
	r.Tell(told)
	r.Call(called)
	assert.Zero(t, told.answerCount.Load()+called.answerCount.Load())
	r.box.postSystem(&actor.ResumeMailbox{})
	require.NoError(t, told.wait())
	require.NoError(t, called.wait())

	suspend()
	queued := newJob(nil)
	r.Tell(queued)
	r.Stop(nil)
	require.NoError(t, queued.wait())
	<-r.Done()
}

// impatient is a host that ends a test in which turns do not.
type impatient struct {
	logged

	t     *testing.T
	turns int
}

func (h *impatient) Reach(place string) {
	if place == beforeLeaving {
		h.turns++
		require.Less(h.t, h.turns, 100, "turns that receive nothing")
	}
}

// Messages that are queued as protoactor suspends the actor wait, and need no turn until it resumes, whether they came before the
// suspension or after it; system messages are received.
func TestASuspendedActorReceivesNothing(t *testing.T) {
	h, p := &impatient{t: t}, &probe{}
	r, err := Spawn(h, nil, "probe", p)
	require.NoError(t, err)
	require.True(t, r.TryEnter())
	r.Tell(newJob(nil))
	r.box.postSystem(&actor.SuspendMailbox{})
	h.turns = 0
	r.End()
	r.Tell(newJob(nil))
	assert.Equal(t, 1, h.turns)
	r.box.postSystem(&actor.Watch{Watcher: actor.NewFuture(shared().ActorSystem, time.Hour).PID()})
	assert.Equal(t, 2, h.turns)
	assert.Zero(t, p.received)
	assert.Equal(t, suspended, r.box.state.Load())
	r.box.postSystem(&actor.ResumeMailbox{})
	assert.Equal(t, 2, p.received)
	r.Stop(nil)
	<-r.Done()
}

// Protoactor is told whether user messages wait, not how many.
func TestOneStandsForAllMessagesThatWait(t *testing.T) {
	r := spawn(t, &probe{})
	box := boxOfProtoactor{&r.box.framework}
	release := occupy(r)
	assert.Zero(t, box.UserMessageCount())
	for range 3 {
		r.Tell(newJob(nil))
		assert.Equal(t, 1, box.UserMessageCount())
	}
	r.Stop(nil)
	release()
	<-r.Done()
	assert.Zero(t, box.UserMessageCount())
}

// crashingTouch panics inside protoactor, after Receive.
type crashingTouch struct{}

func (crashingTouch) GetAutoResponse(actor.Context) any { panic(errLuck) }

func TestAPanicInsideProtoactor(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	_, err := Root().RequestFuture(PID(r), crashingTouch{}, -1).Result()
	require.ErrorIs(t, err, actor.ErrDeadLetter)
	j := newJob(nil)
	r.Call(j)
	require.NoError(t, j.wait())
	enter(r)
	require.Len(t, p.panics, 1)
	r.Leave()
}

// The framework forgets an actor that has stopped, and tells those that watch it, also where Stopped panicked.
func TestTheFrameworkForgetsAStoppedActor(t *testing.T) {
	for name, stopped := range map[string]func(){
		"returns": nil,
		"panics":  func() { panic(recovered.Planted("stopped")) },
	} {
		p := &probe{onStopped: stopped}
		r := spawn(t, p)
		watcher := actor.NewFuture(shared().ActorSystem, time.Hour)
		ids := []string{PID(r).Id, watcher.PID().Id}
		r.box.postSystem(&actor.Watch{Watcher: watcher.PID()})
		for _, id := range ids {
			_, known := shared().ProcessRegistry.GetLocal(id)
			require.True(t, known, name)
		}
		r.Stop(nil)
		<-r.Done()
		for _, id := range ids { // a future that has its answer is forgotten
			_, known := shared().ProcessRegistry.GetLocal(id)
			assert.False(t, known, name)
		}
	}
}
