package streams

import (
	"fmt"
	"weak"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/stream/core"
)

// Open makes the cache of a stream and starts its actor. It makes no driver call. Callers get the
// Stream, the stream's device keeps the Control.
func Open(cfg Config) (*Stream, *Control, error) {
	s := &Stream{closed: make(chan struct{}), sibling: cfg.Sibling}
	s.tail = &Tail{stream: weak.Make(s)}
	t := &s.turn
	s.init(&cfg, (*poolClient)(t), (*peerClient)(t))
	t.init(&s.wiring, &cfg)
	s.cache.Extend((*beyondCache)(s))
	s.sampler.init(&s.cache.Home, cfg.ID, cfg.Handle, cfg.Observers, cfg.Profile)
	if cfg.Host != nil {
		t.state.hook = func(p point) { cfg.Host.Reach(p.String()) }
		s.cache.SetReach(cfg.Host.Reach)
	}
	t.state.core = core.New(core.Config{
		Base: cfg.Pool.Base(), PageBytes: cfg.Pool.PageBytes(), Places: cfg.Pool.Places(), Budget: cfg.Budget,
		Exact: cfg.Exact, AgeTicks: cfg.AgeTicks, Share: cfg.Share, Live: cfg.Live, Cover: cfg.Adopted, Lines: &s.peers.lines, Allowance: &s.peers.slack, Limit: cfg.Limit,
	}, &s.cache, (*waker)(s))
	s.parts = t.state.core.Parts()
	ref, err := actors.Spawn(cfg.Host, cfg.Panics, fmt.Sprintf("vram-stream-%d", cfg.ID), (*behavior)(t))
	if err != nil {
		return nil, nil, fmt.Errorf("streams: %w", err)
	}
	s.ref = ref
	s.peers.join(&s.peer)
	s.pool.Join(s.peer.reporter)
	return s, &Control{Stream: s}, nil
}
