package streams

import (
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
)

// Config is what a stream is opened with.
type Config struct {
	ID      uint32 // never used twice on one pool
	Pool    *pool.Pool
	Device  cudadrv.Device
	Fences  fence.Source
	Handle  cudadrv.Stream
	Adopted bool // the handle is the caller's: Close does not destroy it
	Limit   *atomic.Int64
	Budget  core.Budget
	Host    actors.Host // nil: the Go scheduler
	Exact   bool        // as in core.Config
	Live    *core.Gauge // likewise
	// Debug holds the books against themselves at every tick. Books that do not balance quarantine the stream.
	Debug bool
	// Watched has the stream keep the places of allocations and frees, and tell the Observer of them.
	Watched  bool
	Observer Observer
	// Handler is asked about a request that the pool refuses for want of memory; true has it served once more. Nil: nobody is.
	Handler func(*pool.OutOfMemoryError) (retry bool)
	Peers   *Peers // of the device; nil: the stream has none
	// Panics is told of every panic that the stream recovers from; nil: only the process is.
	Panics *recovered.Log
	// LongWait is told of each request that has waited for a second, outside every turn. It returns at once. Nil: nobody is.
	LongWait func(LongWait)
}

// Open makes the cache of a stream and starts its actor. It makes no driver call. The Stream is for callers, the Control for the
// device that the stream belongs to.
func Open(cfg Config) (*Stream, *Control, error) {
	s := &Stream{closed: make(chan struct{})}
	t := &s.turn
	s.wire(&cfg)
	t.wiring, t.debug, t.longWait = &s.wiring, cfg.Debug, cfg.LongWait
	s.cache.Extend((*beyondCache)(s))
	cache := &s.cache
	if cfg.Watched {
		cache = new(magazine.Cache) // the turn's: callers find theirs empty
		s.witness = &witness{cfg.ID, cfg.Handle, cfg.Observer}
		cache.SetWatcher((*freedWatcher)(s.witness))
	}
	if cfg.Host != nil {
		t.hook = func(p point) { cfg.Host.Reach(p.String()) }
	}
	t.core = core.New(core.Config{
		Base: cfg.Pool.Base(), PageBytes: cfg.Pool.PageBytes(), Places: cfg.Pool.Places(), Budget: cfg.Budget,
		Exact: cfg.Exact, Live: cfg.Live, Cover: cfg.Adopted, Lines: &s.peers.lines, Allowance: &s.peers.slack, Limit: cfg.Limit,
	}, cache, (*waker)(s))
	ref, err := actors.SpawnOn(cfg.Host, cfg.Panics, fmt.Sprintf("vram-stream-%d", cfg.ID), (*behavior)(t))
	if err != nil {
		return nil, nil, fmt.Errorf("streams: %w", err)
	}
	s.ref = ref
	s.peers.join(&s.peer)
	s.pool.Join(s.id, s.client)
	return s, &Control{Stream: s}, nil
}

// wire sets what all parts of the stream use.
func (s *Stream) wire(cfg *Config) {
	s.id, s.pool, s.limit, s.host = poolcore.Client(cfg.ID), cfg.Pool, cfg.Limit, cfg.Host
	s.panics, s.handler, s.peers = cfg.Panics, cfg.Handler, cfg.Peers
	if s.peers == nil {
		s.peers = new(Peers)
	}
	s.handle.init(cfg)
	s.suspensions.id, s.suspensions.pool = s.id, s.pool
	s.peer.id, s.peer.line, s.peer.turn = cfg.ID, s.handle.line, (*peerClient)(&s.turn)
	s.client = (*poolClient)(&s.turn)
}
