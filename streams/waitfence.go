package streams

import "github.com/go-vram/vram/actors"

// A claim that would be refused for lack of memory is delayed while any stream has pending memory.
// A goroutine of its own watches each fence of such memory, so that a fence that never passes
// delays no claim that another fence could serve; the first that passes has all delayed claims
// served again. Streams that are excluded from waits are not waited for.

// watchFences watches all fences of pending memory of any stream. It reports whether there are any.
func (p *Peers) watchFences(host actors.Host) (watched bool) {
	for _, s := range p.list() {
		watched = p.watch(s, host) || watched
	}
	return watched
}

// watch is watchFences for one stream.
func (p *Peers) watch(s *peer, host actors.Host) (watched bool) {
	if !s.waits.Load() {
		return false
	}
	pendingFences, err := s.entry.pendingFences()
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

// awaitFence waits for a fence, makes the stream free its pending memory, and has all streams serve their delayed
// claims again, also where the driver ends the goroutine. A wait that failed is reported only when no other wait is left.
func (p *Peers) awaitFence(s *peer, f fencing, host actors.Host) {
	passed := false
	guardTo(f.line.Panics, func(error) {
		s.watchEnds(f.line)
		s.entry.fencePassed()
		if !passed && p.watching() {
			return
		}
		for _, other := range p.list() {
			other.entry.retryDelayed(passed)
		}
	}, func() error {
		passed = f.wait(host)
		return nil
	})
}
