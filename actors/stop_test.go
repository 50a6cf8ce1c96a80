package actors

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"

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
	assert.False(t, r.box.waiting())
}

// A message that a closed mailbox refused is as it was before: posted again elsewhere it comes
// alone, also where its first attempt lost against another post, whose message it names since.
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
		assert.Nil(t, again.message, "it is in no mailbox")

		other.Call(again)
		assert.Zero(t, stranger.receivedCount.Load())
		stranger.message, again.next = nil, nil
	}
	assert.EqualValues(t, 2, again.receivedCount.Load())
}

// A message that has left a mailbox, in any way, may be posted elsewhere, and brings none of those along that were queued with it.
func TestAMessageThatLeftBringsNobodyAlong(t *testing.T) {
	for name, test := range map[string]struct {
		body func()
		end  func(r *Ref)
	}{
		"received":      {nil, func(*Ref) {}},
		"panicked":      {func() { panic(errLuck) }, func(*Ref) {}},
		"failed":        {nil, (*Ref).StopNow},
		"before a stop": {nil, func(r *Ref) { r.Stop(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := spawn(t, &probe{})
			release := occupy(r)
			all := []*job{newJob(test.body), newJob(test.body), newJob(test.body)}
			for _, j := range all {
				r.Tell(j)
			}
			test.end(r)
			release()
			for _, j := range all {
				_ = j.wait()
			}
			r.Stop(nil)
			<-r.Done()

			busy := spawn(t, &probe{})
			release = occupy(busy)
			for _, j := range all {
				j.run = nil
				j.receivedCount.Store(0)
			}
			for _, j := range all[1:] {
				busy.Tell(j)
			}
			spawn(t, &probe{}).Call(all[0])
			for i, want := range []int64{1, 0, 0} {
				assert.Equal(t, want, all[i].receivedCount.Load(), "message %d", i)
			}
			release()
			busy.Stop(nil)
			<-busy.Done()
			for i := range all {
				assert.EqualValues(t, 1, all[i].receivedCount.Load(), "message %d", i)
			}
		})
	}
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

func TestStopNowFailsWhatIsQueued(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	release := occupy(r)
	jobs := []*job{newJob(nil), newJob(nil), newJob(nil)}
	for _, j := range jobs {
		r.Tell(j)
	}
	assert.True(t, r.box.waiting())
	r.StopNow()
	r.StopNow()
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
	r.StopNow()
	poison(r)
}

func TestEndsOfAllKindsTogether(t *testing.T) {
	for range 200 {
		p := &probe{}
		r := spawn(t, p)
		go r.StopNow()
		go poison(r)
		r.Stop(errClosed)
		<-r.Done()
		assert.EqualValues(t, 1, p.stoppedCount.Load())
	}
}

// A message that meets the poison as the turn takes it is received or refused, never lost.
func TestMessagesThatMeetThePoison(t *testing.T) {
	const goroutineCount, messageCount = 2, 8
	for range 300 {
		r := spawn(t, &probe{})
		var all [goroutineCount][messageCount]*job
		var group sync.WaitGroup
		for g := range goroutineCount {
			group.Go(func() {
				for i := range messageCount {
					all[g][i] = newJob(nil)
					r.Tell(all[g][i])
				}
			})
		}
		group.Go(func() { r.Stop(errClosed) })
		group.Wait()
		<-r.Done()
		for _, jobs := range all {
			for _, j := range jobs {
				require.EqualValues(t, 1, j.answerCount.Load())
			}
		}
	}
}

// The last effects are performed before Done is closed, also on a caller's goroutine.
func TestTheLastEffectsComeBeforeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &probe{}
		r := spawn(t, p)
		performed := false
		p.onDetach = once(func() {
			synctest.Wait() // all other work has come to its end
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

// However an actor ends, its mailbox keeps no message, and nothing is received after the end: also of the messages that the last
// turn had taken.
func TestAMailboxThatHasEndedKeepsNoMessage(t *testing.T) {
	for name, c := range map[string]struct {
		first    func(r *Ref, p *probe) // inside the first of four messages
		received int
	}{
		"stopped":               {func(r *Ref, _ *probe) { r.Stop(nil) }, 4},
		"stopped now":           {func(r *Ref, _ *probe) { r.StopNow() }, 1},
		"quarantined":           {func(*Ref, *probe) { panic(errLuck) }, 1},
		"quarantined by Detach": {func(_ *Ref, p *probe) { p.onDetach = func() Effects { panic(errLuck) } }, 4},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{onPanic: func(Panic) error { return errBooks }}
			r := spawn(t, p)
			p.onStopped = func() { assert.Nil(t, r.box.taken) }
			release := occupy(r)
			all := []*job{newJob(func() { c.first(r, p) }), newJob(nil), newJob(nil), newJob(nil)}
			for _, j := range all {
				r.Tell(j)
			}
			release()
			<-r.Done()
			assert.Equal(t, 1+c.received, p.received) // the first is of occupy
			for _, j := range all {
				<-j.answered
				assert.Nil(t, j.message)
			}
			assert.Nil(t, r.box.taken)
			assert.False(t, r.box.waiting())
		})
	}
}

// telling is a message that posts others from within Fail.
type telling struct {
	job
	onFail func()
}

func (m *telling) Fail(err error) {
	m.onFail()
	m.job.Fail(err)
}

// A message that comes while the queued ones are being failed gets their cause, however the actor ends.
func TestAMessageThatComesAsOthersFail(t *testing.T) {
	for name, c := range map[string]struct {
		first func() // of the message before the others
		end   func(r *Ref)
		cause error
	}{
		"stopped now":                {nil, func(r *Ref) { r.StopNow() }, ErrStopped},
		"stopped now, after a cause": {nil, func(r *Ref) { r.Stop(errClosed); r.StopNow() }, errClosed},
		"quarantined":                {func() { panic(errLuck) }, func(*Ref) {}, errBooks},
		"quarantined, after a cause": {func() { panic(errLuck) }, func(r *Ref) { r.Stop(errClosed) }, errBooks},
	} {
		t.Run(name, func(t *testing.T) {
			r := spawn(t, &probe{onPanic: func(Panic) error { return errBooks }})
			release := occupy(r)
			late := newJob(nil)
			r.Tell(newJob(c.first))
			r.Tell(&telling{job{answered: make(chan struct{})}, func() { r.Tell(late) }})
			c.end(r)
			release()
			require.ErrorIs(t, late.wait(), c.cause)
			<-r.Done()
		})
	}
}
