package simulation

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/actors"
)

// mutation is a defect that is planted at the seams of the allocator, to see that it is found.
type mutation uint8

const (
	mutateNothing mutation = iota
	mutateFences           // every fence has passed at once: memory is used again too early
	mutateWake             // a turn that is handed to a worker is lost
	mutateGrant            // after a cancellation the pool's next grant is lost
	mutateDenial           // a refusal is lost
	mutateFree             // a free that others wait for is reported by the next tick only
	mutateAudit            // nobody returns the memory that a turn held when it panicked
	mutateWait             // the device does not wait though it was told to
	mutateCapture          // nobody is told that a stream is captured
	mutateGraph            // nobody is told that a fence is in a graph
	mutateExclude          // nobody is told that a stream is excluded from waits
	mutatePanic            // the pool panics after every eleventh message, and continues
)

// lost reports whether a message to a worker is lost.
func (w *world) lost(worker string) bool {
	if w.mutation != mutateWake || !strings.HasPrefix(worker, "vram-stream") {
		return false
	}
	w.mutated++
	return w.mutated%5 == 0
}

// dropped reports whether a message is lost.
func (w *world) dropped(m actors.Message) bool {
	switch w.mutation {
	case mutateGrant:
		if w.canceled && fmt.Sprintf("%T", m) == "*streams.granted" {
			w.canceled = false
			return true
		}
	case mutateDenial:
		if fmt.Sprintf("%T", m) == "*streams.denied" {
			w.mutated++
			return w.mutated%3 == 0
		}
	case mutateFree:
		return fmt.Sprintf("%T", m) == "*streams.woken"
	case mutateNothing, mutateFences, mutateWake, mutateAudit, mutateWait, mutateCapture, mutateGraph, mutateExclude, mutatePanic:
	}
	return false
}

// hiccup panics now and then after a turn's message was received in full: nothing is wrong but the panic.
func (w *world) hiccup(actor string) {
	if w.mutation != mutatePanic || actor != "vram-pool" {
		return
	}
	if w.mutated++; w.mutated%11 == 0 {
		panic("nobody planned this")
	}
}
