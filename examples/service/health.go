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
	Tenants  []tenantReport `json:"tenants"`
}

type deviceReport struct {
	Driver string `json:"driver"`
	Name   string `json:"name"`
	Asleep bool   `json:"asleep"` // the weights
}

type requestReport struct {
	Running  int64  `json:"running"` // that have memory
	Waiting  int64  `json:"waiting"` // for memory
	Queued   int64  `json:"queued"`  // prefilled, for a place in a step
	Active   int64  `json:"active"`  // in the last step
	Answered uint64 `json:"answered"`
	Refused  uint64 `json:"refused"`
}

type memoryReport struct {
	CacheBytes        int64   `json:"cache_bytes"` // that all requests together may have
	LiveBytes         int64   `json:"live_bytes"`
	SleepingBytes     int64   `json:"sleeping_bytes"`
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

type tenantReport struct {
	Tenant     string `json:"tenant"`
	HeldBytes  int64  `json:"held_bytes"`
	ShareBytes int64  `json:"share_bytes"`
	Tokens     uint64 `json:"tokens"`
}

// stats is the handler of GET /stats. Reading the books stops no request.
func (sv *Service) stats(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, sv.report())
}

func (sv *Service) report() report {
	s, info := sv.device.Stats(), sv.device.Info()
	r := report{
		Device: deviceReport{info.Driver, info.Name, sv.sleeper.asleep.Load()},
		Requests: requestReport{
			Running: sv.running.Load(), Waiting: sv.waiting.Load(), Queued: sv.engine.queued.Load(), Active: sv.engine.active.Load(),
			Answered: sv.answered.Load(), Refused: sv.refused.Load(),
		},
		Memory: memoryReport{
			CacheBytes: sv.cacheBytes, LiveBytes: s.LiveBytes, SleepingBytes: s.SleepingBytes, CachedBytes: s.CachedBytes, FreeBytes: s.FreeBytes,
			ReservedBytes: s.ReservedBytes, LimitBytes: s.LimitBytes, PeakReservedBytes: s.PeakReservedBytes,
			HitRate: s.HitRate(), Fragmentation: s.Fragmentation(), DriverCalls: s.DriverCalls, DriverSeconds: s.DriverTime.Seconds(),
		},
	}
	for _, n := range s.Tenants {
		if t := sv.tenants[n.Name]; t != nil {
			r.Tenants = append(r.Tenants, tenantReport{n.Name, n.HeldBytes, n.Quota.ShareBytes, t.tokens.Load()})
		}
	}
	return r
}
