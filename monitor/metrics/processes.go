package metrics

import (
	"context"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/go-vram/vram/monitor/gpus"
)

// ProcessOptions bound the labels of Processes.
type ProcessOptions struct {
	// MaxProcesses bounds the processes of each GPU that have series of their own: those with the most bytes. 0: 32; negative: none
	// has, and all are summed up.
	MaxProcesses int
	// Labels are added to every metric.
	Labels prometheus.Labels
}

// Processes is the memory of all GPUs of the machine, and of the processes there, as metrics. Make one with NewProcesses.
type Processes struct {
	reader   *gpus.Reader
	most     int
	failures atomic.Uint64

	memory, processes, ofProcess, failed *prometheus.Desc
}

var _ prometheus.Collector = (*Processes)(nil)

// NewProcesses makes the Collector of a Reader. It makes no call of NVML.
func NewProcesses(reader *gpus.Reader, o ProcessOptions) *Processes {
	name := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("vram_gpu_"+name, help, labels, maps.Clone(o.Labels))
	}
	return &Processes{
		reader: reader, most: bound(o.MaxProcesses),
		memory:    name("device_memory_bytes", "The memory of a GPU by state: used, free, reserved by the driver.", "gpu", "uuid", "state"),
		processes: name("processes", "Processes with a context on a GPU.", "gpu", "uuid"),
		ofProcess: name("process_memory_bytes", "The memory of a process on a GPU, where the driver knows it.",
			"gpu", "uuid", "pid", "instance", "command", "container", "pod", "unit"),
		failed: name("reading_failures_total", "Readings of NVML, or of one GPU, that failed."),
	}
}

// Describe implements prometheus.Collector.
func (c *Processes) Describe(to chan<- *prometheus.Desc) {
	if c == nil || c.memory == nil { // of a Processes that NewProcesses did not make
		return
	}
	for _, d := range []*prometheus.Desc{c.memory, c.processes, c.ofProcess, c.failed} {
		to <- d
	}
}

// readLimit bounds the time of a collection. Not longer: scrapers wait ten seconds.
const readLimit = 5 * time.Second

// Collect implements prometheus.Collector. It waits for NVML, for five seconds at most.
func (c *Processes) Collect(to chan<- prometheus.Metric) {
	if c == nil || c.memory == nil {
		return
	}
	m := emitter{to}
	ctx, cancel := context.WithTimeout(context.Background(), readLimit)
	defer cancel()
	devices, err := c.reader.Devices(ctx)
	failures := uint64(0)
	if err != nil {
		failures = 1
	}
	for i := range devices {
		failures += uint64(len(devices[i].Problems))
		c.device(m, &devices[i])
	}
	m.count(c.failed, c.failures.Add(failures))
}

// device sends the figures of a GPU.
func (c *Processes) device(m emitter, d *gpus.Device) {
	gpu := strconv.Itoa(d.Index)
	if d.MemoryKnown {
		m.bytes(c.memory, d.UsedBytes, gpu, d.UUID, "used")
		m.bytes(c.memory, d.FreeBytes, gpu, d.UUID, "free")
		m.bytes(c.memory, d.ReservedBytes, gpu, d.UUID, "reserved")
	}
	if d.ProcessesKnown {
		m.add(c.processes, prometheus.GaugeValue, float64(len(d.Processes)), gpu, d.UUID)
	}
	var rest int64
	summed := false
	for i, p := range d.Processes {
		switch {
		case !p.BytesKnown:
		case i < c.most:
			instance := ""
			if p.Instance != gpus.NoInstance {
				instance = strconv.Itoa(p.Instance)
			}
			m.bytes(c.ofProcess, p.Bytes, gpu, d.UUID, strconv.Itoa(p.PID), instance, p.Command, p.Place.Container, p.Place.Pod, p.Place.Unit)
		default:
			rest, summed = rest+p.Bytes, true
		}
	}
	if summed {
		m.bytes(c.ofProcess, rest, gpu, d.UUID, others, "", "", "", "", "")
	}
}
