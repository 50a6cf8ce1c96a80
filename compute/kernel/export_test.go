package kernel

import (
	"time"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
)

// WithClock has measurements take times from a function, and not from the device.
func WithClock(times func(plan.Schedule) time.Duration) Option {
	return func(c *Compiler) { c.tuner.clock = times }
}

// AwaitTuning waits until no measurement is queued or running.
func (c *Compiler) AwaitTuning() {
	c.tuner.mu.Lock()
	defer c.tuner.mu.Unlock()
	for c.tuner.stop != nil {
		c.tuner.idle.Wait()
	}
}

// AwaitClosing waits until Close ends measurements.
func (c *Compiler) AwaitClosing() {
	for {
		c.tuner.mu.Lock()
		closing := c.tuner.closing
		c.tuner.mu.Unlock()
		if closing {
			return
		}
		c.mu.Lock()   // Close has it on its way
		c.mu.Unlock() //nolint:staticcheck // a yield
	}
}

// Workers is how many goroutines compile.
func (c *Compiler) Workers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working
}

// Same compares an output's buffer with the reference's: bytes from begin to end are the output's.
func Same(of tensor.Type, want, got []byte, begin, end int, exact bool) error {
	return operand{of: of, begin: begin, end: end}.same(want, got, exact)
}

// TicketSlots is how many launches in captures one stock of tickets has enough for.
const TicketSlots = graphTickets / ticketsApart
