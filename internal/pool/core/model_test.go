package core

import (
	"testing"

	"pgregory.net/rapid"
)

// drawn chooses by rapid, so that a failure is made small. Rapid prefers small numbers, and a world of
// first choices is a dull one: each draw is turned by a pseudo-random number, which evens them out.
type drawn struct {
	t    *rapid.T
	seed uint64
	left int // steps
}

func newDrawn(t *rapid.T) *drawn {
	d := &drawn{t: t, seed: rapid.Uint64().Draw(t, "seed")}
	d.left = 20 + d.pick(400)
	return d
}

func (d *drawn) pick(n int) int {
	d.seed += 0x9e3779b97f4a7c15
	z := (d.seed ^ d.seed>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return (rapid.IntRange(0, n-1).Draw(d.t, "") + int(z>>33)) % n
}

func (d *drawn) more() bool {
	d.left--
	return d.left >= 0
}

// run lives a world to its end.
func run(t failer, ch chooser) {
	w := randomWorld(t, ch)
	for ch.more() {
		w.act(ch)
	}
	w.quiet(ch)
	w.finale(ch)
}

// TestCoreAgreesWithOnePageOneOwner performs arbitrary actions in any order and compares every effect with the dumb driver and
// the owners of single pages: see world.
func TestCoreAgreesWithOnePageOneOwner(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) { run(t, newDrawn(t)) })
}

// bytesOf chooses by the bytes of a fuzz input; past its end everything is the first choice.
type bytesOf struct{ data *[]byte }

func (b bytesOf) pick(n int) int {
	if len(*b.data) == 0 {
		return 0
	}
	c := int((*b.data)[0])
	*b.data = (*b.data)[1:]
	return c % n
}

func (b bytesOf) more() bool { return len(*b.data) > 0 }

// FuzzCore lives the world that the input describes.
func FuzzCore(f *testing.F) {
	for seed := range uint64(24) { // long worlds of every kind
		data := make([]byte, 600+100*seed)
		x := seed*0x9e3779b97f4a7c15 + 1
		for i := range data {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			data[i] = byte(x >> 24)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 1<<14 {
			run(t, bytesOf{&data})
		}
	})
}
