package streams

import (
	"fmt"
	"weak"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
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
	s.sampler.init(&s.cache.Home, cfg.ID, cfg.Handle, cfg.Observers, cfg.Profile, cfg.Helpers)
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
	s.pool.Join(s.peer.reporter, cfg.Adopted)
	return s, &Control{Stream: s}, nil
}

// init sets the fields from a configuration.
func (h *cudaStream) init(cfg *Config) {
	h.id, h.stream, h.adopted, h.device, h.fences, h.panics = cfg.ID, cfg.Handle, cfg.Adopted, cfg.Device, cfg.Fences, cfg.Panics
	if q, ok := cfg.Device.(cudadrv.CaptureQueries); ok && cfg.Device.Info().Capabilities.Has(cudadrv.CaptureInformation) {
		h.captures = q
	}
	h.line = fence.NewTimeline(cfg.Fences, cfg.Handle, cfg.Adopted, (*recording)(h))
	h.line.Panics = cfg.Panics
}

// init sets the fields from a configuration.
func (w *wiring) init(cfg *Config, client pool.Client, entry peerTurn) {
	w.id, w.pool, w.limit, w.host = poolcore.Client(cfg.ID), cfg.Pool, cfg.Limit, cfg.Host
	w.panics, w.handler, w.handles, w.peers = cfg.Panics, cfg.Handler, cfg.Handles, cfg.Peers
	w.complete, w.limitSource = cfg.Complete, cfg.LimitSource
	if w.peers == nil {
		w.peers = new(Peers)
	}
	w.cuda.init(cfg)
	w.cuda.deviceClosed = &w.peers.ended
	w.tally.Init(w.pool.Tally())
	w.suspensions.id, w.suspensions.pool, w.suspensions.peers = w.id, w.pool, w.peers
	w.peer.id, w.peer.line, w.peer.entry = cfg.ID, w.cuda.line, entry
	if w.peers.recordsLaunches {
		w.peer.launches = new(launches)
	}
	w.client = client
	w.peer.reporter = w.pool.NewReporter(w.id, client)
}

// init connects the parts.
func (t *turn) init(w *wiring, cfg *Config) {
	t.wiring, t.debug = w, cfg.Debug
	t.state.wiring = w
	t.lent = lentMemory{wiring: w, state: &t.state}
	t.searches = searches{wiring: w, state: &t.state, lent: &t.lent}
	t.dispatch = dispatcher{wiring: w, state: &t.state, lent: &t.lent, searches: &t.searches, longWait: cfg.LongWait}
	t.reclaims = reclaims{state: &t.state, lent: &t.lent, dispatch: &t.dispatch}
	t.ending = ending{wiring: w, state: &t.state, lent: &t.lent, dispatch: &t.dispatch, reclaims: &t.reclaims}
}
