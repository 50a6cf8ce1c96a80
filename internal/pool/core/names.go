package core

import (
	"github.com/go-vram/vram/internal/pages"
	"github.com/go-vram/vram/internal/pool/memory"
)

// Client names a stream to the pool. Zero names none.
type Client = memory.Client

// Fence is a point in a client's order. Fences of a client ascend; when one has passed, so have all before it. Zero has always
// passed.
type Fence = memory.Fence

// Run is a sequence of adjacent pages.
type Run = pages.Run
