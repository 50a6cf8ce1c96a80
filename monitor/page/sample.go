package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/go-vram/vram"
)

// Sample is the figures of all devices at one time.
type Sample struct {
	Number          uint64    `json:"number"` // rises by 1 with each sample of a page
	Time            time.Time `json:"time"`
	IntervalSeconds float64   `json:"intervalSeconds"`
	Devices         []Device  `json:"devices"`
}

// Device has the figures of a device. A closed one keeps its last figures before Close.
type Device struct {
	Index         int     `json:"index"`
	State         string  `json:"state"` // "unused", "in use" or "closed"
	Name          string  `json:"name"`
	Driver        string  `json:"driver"`
	TotalBytes    int64   `json:"totalBytes"` // physical memory; 0 before the first use
	Figures       Figures `json:"figures"`
	HitRate       float64 `json:"hitRate"`
	Fragmentation float64 `json:"fragmentation"`
	Efficiency    float64 `json:"efficiency"`

	PeakLiveBytes     int64 `json:"peakLiveBytes"`
	PeakReservedBytes int64 `json:"peakReservedBytes"`
	LargestFreeBytes  int64 `json:"largestFreeBytes"`
	UnpassedBytes     int64 `json:"unpassedBytes"`

	Pressure      string  `json:"pressure"`
	PressureRises uint64  `json:"pressureRises"`
	Panics        uint64  `json:"panics"`
	DriverCalls   uint64  `json:"driverCalls"`
	DriverSeconds float64 `json:"driverSeconds"`

	WaitCount          uint64  `json:"waitCount"`
	LongestWaitSeconds float64 `json:"longestWaitSeconds"`
	Waiters            Waiters `json:"waiters"`

	RetryCount   uint64 `json:"retryCount"`   // see pool.RequestCounts
	BadFreeCount uint64 `json:"badFreeCount"` // likewise

	Streams []Stream `json:"streams"`
	Tenants []Tenant `json:"tenants"`

	ProcessesKnown bool      `json:"processesKnown"` // false: the device lists none
	ProcessCount   int       `json:"processCount"`   // of all: Processes has the first of them
	Processes      []Process `json:"processes"`      // on the GPU, the most bytes first
}

// Figures has the part of each sample that the history keeps. The bytes by state are as in vram.Stats.
type Figures struct {
	LiveBytes       int64  `json:"liveBytes"`
	PendingBytes    int64  `json:"pendingBytes"`
	CachedBytes     int64  `json:"cachedBytes"`
	FreeBytes       int64  `json:"freeBytes"`
	SetAsideBytes   int64  `json:"setAsideBytes"`
	SleepingBytes   int64  `json:"sleepingBytes"`
	SharedBytes     int64  `json:"sharedBytes"` // of package cuda/share; ReservedBytes has them
	ReservedBytes   int64  `json:"reservedBytes"`
	LimitBytes      int64  `json:"limitBytes"`
	Waiting         int    `json:"waiting"`
	WaitDemandBytes int64  `json:"waitDemandBytes"`
	AllocCount      uint64 `json:"allocCount"`
	FreeCount       uint64 `json:"freeCount"`
	MagazineHits    uint64 `json:"magazineHits"`
	StreamHits      uint64 `json:"streamHits"`
	PoolHits        uint64 `json:"poolHits"`
	DriverMisses    uint64 `json:"driverMisses"`

	OutOfMemoryCount uint64 `json:"outOfMemoryCount"` // requests that ended with a *vram.OutOfMemoryError
	DeadlockCount    uint64 `json:"deadlockCount"`    // with a *vram.DeadlockError
	EndedWaitCount   uint64 `json:"endedWaitCount"`   // with a *vram.WaitError: their context ended first
	RefusedCount     uint64 `json:"refusedCount"`     // before memory was searched: see pool.RequestCounts
}

// Stream is the figures of a stream.
type Stream struct {
	Stream           uint32  `json:"stream"`
	LiveBytes        int64   `json:"liveBytes"`
	PendingBytes     int64   `json:"pendingBytes"`
	CachedBytes      int64   `json:"cachedBytes"`
	HeldBytes        int64   `json:"heldBytes"`
	PeakLiveBytes    int64   `json:"peakLiveBytes"`
	LargestFreeBytes int64   `json:"largestFreeBytes"`
	LiveCount        uint64  `json:"liveCount"`
	AllocCount       uint64  `json:"allocCount"`
	FreeCount        uint64  `json:"freeCount"`
	HitRate          float64 `json:"hitRate"` // from the stream's own memory
	Fragmentation    float64 `json:"fragmentation"`
	Waiting          int     `json:"waiting"`
}

// Tenant is the figures of a tenant.
type Tenant struct {
	Name         string `json:"name"`
	HeldBytes    int64  `json:"heldBytes"`
	ChargedBytes int64  `json:"chargedBytes"`
	LimitBytes   int64  `json:"limitBytes"` // 0: none
	ShareBytes   int64  `json:"shareBytes"` // 0: none
	// WaitingForQuota are its requests that wait for its own frees, and WaitingForMemory those that wait for memory.
	WaitingForQuota  int `json:"waitingForQuota"`
	WaitingForMemory int `json:"waitingForMemory"`
}

// Read reads the figures of a device. It waits as vram.Device.Stats does, and a quarter of a second at most for the list of processes. It
// is no use of the device.
func Read(dev *vram.Device, index int) Device {
	out := Device{Index: index, State: dev.State().String(), Streams: []Stream{}, Tenants: []Tenant{}, Waiters: waitersOf(&vram.Waiters{}), Processes: []Process{}}
	if dev.State() == vram.DeviceInUse { // else Info would be a use, or an error
		info := dev.Info()
		out.Name, out.Driver, out.TotalBytes = info.Name, info.Driver, info.TotalBytes
		out.readProcesses(dev)
	}
	s := dev.Stats()
	out.show(&s)
	if requestsWait(&s) {
		out.readWaiters(dev)
	}
	return out
}

// show takes the figures over.
func (d *Device) show(s *vram.Stats) {
	d.Figures = Figures{
		LiveBytes: s.LiveBytes, PendingBytes: s.PendingBytes, CachedBytes: s.CachedBytes, FreeBytes: s.FreeBytes,
		SetAsideBytes: s.SetAsideBytes, SleepingBytes: s.SleepingBytes, SharedBytes: s.SharedBytes, ReservedBytes: s.ReservedBytes, LimitBytes: s.LimitBytes,
		Waiting: s.Waits.Waiting, WaitDemandBytes: s.Waits.DemandBytes, AllocCount: s.AllocCount, FreeCount: s.FreeCount,
		MagazineHits: s.MagazineHits, StreamHits: s.StreamHits, PoolHits: s.PoolHits, DriverMisses: s.DriverMisses,
		OutOfMemoryCount: s.OutOfMemoryCount, DeadlockCount: s.Waits.Deadlocks, EndedWaitCount: s.EndedWaitCount, RefusedCount: s.RefusedCount,
	}
	d.HitRate, d.Fragmentation, d.Efficiency = s.HitRate(), s.Fragmentation(), s.Efficiency()
	d.PeakLiveBytes, d.PeakReservedBytes = s.PeakLiveBytes, s.PeakReservedBytes
	d.LargestFreeBytes, d.UnpassedBytes = s.LargestFreeBytes, s.UnpassedBytes
	d.Pressure, d.PressureRises, d.Panics = s.Pressure.String(), s.PressureRises, s.Panics
	d.DriverCalls, d.DriverSeconds = s.DriverCalls, s.DriverTime.Seconds()
	d.WaitCount, d.LongestWaitSeconds = s.Waits.Count, s.Waits.Longest.Seconds()
	d.RetryCount, d.BadFreeCount = s.RetryCount, s.BadFreeCount
	for i := range s.Streams {
		d.Streams = append(d.Streams, streamOf(&s.Streams[i]))
	}
	slices.SortFunc(d.Streams, func(a, b Stream) int { return cmp.Compare(a.Stream, b.Stream) })
	for _, t := range s.Tenants {
		d.Tenants = append(d.Tenants, Tenant{
			Name: t.Name, HeldBytes: t.HeldBytes, ChargedBytes: t.ChargedBytes, LimitBytes: t.Quota.LimitBytes, ShareBytes: t.Quota.ShareBytes,
			WaitingForQuota: t.Queued,
		})
	}
}

// requestsWait reports whether a request waits for memory, for its tenant's quota, or in its stream.
func requestsWait(s *vram.Stats) bool {
	return s.Waits.Waiting > 0 || slices.ContainsFunc(s.Tenants, func(t vram.TenantStats) bool { return t.Queued > 0 }) ||
		slices.ContainsFunc(s.Streams, func(t vram.StreamStats) bool { return t.Waiting > 0 })
}

func streamOf(s *vram.StreamStats) Stream {
	rate := 1.0
	if s.AllocCount > 0 {
		rate = float64(s.MagazineHits+s.RangeHits) / float64(s.AllocCount)
	}
	return Stream{
		Stream: s.Stream, LiveBytes: s.LiveBytes, PendingBytes: s.PendingBytes, CachedBytes: s.CachedBytes, HeldBytes: s.HeldBytes,
		PeakLiveBytes: s.PeakLiveBytes, LargestFreeBytes: s.LargestFreeBytes, LiveCount: s.LiveCount, AllocCount: s.AllocCount,
		FreeCount: s.FreeCount, HitRate: rate, Fragmentation: s.Fragmentation(), Waiting: s.Waiting,
	}
}
