package page

import (
	"net/http"
	"time"

	"github.com/go-vram/vram"
)

// Page is the live page of some devices. It implements http.Handler; any number of goroutines may use it.
type Page struct {
	devices []*vram.Device
	options Options
	sampler *sampler
	maps    []*latest[Map] // of each device
	calls   []*latest[Calls]
}

// Handler returns the page of some devices, in the order in which they are shown, with the default options.
func Handler(devices ...*vram.Device) http.Handler { return New(Options{}, devices...) }

// New makes the page of some devices. Nothing is read before somebody looks. The page does not close them.
func New(o Options, devices ...*vram.Device) *Page {
	p := &Page{devices: append([]*vram.Device(nil), devices...), options: o.complete()}
	p.sampler = newSampler(p.options.Interval, p.options.HistoryCount, p.sample)
	for range devices {
		p.maps = append(p.maps, newLatest[Map](p.options.Interval))
		p.calls = append(p.calls, newLatest[Calls](p.options.Interval))
	}
	return p
}

// sample reads all devices.
func (p *Page) sample() Sample {
	s := Sample{Time: time.Now(), IntervalSeconds: p.options.Interval.Seconds(), Devices: []Device{}}
	for i, dev := range p.devices {
		s.Devices = append(s.Devices, Read(dev, i))
	}
	return s
}

// Close ends the sampler and the event streams of all viewers. It waits for the sample that is being taken for them, and not for
// requests that read the devices: http.Server.Shutdown does. Later requests get an error.
func (p *Page) Close() {
	if p != nil && p.sampler != nil {
		p.sampler.close()
	}
}
