package futures

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// actor is one goroutine at a promise, split at its atomic operations. The promise's own methods
// perform the steps.
type actor interface {
	// choices returns the number of possible next steps: none for a task that is done or parked.
	choices() int
	step(choice int)
	through() bool
	// key is the actor's position, with its memory.
	key() string
}

// meeting is some actors at one promise.
type meeting struct {
	p       *Promise[int]
	actors  []actor
	names   map[any]string // of gates and observers
	ended   bool           // the waiters' context
	told    int            // how often OnCancel's function was called
	winners []string
	kept    int // values of losers
	answers []string
}

func (m *meeting) key() string {
	var b strings.Builder
	fmt.Fprint(&b, !m.p.Pending(), m.ended, m.told, m.winners, m.kept, m.answers, " gate ")
	switch g := m.p.core.gate.Load(); g {
	case nil:
	case &opened:
		b.WriteString("opened")
	default:
		b.WriteString(m.names[g])
	}
	b.WriteString(" stack " + m.stack(m.p.core.observers.Load()))
	for _, a := range m.actors {
		b.WriteString(" | " + a.key())
	}
	return b.String()
}

func (m *meeting) stack(o *observer) string {
	if o == &sealed {
		return "sealed"
	}
	var b strings.Builder
	for ; o != nil; o = o.next {
		b.WriteString(m.names[o] + ",")
	}
	return b.String()
}

// completer is Complete, or Cancel.
type completer struct {
	*meeting
	name   string
	value  int
	err    error
	at     int
	toTell *observer
}

func (c *completer) through() bool { return c.at == 5 }

func (c *completer) choices() int {
	if c.through() {
		return 0
	}
	return 1
}

func (c *completer) step(int) {
	switch c.at {
	case 0:
		if !c.p.core.claim() {
			c.kept += c.value
			c.at = 5
			return
		}
		c.winners = append(c.winners, c.name)
	case 1:
		c.toTell = c.p.seal(c.value, c.err)
	case 2:
		c.p.core.openGate()
	case 3:
		if c.toTell != nil {
			o := c.toTell
			c.toTell = o.next
			o.party.notify()
			return
		}
	case 4:
		if c.err != nil {
			c.told++
		}
	}
	c.at++
}

func (c *completer) key() string { return fmt.Sprint(c.name, c.at, c.stack(c.toTell)) }

// waiter is Await, in its own order: probe, done (load, swap, load again), look again, park. A bare
// one is a receive from Done, which looks at nothing but the gate.
type waiter struct {
	*meeting
	name   string
	bare   bool
	at     int
	gate   *gate
	seen   *gate
	answer string
}

func (w *waiter) through() bool { return w.answer != "" }

func (w *waiter) choices() int {
	switch {
	case w.through():
		return 0
	case w.at < 5:
		return 1
	}
	n := 0
	if w.open() {
		n++
	}
	if w.ended && !w.bare {
		n++
	}
	return n
}

func (w *waiter) open() bool {
	select {
	case <-w.gate.open:
		return true
	default:
		return false
	}
}

func (w *waiter) step(choice int) {
	switch w.at {
	case 0, 4, 6: // 6: the context has ended
		if w.bare {
			w.at++
			return
		}
		if w.p.core.completed() {
			w.take()
			return
		}
		if w.at == 6 {
			w.end("ended")
			return
		}
		w.at++
	case 1:
		w.seen = w.p.core.gate.Load()
		w.at = 2
		if w.seen != nil {
			w.gate, w.at = w.seen, 4
		}
	case 2:
		g := &gate{open: make(chan struct{})}
		w.names[g] = w.name
		w.at = 3
		if w.p.core.gate.CompareAndSwap(nil, g) {
			w.gate, w.at = g, 4
		}
	case 3:
		w.gate, w.at = w.p.core.gate.Load(), 4
	case 5:
		if w.open() && choice == 0 {
			w.take()
			return
		}
		w.at = 6
	}
}

func (w *waiter) take() { w.end(fmt.Sprint(w.p.val, w.p.core.err)) }

func (w *waiter) end(answer string) {
	w.answer = answer
	w.answers = append(w.answers, answer)
}

func (w *waiter) key() string {
	holds := ""
	switch {
	case w.gate == &opened:
		holds = "opened"
	case w.gate != nil:
		holds = w.names[w.gate]
	}
	return fmt.Sprint(w.name, w.at, holds, w.answer)
}

// follower is observe and the steps after it.
type follower struct {
	*meeting
	name   string
	at     int
	top    *observer
	link   *observer
	answer string
}

func (f *follower) notify() {
	f.answers = append(f.answers, fmt.Sprint(f.p.val, f.p.core.err))
	f.answer += fmt.Sprint(f.p.val, f.p.core.err) // twice would show
}

func (f *follower) through() bool { return f.answer != "" }

func (f *follower) choices() int {
	if f.at == 2 || f.through() {
		return 0
	}
	return 1
}

func (f *follower) step(int) {
	switch f.at {
	case 0:
		f.top, f.at = f.p.core.observers.Load(), 1
		if f.top == &sealed {
			f.notify() // by itself
		}
	case 1:
		f.link.next = f.top
		f.at = 0
		if f.p.core.observers.CompareAndSwap(f.top, f.link) {
			f.at = 2
		}
	}
}

func (f *follower) key() string { return fmt.Sprint(f.name, f.at, f.stack(f.top), f.answer) }

// ender ends the waiters' context.
type ender struct{ *meeting }

func (e ender) through() bool { return true } // it may or may not happen

func (e ender) choices() int {
	if e.ended {
		return 0
	}
	return 1
}

func (e ender) step(int)    { e.ended = true }
func (e ender) key() string { return "" }

// cast are the actors of a search.
type cast struct{ completers, cancelers, waiters, bare, followers, enders int }

func (c cast) meet() *meeting {
	m := &meeting{p: new(Promise[int]), names: map[any]string{}}
	for i := range c.completers {
		m.actors = append(m.actors, &completer{meeting: m, name: fmt.Sprint("completer", i), value: 1 << i})
	}
	for i := range c.cancelers {
		m.actors = append(m.actors, &completer{meeting: m, name: fmt.Sprint("canceler", i), err: ErrCanceled})
	}
	for i := range c.waiters {
		m.actors = append(m.actors, &waiter{meeting: m, name: fmt.Sprint("waiter", i)})
	}
	for i := range c.bare {
		m.actors = append(m.actors, &waiter{meeting: m, name: fmt.Sprint("bare", i), bare: true})
	}
	for i := range c.followers {
		f := &follower{meeting: m, name: fmt.Sprint("follower", i)}
		f.link = &observer{party: f}
		m.names[f.link] = f.name
		m.actors = append(m.actors, f)
	}
	for range c.enders {
		m.actors = append(m.actors, ender{m})
	}
	return m
}

// play repeats a history: which actor steps, and which way.
func (c cast) play(history []int) *meeting {
	m := c.meet()
	for _, move := range history {
		m.actors[move/2].step(move % 2)
	}
	return m
}

// verdict returns the defect at the end of a history.
func (m *meeting) verdict(c cast) string {
	for _, a := range m.actors {
		if !a.through() {
			return "a wake-up was lost"
		}
	}
	if len(m.winners) != 1 {
		return "not one winner"
	}
	want := fmt.Sprint(m.p.val, m.p.core.err)
	for _, answer := range m.answers {
		if answer != want && (answer != "ended" || !m.ended) {
			return "an answer that nobody gave: " + answer
		}
	}
	if len(m.answers) != c.waiters+c.bare+c.followers {
		return "not one answer each"
	}
	if canceled := strings.HasPrefix(m.winners[0], "canceler"); canceled != (m.told == 1) || m.told > 1 {
		return "the producer was not told once"
	}
	if m.kept+m.p.val != 1<<c.completers-1 {
		return "a value was lost"
	}
	return ""
}

// search visits every state that any order of steps reaches.
func (c cast) search(t *testing.T) (states, ends int) {
	t.Helper()
	known := map[string]bool{}
	var visit func(history []int)
	visit = func(history []int) {
		m := c.play(history)
		key := m.key()
		if known[key] {
			return
		}
		known[key] = true
		isEnd := true
		for i, a := range m.actors {
			for choice := range a.choices() {
				if _, optional := a.(ender); !optional {
					isEnd = false
				}
				next := append(history[:len(history):len(history)], 2*i+choice)
				visit(next)
			}
		}
		if isEnd {
			ends++
			require.Empty(t, m.verdict(c), "after %v: %s", history, key)
		}
	}
	visit(nil)
	return len(known), ends
}

// Properties 1 to 4, in every order in which the atomic operations of several goroutines can
// happen.
func TestEveryInterleaving(t *testing.T) {
	for _, c := range []cast{
		{completers: 2, waiters: 1},
		{completers: 1, cancelers: 1, waiters: 2, enders: 1},
		{completers: 1, waiters: 2, bare: 1},
		{completers: 1, cancelers: 1, bare: 2},
		{completers: 1, cancelers: 1, followers: 2, waiters: 1},
		{completers: 2, cancelers: 1, followers: 1, waiters: 1, enders: 1},
		{cancelers: 2, followers: 3},
	} {
		states, ends := c.search(t)
		assert.Greater(t, states, 100)
		assert.Positive(t, ends)
		t.Logf("%+v: %d states, %d ends", c, states, ends)
	}
}
