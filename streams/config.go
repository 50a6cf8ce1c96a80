package streams

import (
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// Config configures a stream.
type Config struct {
	ID      uint32 // never used twice on one pool
	Pool    *pool.Pool
	Device  cudadrv.Device
	Fences  *fence.Events
	Handle  cudadrv.Stream
	Adopted bool // the CUDA stream is the caller's: Close does not destroy it
	Limit   *atomic.Int64
	// LimitSource says where the limit is written; nil: nowhere. It must return immediately.
	LimitSource func() string
	Budget      core.Budget
	Host        actors.Host // nil: the Go scheduler
	Exact       bool        // as in core.Config
	Live        *core.Gauge // likewise
	// AgeTicks is as in core.Settings.
	AgeTicks int
	// Debug checks the books at every tick. Books that do not balance quarantine the stream.
	Debug bool
	// Share is the sampled share of the allocations, as in core.Settings.
	Share magazine.Share
	// Observers get the sampled buffers; nil: none.
	Observers *Observers
	// Profile counts its own share of the sampled buffers by place; nil: none.
	Profile *Profile
	// Helpers are left out of places; nil: none are.
	Helpers *site.Helpers
	// Handler is called with a request that the pool refuses for lack of memory; if it returns true
	// the request is served again. It may be nil.
	Handler func(*pool.OutOfMemoryError) (retry bool)
	// Complete adds facts to a request that the driver refuses, before Handler or the caller gets it. It is called outside every
	// turn. Nil: there are none.
	Complete func(*pool.OutOfMemoryError)
	// Handles reports whether Handler has anything to do at present; nil: always.
	Handles func() bool
	Peers   *Peers // of the device; nil: the stream has none
	// Panics gets every panic that the stream recovers from; nil: only the process-wide log does.
	Panics *recovered.Log
	// Sibling makes another stream of the device. Nil: the stream has no Hold.
	Sibling func() (*Stream, error)
	// LongWait is called for each request that has waited for a second, outside every turn. It must
	// return immediately. It may be nil.
	LongWait func(LongWait)
}
