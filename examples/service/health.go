package main

import (
	"net/http"

	"github.com/go-vram/vram"
)

// healthz reports whether the process serves. A quarantined part of the allocator stays so: only a new process helps.
func (sv *Service) healthz(w http.ResponseWriter, _ *http.Request) {
	if sv.broken.Load() {
		p := problemOf(vram.ErrQuarantined)
		writeJSON(w, p.status, p)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// readyz reports whether the service accepts requests.
func (sv *Service) readyz(w http.ResponseWriter, _ *http.Request) {
	if sv.stopping.Load() {
		p := problemOf(errStopping)
		writeJSON(w, p.status, p)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

// report is the answer to GET /stats.
type report struct {
	Device   deviceReport   `json:"device"`
	Requests requestReport  `json:"requests"`
	Memory   memoryReport   `json:"memory"`
	Streams  []streamReport `json:"streams"`
}

type deviceReport struct {
	Driver string `json:"driver"`
	Name   string `json:"name"`
}

type requestReport struct {
	Running  int64  `json:"running"`
	Waiting  int64  `json:"waiting"`
	Answered uint64 `json:"answered"`
	Refused  uint64 `json:"refused"`
}

type memoryReport struct {
	LiveBytes         int64   `json:"live_bytes"`
	CachedBytes       int64   `json:"cached_bytes"`
	FreeBytes         int64   `json:"free_bytes"`
	ReservedBytes     int64   `json:"reserved_bytes"`
	LimitBytes        int64   `json:"limit_bytes"`
	PeakReservedBytes int64   `json:"peak_reserved_bytes"`
	HitRate           float64 `json:"hit_rate"`
	Fragmentation     float64 `json:"fragmentation"`
	DriverCalls       uint64  `json:"driver_calls"`
	DriverSeconds     float64 `json:"driver_time_seconds"`
}

type streamReport struct {
	Stream      uint32 `json:"stream"`
	LiveBytes   int64  `json:"live_bytes"`
	CachedBytes int64  `json:"cached_bytes"`
	AllocCount  uint64 `json:"alloc_count"`
	FreeCount   uint64 `json:"free_count"`
}

// stats is the handler of GET /stats. Reading the books stops no request.
func (sv *Service) stats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, sv.report())
}

func (sv *Service) report() report {
	s, info := sv.device.Stats(), sv.device.Info()
	r := report{
		Device: deviceReport{info.Driver, info.Name},
		Requests: requestReport{
			Running: sv.running.Load(), Waiting: sv.waiting.Load(),
			Answered: sv.answered.Load(), Refused: sv.refused.Load(),
		},
		Memory: memoryReport{
			LiveBytes: s.LiveBytes, CachedBytes: s.CachedBytes, FreeBytes: s.FreeBytes,
			ReservedBytes: s.ReservedBytes, LimitBytes: s.LimitBytes, PeakReservedBytes: s.PeakReservedBytes,
			HitRate: s.HitRate(), Fragmentation: s.Fragmentation(), DriverCalls: s.DriverCalls, DriverSeconds: s.DriverTime.Seconds(),
		},
	}
	for _, n := range s.Streams {
		r.Streams = append(r.Streams, streamReport{n.Stream, n.LiveBytes, n.CachedBytes, n.AllocCount, n.FreeCount})
	}
	return r
}
