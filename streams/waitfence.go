package streams

import "github.com/go-vram/vram/actors"

// A claim that would be refused for want of memory is delayed while any stream has memory that waits for uses on others. Every
// fence that keeps such memory is watched by a goroutine of its own, so that one that never passes keeps nobody from memory behind
// another; the first that passes has all delayed claims served once more. A stream that is excluded from waits is not waited for.

// watchFences has all fences watched that keep memory of any stream. It reports whether there are any.
func (p *Peers) watchFences(host actors.Host) (watched bool) {
	for _, s := range p.list() {
		watched = p.watch(s, host) || watched
	}
	return watched
}

// watch is the same of one stream.
func (p *Peers) watch(s *peer, host actors.Host) (watched bool) {
	if !s.waits.Load() {
		return false
	}
	pendingFences, err := s.turn.pendingFences()
	if err != nil {
		return false
	}
	for _, f := range pendingFences {
		if f.line.Excluded.Load() {
			continue
		}
		watched = true
		if s.watchBegins(f.line) {
			actors.Go(host, "", func() { p.awaitFence(s, f, host) })
		}
	}
	return watched
}

// awaitFence waits for a fence that keeps memory of a stream, lets that come home, and has the claims of all streams tried that
// wait for any fence. A wait that failed is reported once no other is left.
func (p *Peers) awaitFence(s *peer, f fencing, host actors.Host) {
	passed := f.wait(host)
	s.watchEnds(f.line)
	s.turn.fencePassed()
	if !passed && p.watching() {
		return
	}
	for _, other := range p.list() {
		other.turn.retryDelayed(passed)
	}
}
