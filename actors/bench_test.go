//go:build !race && !invariants

package actors

import (
	"sync"
	"testing"
)

func BenchmarkTurn(b *testing.B) {
	b.Run("impl=enter-leave", func(b *testing.B) {
		s := &sink{}
		r := spawn(b, s)
		b.ReportAllocs()
		for b.Loop() {
			if r.TryEnter() {
				s.received++
				r.Perform(r.Leave())
			}
		}
	})
	b.Run("impl=enter-exit", func(b *testing.B) {
		s := &sink{}
		r := spawn(b, s)
		b.ReportAllocs()
		for b.Loop() {
			var effects Effects
			func() {
				if r.TryEnter() {
					defer r.Exit(&effects, nil)
					s.received++
				}
			}()
			r.Perform(effects)
		}
	})
	b.Run("impl=call", func(b *testing.B) {
		r := spawn(b, &sink{})
		m := &plain{}
		b.ReportAllocs()
		for b.Loop() {
			r.Call(m)
		}
	})
	b.Run("impl=mutex", func(b *testing.B) {
		var mutex sync.Mutex
		s := &sink{}
		b.ReportAllocs()
		for b.Loop() {
			mutex.Lock()
			s.received++
			mutex.Unlock()
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	b.Run("impl=tell", func(b *testing.B) {
		r := spawn(b, &sink{})
		m := &plain{answered: make(chan struct{}, 1)}
		b.ReportAllocs()
		for b.Loop() {
			r.Tell(m)
			<-m.answered
		}
	})
	b.Run("impl=call", func(b *testing.B) {
		r := spawn(b, &sink{})
		m := &plain{answered: make(chan struct{}, 1)}
		b.ReportAllocs()
		for b.Loop() {
			r.Call(m)
			<-m.answered
		}
	})
	b.Run("impl=channel", func(b *testing.B) {
		requests := channelActor()
		m := &plain{answered: make(chan struct{}, 1)}
		b.ReportAllocs()
		for b.Loop() {
			requests <- m
			<-m.answered
		}
		close(requests)
	})
}

// Several clients of one actor.
func BenchmarkContended(b *testing.B) {
	b.Run("impl=call", func(b *testing.B) {
		r := spawn(b, &sink{})
		contend(b, func(m *plain) { r.Call(m) })
	})
	b.Run("impl=enter-or-call", func(b *testing.B) {
		r := spawn(b, &sink{})
		contend(b, func(m *plain) {
			if r.TryEnter() {
				m.answered <- struct{}{}
				r.Perform(r.Leave())
				return
			}
			r.Call(m)
		})
	})
	b.Run("impl=channel", func(b *testing.B) {
		requests := channelActor()
		contend(b, func(m *plain) { requests <- m })
		close(requests)
	})
	b.Run("impl=mutex", func(b *testing.B) {
		var mutex sync.Mutex
		contend(b, func(m *plain) {
			mutex.Lock()
			m.answered <- struct{}{}
			mutex.Unlock()
		})
	})
}

func contend(b *testing.B, post func(*plain)) {
	b.Helper()
	b.ReportAllocs()
	b.SetParallelism(8)
	b.RunParallel(func(pb *testing.PB) {
		m := &plain{answered: make(chan struct{}, 1)}
		for pb.Next() {
			post(m)
			<-m.answered
		}
	})
}

func channelActor() chan *plain {
	requests := make(chan *plain, 1024)
	go func() {
		s := &sink{}
		for m := range requests {
			s.Receive(m)
		}
	}()
	return requests
}
