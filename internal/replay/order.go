package replay

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// virtualTime is what a lag needs of the simulated device.
type virtualTime interface {
	// AdvanceTo moves the clock forward to t since its start; not at all where it is there already.
	AdvanceTo(t time.Duration)
	Now() time.Duration
	// Occupy queues work on the stream that lasts d.
	Occupy(s cudadrv.Stream, d time.Duration) error
}
