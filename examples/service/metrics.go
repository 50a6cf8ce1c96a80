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
	first    *prometheus.HistogramVec // time to the first token, by tenant
	between  *prometheus.HistogramVec // time between tokens, by tenant
	waited   *prometheus.HistogramVec // for memory, by tenant
	ends     *prometheus.CounterVec   // of answers, by reason
	refusals *prometheus.CounterVec   // by code
}

// The bounds of the histograms, in seconds: from a step of few sequences, or a request that finds memory at once, to the default
// timeout.
func bounds() []float64 {
	return []float64{.0001, .0002, .0005, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30}
}

func newMeters(sv *Service) *meters {
	byTenant := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: bounds()}, []string{"tenant"})
	}
	m := &meters{
		registry: prometheus.NewRegistry(),
		first:    byTenant("service_first_token_seconds", "Time from a request's body to its first token."),
		between:  byTenant("service_token_seconds", "Time from a token of an answer to the next one."),
		waited:   byTenant("service_memory_wait_seconds", "Time that a request waited for the weights to wake and for memory."),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "service_ends_total", Help: "Answers that have ended, by the reason.",
		}, []string{"reason"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "service_refusals_total", Help: "Requests that were refused, by the code of the problem.",
		}, []string{"code"}),
	}
	m.registry.MustRegister(m.first, m.between, m.waited, m.ends, m.refusals, newBooks(sv), metrics.New(sv.device))
	return m
}

func (m *meters) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// books gives the registry the service's own counts; package metrics adds the allocator's. Reading them stops no request.
type books struct {
	sv                                       *Service
	running, waiting, queued, active, asleep *prometheus.Desc
	sleeps                                   *prometheus.Desc
	answered, tokens, byteSeconds            *prometheus.Desc
}

func newBooks(sv *Service) *books {
	name := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return &books{
		sv:          sv,
		running:     name("service_running_requests", "Requests that have memory."),
		waiting:     name("service_waiting_requests", "Requests that wait for memory."),
		queued:      name("service_queued_requests", "Requests that are prefilled and wait for a place in a step."),
		active:      name("service_step_sequences", "Sequences of the last step."),
		asleep:      name("service_weights_asleep", "1 while the weights are not in the GPU's memory."),
		sleeps:      name("service_sleeps_total", "How often the weights were put to sleep."),
		answered:    name("service_answers_total", "Requests that were answered.", "tenant"),
		tokens:      name("service_tokens_total", "Tokens of answers.", "tenant"),
		byteSeconds: name("service_byte_seconds_total", "Bytes of caches that requests had, times the seconds for which they had them.", "tenant"),
	}
}

// Describe implements prometheus.Collector.
func (b *books) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(b, to) }

// Collect implements prometheus.Collector.
func (b *books) Collect(to chan<- prometheus.Metric) {
	sv := b.sv
	asleep := 0.0
	if sv.sleeper.asleep.Load() {
		asleep = 1
	}
	for d, value := range map[*prometheus.Desc]float64{
		b.running: float64(sv.running.Load()), b.waiting: float64(sv.waiting.Load()),
		b.queued: float64(sv.engine.queued.Load()), b.active: float64(sv.engine.active.Load()), b.asleep: asleep,
	} {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
	}
	to <- prometheus.MustNewConstMetric(b.sleeps, prometheus.CounterValue, float64(sv.sleeper.sleeps.Load()))
	for name, t := range sv.tenants {
		to <- prometheus.MustNewConstMetric(b.answered, prometheus.CounterValue, float64(t.answered.Load()), name)
		to <- prometheus.MustNewConstMetric(b.tokens, prometheus.CounterValue, float64(t.tokens.Load()), name)
		to <- prometheus.MustNewConstMetric(b.byteSeconds, prometheus.CounterValue, t.byteSeconds(), name)
	}
}
