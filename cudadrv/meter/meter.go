package meter

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/internal/intercept"
)

// Device forwards to a device and counts. Make one with New.
type Device struct {
	intercept.Device
	counter counter
}

var _ cudadrv.Device = (*Device)(nil)

// New makes the meter of dev, at zero. It makes no call.
func New(dev cudadrv.Device) *Device { return NewTranslating(dev, nil) }

// NewTranslating is New with a function that replaces the errors of calls, nil for none. It may call dev.
func NewTranslating(dev cudadrv.Device, translate func(error) error) *Device {
	d := &Device{}
	d.counter.modelled, _ = dev.(cudadrv.Modelled)
	d.counter.epoch = time.Now()
	d.Device = intercept.WithTranslation(dev, &d.counter, translate)
	return d
}

// ProgramView returns the wrapped device: calls of the program are not counted.
func (d *Device) ProgramView() cudadrv.Device { return cudadrv.ProgramView(d.Inner()) }

// CallStats are the figures of one function.
type CallStats struct {
	Func     string        `json:"func"`     // CUDA's name
	Calls    uint64        `json:"calls"`    // calls that have returned, failed ones included
	Failures uint64        `json:"failures"` // of Calls: they returned an error, or panicked
	Time     time.Duration `json:"-"`
}

// String includes the function, its calls and their time.
func (c CallStats) String() string {
	text := fmt.Sprintf("%s: %d in %v", c.Func, c.Calls, c.Time)
	if c.Failures > 0 {
		text += fmt.Sprintf(", %d failed", c.Failures)
	}
	return text
}

// MarshalJSON implements json.Marshaler: the time is in seconds.
func (c CallStats) MarshalJSON() ([]byte, error) {
	type plain CallStats
	return json.Marshal(struct {
		plain
		Time float64 `json:"time_seconds"`
	}{plain(c), c.Time.Seconds()})
}

// Calls returns the number of finished calls since New, failed ones included.
func (d *Device) Calls() uint64 {
	sum := uint64(0)
	for i := range d.counter.figures {
		sum += d.counter.figures[i].calls.Load()
	}
	return sum
}

// Time returns the sum of the calls' time since New. Wall-clock time of calls at the same time adds up.
func (d *Device) Time() time.Duration {
	sum := int64(0)
	for i := range d.counter.figures {
		sum += d.counter.figures[i].nanos.Load()
	}
	return time.Duration(sum)
}

// Modelled reports whether the time is modelled.
func (d *Device) Modelled() bool { return d.counter.modelled != nil }

// ByCall returns the figures by function, in the order of cudadrv's interface. Functions that were never
// called are absent.
//
// A device's modelled time is one sum, and a call is assigned the growth of the sum while it runs. If calls overlap, each
// nanosecond is assigned to one of them: the sum stays exact, the split need not. Calls past the meter count only if they
// overlap one of its own.
func (d *Device) ByCall() []CallStats {
	all := make([]CallStats, 0, len(d.counter.figures))
	for i := range d.counter.figures {
		f := &d.counter.figures[i]
		if calls := f.calls.Load(); calls > 0 {
			all = append(all, CallStats{
				Func: call.Call(i).String(), Calls: calls, Failures: f.failures.Load(), Time: time.Duration(f.nanos.Load()),
			})
		}
	}
	return all
}
