package actors

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recovered"
)

// A panic fails its message before the audit, and nothing else. Far more of them than protoactor's
// default allows.
func TestAPanicInReceive(t *testing.T) {
	p := &probe{}
	p.onPanic = func(crash Panic) error {
		j, ok := crash.Message.(*job)
		if !ok || j.failedCount.Load() != 1 {
			return errBooks
		}
		return nil
	}
	r := spawn(t, p)
	const panicCount = 50
	for i := range panicCount {
		release := occupy(r)
		bad, good := newJob(func() { panic(errLuck) }), newJob(nil)
		switch i % 3 {
		case 0:
			r.Call(bad)
		case 1:
			r.Tell(bad)
		default:
			send(r, bad)
		}
		r.Tell(good)
		release()
		err := bad.wait()
		var crash *PanicError
		require.ErrorAs(t, err, &crash)
		require.ErrorIs(t, err, errLuck)
		assert.Equal(t, "actors: probe panicked: out of luck", err.Error())
		assert.Contains(t, string(crash.Stack), "panic_test.go")
		assert.EqualValues(t, 1, bad.failedCount.Load())
		require.NoError(t, good.wait())
	}
	enter(r)
	assert.Len(t, p.panics, panicCount)
	r.Leave()
}

// turn is how an owner enters a turn inline.
func turn(r *Ref, body func()) (err error) {
	var effects Effects
	func() {
		enter(r)
		defer r.Exit(&effects, &err)
		body()
	}()
	r.Perform(effects)
	return err
}

func TestAPanicInAnEnteredTurn(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	require.NoError(t, turn(r, func() {}))
	err := turn(r, func() {
		p.onDetach = once(func() { p.received = 41 })
		panic("entered")
	})
	var crash *PanicError
	require.ErrorAs(t, err, &crash)
	assert.Contains(t, string(crash.Stack), "panic_test.go")
	assert.Equal(t, 41, p.received, "what the turn achieved is performed")
	j := newJob(nil)
	r.Call(j)
	require.NoError(t, j.wait())
	require.Len(t, p.panics, 1)
	assert.Nil(t, p.panics[0].Message)

	enter(r)
	effects, err := r.Fault("recovered by the caller")
	require.ErrorAs(t, err, &crash)
	r.Perform(effects)
	require.Len(t, p.panics, 2)
}

func requireQuarantined(t *testing.T, r *Ref, p *probe, cause error) {
	t.Helper()
	<-r.Done()
	for _, post := range []func(Message){r.Call, r.Tell, func(m Message) { send(r, m) }} {
		late := newJob(nil)
		post(late)
		require.Error(t, late.wait())
	}
	late := newJob(nil)
	r.Call(late)
	require.ErrorIs(t, late.wait(), cause)
	assert.False(t, r.TryEnter())
	assert.EqualValues(t, 1, p.stoppedCount.Load())
	require.ErrorIs(t, p.stoppedCause, cause)
}

func TestQuarantineAfterAMessage(t *testing.T) {
	p := &probe{onPanic: func(Panic) error { return fmt.Errorf("audit: %w", errBooks) }}
	r := spawn(t, p)
	release := occupy(r)
	bad, queued := newJob(func() { panic(errLuck) }), newJob(nil)
	r.Tell(bad)
	r.Tell(queued)
	r.Stop(errClosed) // Quarantine is the stronger word.
	release()
	require.ErrorIs(t, bad.wait(), errLuck)
	require.ErrorIs(t, queued.wait(), errBooks)
	requireQuarantined(t, r, p, errBooks)
}

func TestQuarantineAfterAnEnteredTurn(t *testing.T) {
	p := &probe{onPanic: func(Panic) error { return errBooks }}
	r := spawn(t, p)
	queued := newJob(nil)
	err := turn(r, func() {
		r.Tell(queued)
		panic(errLuck)
	})
	require.ErrorIs(t, err, errLuck)
	require.ErrorIs(t, queued.wait(), errBooks)
	assert.False(t, r.TryEnter(), "nobody enters between the quarantine and the end")
	requireQuarantined(t, r, p, errBooks)
}

// The turn of a quarantine goes to the worker as it is: the mailbox is idle at no moment before the
// actor stops.
func TestAQuarantinedTurnIsHandedOver(t *testing.T) {
	p := &probe{onPanic: func(Panic) error { return errBooks }}
	r := spawn(t, p)
	enter(r)
	assert.False(t, r.box.mustHandOver(), "nothing has happened yet")
	queued, late := newJob(nil), newJob(nil)
	r.Tell(queued)
	r.box.fault(newPanicError(r.Name(), errLuck))
	assert.True(t, r.box.mustHandOver())
	r.Tell(late)
	for _, j := range []*job{queued, late} {
		assert.EqualValues(t, 1, j.failedCount.Load(), "the mailbox is shut at once")
		assert.ErrorIs(t, j.err, errBooks)
	}
	r.End()
	requireQuarantined(t, r, p, errBooks)
}

func TestNobodyEntersAfterAQuarantine(t *testing.T) {
	for i := range 300 {
		quarantined := false
		p := &probe{onPanic: func(Panic) error {
			quarantined = true
			return errBooks
		}}
		r := spawn(t, p)
		begin, seen := make(chan struct{}), make(chan bool)
		go func() {
			close(begin)
			for spins := 0; ; spins++ {
				select {
				case <-r.Done():
					seen <- false
					return
				default:
				}
				if r.TryEnter() {
					late := quarantined
					r.box.leaveEntered()
					if late {
						seen <- true
						return
					}
				}
				if spins%1000 == 0 { // On one processor the others need it too.
					runtime.Gosched()
				}
			}
		}()
		<-begin
		if i%2 == 0 {
			assert.Error(t, turn(r, func() { panic(errLuck) }))
		} else {
			r.Call(newJob(func() { p.onDetach = func() Effects { panic(errLuck) } }))
		}
		require.False(t, <-seen)
	}
}

func TestAPanicInTheAuditQuarantines(t *testing.T) {
	p := &probe{onPanic: func(Panic) error { panic(errBooks) }}
	r := spawn(t, p)
	bad := newJob(func() { panic(errLuck) })
	r.Call(bad)
	require.ErrorIs(t, bad.wait(), errLuck)
	requireQuarantined(t, r, p, errBooks)
}

// A panic in the last turn, after the actor stopped, is reported and changes nothing: the cause of the stop stays, and there is no
// audit.
func TestAPanicAfterTheEndChangesNothing(t *testing.T) {
	for name, detaches := range map[string]bool{"in Detach": true, "in an effect": false} {
		var panics recovered.Log
		p := &probe{}
		r, err := Spawn(&logged{}, &panics, "probe", p) // all turns of it are over when a call returns
		require.NoError(t, err)
		last := true
		p.onDetach = func() Effects {
			if p.stoppedCount.Load() == 0 || !last {
				return nil
			}
			last = false
			switch {
			case detaches:
				panic(recovered.Planted("detach"))
			default:
				return effect(func() { panic(recovered.Planted("effect")) })
			}
		}
		r.Stop(errClosed)
		<-r.Done()
		for _, post := range []func(Message){r.Call, r.Tell} {
			late := newJob(nil)
			post(late)
			require.Equal(t, errClosed, late.wait(), name)
		}
		r.box.postSystem(unsuspend{}) // a late one, which takes the turn
		assert.Empty(t, p.panics, name)
		assert.EqualValues(t, 1, p.stoppedCount.Load(), name)
		assert.Equal(t, uint64(1), panics.Count(), name)
	}
}

func TestAPanicInDetachQuarantines(t *testing.T) {
	for name, post := range map[string]func(*Ref){
		"call": func(r *Ref) { r.Call(newJob(nil)) },
		"tell": func(r *Ref) { r.Tell(newJob(nil)) },
		"exit": func(r *Ref) { assert.NoError(t, turn(r, func() {})) },
		"leave": func(r *Ref) {
			defer func() {
				effects, err := r.Fault(recover())
				assert.Nil(t, effects)
				assert.ErrorIs(t, err, errBooks)
			}()
			enter(r)
			r.Leave()
		},
		"goexit": func(r *Ref) {
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				r.Call(newJob(runtime.Goexit))
			}()
			<-ended
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			r := spawn(t, p)
			enter(r)
			p.onDetach = func() Effects { panic(errBooks) }
			r.box.leaveEntered()
			post(r)
			requireQuarantined(t, r, p, errBooks)
		})
	}
}

// Property 7, the rest of it.
func TestPanicsThatGoNowhere(t *testing.T) {
	p := &probe{onStopped: func() { panic(errLuck) }}
	r := spawn(t, p)
	enter(r)
	p.onDetach = once(func() { panic(errLuck) })
	r.Perform(r.Leave())
	j := newJob(nil)
	r.Call(j)
	require.NoError(t, j.wait())
	enter(r)
	require.Len(t, p.panics, 1, "effects that panic are a matter for the audit")
	require.ErrorIs(t, p.panics[0].Value.(error), errLuck)
	r.Leave()

	release := occupy(r)
	rude, polite := &rudeMessage{}, newJob(nil)
	r.Tell(rude)
	r.Tell(polite)
	r.StopNow()
	release()
	require.ErrorIs(t, polite.wait(), ErrStopped)
	<-r.Done()
	assert.Equal(t, 1, rude.failed)
	r.Call(rude)
	r.Tell(rude)
	send(r, rude)
	assert.Equal(t, 4, rude.failed)
	assert.EqualValues(t, 1, p.stoppedCount.Load())
}

type rudeMessage struct {
	Link
	failed int
}

func (m *rudeMessage) Fail(error) {
	m.failed++
	panic("rude")
}

// A turn that ends its goroutine, as a failed assertion in a test does, must not take the actor
// with it.
func TestATurnThatEndsItsGoroutine(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	for range 3 {
		enter(r) // the worker answers in its turn, and leaves that later
		r.Perform(r.Leave())
		ended := make(chan struct{})
		onCaller, after := newJob(runtime.Goexit), newJob(nil)
		go func() {
			defer close(ended)
			r.Call(onCaller)
			t.Error("not reached")
		}()
		<-ended
		require.Error(t, onCaller.wait())
		onWorker := newJob(runtime.Goexit)
		r.Tell(onWorker)
		r.Tell(after)
		require.Error(t, onWorker.wait())
		require.NoError(t, after.wait())
	}
	enter(r)
	assert.Len(t, p.panics, 6)
	r.Leave()
}

// The effects of a turn in which a message ends the goroutine are performed.
func TestTheEffectsOfATurnThatEndsItsGoroutine(t *testing.T) {
	for name, post := range map[string]func(*Ref, Message){
		"on the caller": func(r *Ref, m Message) { go r.Call(m) },
		"on the worker": (*Ref).Tell,
	} {
		p := &probe{}
		r := spawn(t, p)
		performed := make(chan struct{})
		post(r, newJob(func() {
			p.onDetach = once(func() { close(performed) })
			runtime.Goexit()
		}))
		<-performed
		next := newJob(nil)
		r.Tell(next)
		require.NoError(t, next.wait(), name)
	}
}

func TestEffectsThatEndTheWorker(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	after := newJob(nil)
	r.Tell(newJob(func() {
		p.onDetach = func() Effects {
			p.onDetach = nil
			r.Tell(after)
			return effect(runtime.Goexit)
		}
	}))
	require.NoError(t, after.wait())
	r.Tell(newJob(func() { p.onDetach = once(runtime.Goexit) }))
	r.Stop(nil)
	<-r.Done()
}

func TestADetachThatEndsItsGoroutine(t *testing.T) {
	p := &probe{}
	r := spawn(t, p)
	r.Tell(newJob(func() {
		p.onDetach = func() Effects {
			runtime.Goexit()
			return nil
		}
	}))
	<-r.Done()
	require.ErrorIs(t, p.stoppedCause, errExit)
}

// Every panic that is recovered is reported once, with its stack, from any code of the owner.
func TestEveryRecoveredPanicIsReported(t *testing.T) {
	for name, crash := range map[string]func(p *probe, r *Ref){
		"receive": func(_ *probe, r *Ref) { r.Call(newJob(func() { panic(errLuck) })) },
		"effects": func(p *probe, r *Ref) {
			enter(r)
			p.onDetach = once(func() { panic(errLuck) })
			r.Perform(r.Leave())
			r.Call(newJob(nil))
		},
		"entered": func(_ *probe, r *Ref) { assert.Error(t, turn(r, func() { panic(errLuck) })) },
		"stopped": func(p *probe, _ *Ref) { p.onStopped = func() { panic(errLuck) } },
		"fail": func(_ *probe, r *Ref) {
			r.Stop(nil)
			<-r.Done()
			r.Call(&rudeMessage{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var panics recovered.Log
			var told []recovered.Panic
			panics.Tell(func(p recovered.Panic) { told = append(told, p) })
			p := &probe{}
			r, err := Spawn(nil, &panics, name, p)
			require.NoError(t, err)
			crash(p, r)
			r.Stop(nil)
			<-r.Done()
			require.EqualValues(t, 1, panics.Count())
			require.Len(t, told, 1)
			assert.Contains(t, string(told[0].Stack), "panic_test.go")
		})
	}
}
