package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/go-vram/vram/monitor/metrics"
)

// meters are the metrics of GET /metrics.
type meters struct {
	registry *prometheus.Registry
	seconds  *prometheus.HistogramVec // of answered requests, by tenant
	waited   *prometheus.HistogramVec // for memory, by tenant
	refusals *prometheus.CounterVec   // by code
}

// The bounds of the histograms, in seconds: from a request that finds memory at once to the default timeout.
func bounds() []float64 {
	return []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30}
}

func newMeters(sv *Service) *meters {
	m := &meters{
		registry: prometheus.NewRegistry(),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "service_request_seconds", Help: "Time from a request's body to its answer, of requests that were answered.", Buckets: bounds(),
		}, []string{"tenant"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "service_memory_wait_seconds", Help: "Time that a request waited for memory.", Buckets: bounds(),
		}, []string{"tenant"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "service_refusals_total", Help: "Requests that were refused, by the code of the problem.",
		}, []string{"code"}),
	}
	m.registry.MustRegister(m.seconds, m.waited, m.refusals, newBooks(sv), metrics.New(sv.device))
	return m
}

func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// books gives the registry the service's own counts; package metrics adds the allocator's. Reading them stops no request.
type books struct {
	sv                    *Service
	running, waiting      *prometheus.Desc
	answered, byteSeconds *prometheus.Desc
}

func newBooks(sv *Service) *books {
	name := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &books{
		sv:          sv,
		running:     name("service_running_requests", "Requests that have memory."),
		waiting:     name("service_waiting_requests", "Requests that wait for memory."),
		answered:    name("service_answers_total", "Requests that were answered.", "tenant"),
		byteSeconds: name("service_byte_seconds_total", "Bytes that requests had, times the seconds for which they had them.", "tenant"),
	}
}

// Describe implements prometheus.Collector.
func (b *books) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, to) }

// Collect implements prometheus.Collector.
func (b *books) Collect(to chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	gauge(b.running, float64(b.sv.running.Load()))
	gauge(b.waiting, float64(b.sv.waiting.Load()))
	for name, t := range b.sv.tenants {
		to <- prometheus.MustNewConstMetric(b.answered, prometheus.CounterValue, float64(t.answered.Load()), name)
		to <- prometheus.MustNewConstMetric(b.byteSeconds, prometheus.CounterValue, t.byteSeconds(), name)
	}
}
