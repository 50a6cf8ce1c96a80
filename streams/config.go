package streams

import (
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams/core"
)

// Config is what a stream is opened with.
type Config struct {
	ID      uint32 // never used twice on one pool
	Pool    *pool.Pool
	Device  cudadrv.Device
	Fences  *fence.Events
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
