package replay

import (
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// ErrPeakNeedsOneGoroutine says that Options.ExplainPeak was set together with Options.Parallel.
var ErrPeakNeedsOneGoroutine = errors.New("replay: the peak is explained for one goroutine only")

// Peak is where the memory was when most was held from the driver, read after the step that brought it there. The
// parts after LiveBytes add up to ReservedBytes.
type Peak struct {
	Round         int   `json:"round"` // from 1
	Event         int   `json:"event"`
	ReservedBytes int64 `json:"reserved_bytes"`
	LiveBytes     int64 `json:"live_bytes"`     // asked for by buffers that were live then
	RoundingBytes int64 `json:"rounding_bytes"` // what their blocks are longer
	SpanBytes     int64 `json:"span_bytes"`     // free slots of small sizes
	MagazineBytes int64 `json:"magazine_bytes"` // free slots of large ones
	PageBytes     int64 `json:"page_bytes"`     // whole pages in streams' free ranges
	PieceBytes    int64 `json:"piece_bytes"`    // shorter pieces in streams' free ranges
	PendingBytes  int64 `json:"pending_bytes"`  // freed, but other streams or the device have not finished with it
	FreeBytes     int64 `json:"free_bytes"`     // in the pool, else
	OtherBytes    int64 `json:"other_bytes"`    // in the middle of a driver job, or given up
}

// summit notes when more is held from the driver than ever before. What is held changes on any goroutine; the rest is
// the player's.
type summit struct {
	heldBytes, highestBytes atomic.Int64

	seenBytes, liveBytes int64
	peak                 *Peak
}

func (m *summit) hold(bytes int64) {
	held := m.heldBytes.Add(bytes)
	for most := m.highestBytes.Load(); held > most && !m.highestBytes.CompareAndSwap(most, held); most = m.highestBytes.Load() {
	}
}

// look follows what is live, and reads the statistics where more is held than ever.
func (m *summit) look(se *session, round, event int, s *step) {
	if event == 0 {
		m.liveBytes = 0 // leftovers of the round before were freed
	}
	switch {
	case se.missing[s.id]:
	case s.kind == stepAlloc || s.kind == stepAllocShared:
		m.liveBytes += s.bytes
	default:
		m.liveBytes -= s.bytes
	}
	if highest := m.highestBytes.Load(); highest > m.seenBytes {
		m.seenBytes = highest
		m.peak = explain(se.device.Stats(), m.liveBytes)
		m.peak.Round, m.peak.Event = round+1, event
	}
}

// explain sorts what is held by why.
func explain(s vram.Stats, liveBytes int64) *Peak {
	p := &Peak{
		ReservedBytes: s.ReservedBytes, LiveBytes: liveBytes, RoundingBytes: s.LiveBytes - liveBytes,
		PendingBytes: s.PendingBytes + s.UnpassedBytes, FreeBytes: s.FreeBytes - s.UnpassedBytes,
		OtherBytes: s.ReservedBytes - s.LiveBytes - s.PendingBytes - s.CachedBytes - s.FreeBytes,
	}
	for _, stream := range s.Streams {
		p.SpanBytes += stream.SpanBytes
		p.MagazineBytes += stream.MagazineBytes
		p.PageBytes += stream.PageBytes
		p.PieceBytes += stream.RangeBytes - stream.PageBytes
	}
	return p
}

// found is the peak; nil where it was not looked for.
func (m *summit) found() *Peak {
	if m == nil {
		return nil
	}
	return m.peak
}

// summitDriver sees what is taken from the driver and given back.
type summitDriver struct {
	cudadrv.Driver
	summit *summit
}

// Open gives the device that is watched.
func (d *summitDriver) Open(ordinal int) (cudadrv.Device, error) {
	device, err := d.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	watched := &summitDevice{
		Device: device, summit: d.summit, handles: map[cudadrv.Handle]int64{}, segments: map[cudadrv.Ptr]int64{},
	}
	if m, ok := device.(cudadrv.Modelled); ok {
		return &modelledSummit{watched, m}, nil
	}
	return watched, nil
}

// modelledSummit is a summitDevice whose calls cost modelled time.
type modelledSummit struct {
	*summitDevice
	cudadrv.Modelled
}

// summitDevice is used by one goroutine at a time where it changes what is held: the pool's.
type summitDevice struct {
	cudadrv.Device
	summit   *summit
	handles  map[cudadrv.Handle]int64 // bytes
	segments map[cudadrv.Ptr]int64    // bytes
}

// MemCreate notes what is made.
func (d *summitDevice) MemCreate(bytes int64) (cudadrv.Handle, error) {
	h, err := d.Device.MemCreate(bytes)
	if err == nil {
		d.handles[h] = bytes
		d.summit.hold(bytes)
	}
	return h, err
}

// MemRelease notes what goes back.
func (d *summitDevice) MemRelease(h cudadrv.Handle) error {
	err := d.Device.MemRelease(h)
	if err == nil {
		d.summit.hold(-d.handles[h])
		delete(d.handles, h)
	}
	return err
}

// MemAlloc notes what is taken.
func (d *summitDevice) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	p, err := d.Device.MemAlloc(bytes)
	if err == nil {
		d.segments[p] = bytes
		d.summit.hold(bytes)
	}
	return p, err
}

// MemFree notes what goes back.
func (d *summitDevice) MemFree(p cudadrv.Ptr) error {
	err := d.Device.MemFree(p)
	if err == nil {
		d.summit.hold(-d.segments[p])
		delete(d.segments, p)
	}
	return err
}
