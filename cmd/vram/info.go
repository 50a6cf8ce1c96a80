package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/jsonform"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/monitor/gpus"
)

// infoCmd implements the command info.
type infoCmd struct {
	deviceFlags
	JSON bool `name:"json" help:"Print an object."`
}

// report is the result of the command info.
type report struct {
	Driver           string   `json:"driver"`
	Device           string   `json:"device"`
	Ordinal          int      `json:"ordinal"`
	DriverVersion    string   `json:"driver_version"`
	TotalBytes       int64    `json:"total_bytes"`
	FreeBytes        int64    `json:"free_bytes"`
	GranularityBytes int64    `json:"granularity_bytes"`
	Capabilities     []string `json:"capabilities"`

	// The configuration of a device that is opened by the environment. 0: no bound; of SegmentBytes: the footprint's choice.
	Footprint         string `json:"footprint"`
	LimitBytes        int64  `json:"limit_bytes"`
	LimitSource       string `json:"limit_source"`
	SegmentBytes      int64  `json:"segment_bytes"`
	StreamCacheBytes  int64  `json:"stream_cache_bytes"`
	StreamCacheBlocks int    `json:"stream_cache_blocks"`
	PoolCacheBytes    int64  `json:"pool_cache_bytes"`
	PoolCacheBlocks   int    `json:"pool_cache_blocks"`
	ReleaseAfter      string `json:"release_after"`
	Waits             string `json:"waits"`
	Stats             string `json:"stats"`
	Debug             bool   `json:"debug"`

	EmbeddedTraces []string `json:"embedded_traces"`

	GPUs      []gpus.Device `json:"gpus"`       // of the machine, in the order of nvidia-smi
	GPUsError string        `json:"gpus_error"` // why they are not known; "": they are
}

// Run opens the device, prints the report and closes the device.
func (c *infoCmd) Run(p *program) error {
	cfg, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	cfg.Driver, cfg.Warm = newDriver(), nil // a report maps nothing ahead
	r, err := readReport(cfg)
	if err != nil {
		return err
	}
	var notKnown error
	if r.GPUs, notKnown = readGPUs(p); notKnown != nil {
		r.GPUsError = notKnown.Error()
	}
	if c.JSON {
		return printJSON(p.stdout, r)
	}
	return r.print(p.stdout)
}

// print writes the report as a table.
func (r *report) print(out io.Writer) error {
	t := newTable(1, "what", "value")
	for _, row := range []table.Row{
		{"driver", r.Driver},
		{"device", fmt.Sprintf("%d: %s", r.Ordinal, r.Device)},
		{"driver version", r.DriverVersion},
		{"memory", bytesText(r.TotalBytes)},
		{"free memory", bytesText(r.FreeBytes)},
		{"granularity", bytesText(r.GranularityBytes)},
		{"capabilities", strings.Join(r.Capabilities, "\n")},
		{"footprint", r.Footprint},
		{"limit", limitText(r.LimitBytes, r.LimitSource)},
		{"longest segment", segmentText(r.SegmentBytes)},
		{"stream cache", bound(r.StreamCacheBytes, r.StreamCacheBlocks)},
		{"pool cache", bound(r.PoolCacheBytes, r.PoolCacheBlocks)},
		{"release after", r.ReleaseAfter},
		{"waits", r.Waits},
		{"statistics", r.Stats},
		{"debug", r.Debug},
		{"embedded traces", strings.Join(r.EmbeddedTraces, ", ")},
	} {
		t.add(row)
	}
	for i := range r.GPUs {
		t.add(table.Row{fmt.Sprintf("GPU %d", r.GPUs[i].Index), gpuText(&r.GPUs[i])})
	}
	if r.GPUsError != "" {
		t.add(table.Row{"GPUs", r.GPUsError})
	}
	return t.print(out)
}

// gpusLimit bounds the wait for NVML. Not shorter: it takes a second to start on machines with many GPUs.
const gpusLimit = 10 * time.Second

// readGPUs lists the GPUs of the machine.
func readGPUs(p *program) ([]gpus.Device, error) {
	ctx, cancel := context.WithTimeout(p.ctx, gpusLimit)
	defer cancel()
	all, err := p.reader.Devices(ctx)
	return jsonform.List(all), err
}

// gpuText has a line for the GPU, and one for each process there.
func gpuText(d *gpus.Device) string {
	lines := []string{strings.Join(slices.DeleteFunc([]string{d.Name, d.UUID, d.PCI}, func(s string) bool { return s == "" }), ", ")}
	if d.MemoryKnown {
		lines = append(lines, fmt.Sprintf("%s of %s free", bytesText(d.FreeBytes), bytesText(d.TotalBytes)))
	}
	for _, q := range d.Processes {
		lines = append(lines, vram.GPUProcess{PID: q.PID, Command: q.Command, Place: q.Place.String(), Bytes: q.Bytes, BytesKnown: q.BytesKnown}.String())
	}
	for _, err := range d.Problems {
		lines = append(lines, err.Error())
	}
	return strings.Join(lines, "\n")
}

// readReport opens the device twice, the second time without vram.
func readReport(cfg vram.Config) (r report, err error) {
	device, err := vram.Open(cfg)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	if _, err := device.NewStream(); err != nil { // the first use returns the error that Info hides
		return r, err
	}
	bare, err := cfg.Driver.Open(cfg.Ordinal)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bare.Close()) }()
	freeBytes, totalBytes, err := bare.MemGetInfo()
	if err != nil {
		return r, err
	}
	info := device.Info()
	return report{
		Driver: info.Driver, Device: info.Name, Ordinal: info.Ordinal,
		DriverVersion: versionText(info.DriverVersion),
		TotalBytes:    totalBytes, FreeBytes: freeBytes, GranularityBytes: info.GranularityBytes,
		Capabilities: capabilityNames(info.Capabilities),
		Footprint:    cfg.Footprint.String(), LimitBytes: device.Stats().LimitBytes, LimitSource: device.Stats().LimitSource,
		StreamCacheBytes: cfg.StreamCacheBytes, StreamCacheBlocks: cfg.Tuning.StreamCacheBlocks,
		PoolCacheBytes: cfg.PoolCacheBytes, PoolCacheBlocks: cfg.Tuning.PoolCacheBlocks, SegmentBytes: cfg.Tuning.SegmentBytes,
		ReleaseAfter: releaseText(cfg.ReleaseAfter), Waits: cfg.Waits.String(), Stats: cfg.Stats.String(), Debug: cfg.Debug,
		EmbeddedTraces: trace.Embedded(),
	}, nil
}

// versionText formats a version in CUDA's notation: 12040 is 12.4.
func versionText(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

// limitText names what sets a limit, unless the program or the device does.
func limitText(bytes int64, source string) string {
	if source == "" {
		return bytesText(bytes)
	}
	return bytesText(bytes) + ", by " + source
}

func segmentText(segmentBytes int64) string {
	if segmentBytes == 0 {
		return "as the footprint has it"
	}
	return bytesText(segmentBytes)
}

// releaseText formats a Config.ReleaseAfter.
func releaseText(after time.Duration) string {
	switch {
	case after == 0:
		return "as the footprint has it"
	case after < 0:
		return "never"
	}
	return after.String()
}

// bound formats a cache bound.
func bound(cacheBytes int64, blocks int) string {
	text := "no bound"
	if cacheBytes > 0 {
		text = bytesText(cacheBytes)
	}
	if blocks > 0 {
		text += ", " + units.Count(blocks, "block")
	}
	return text
}

func capabilityNames(c cudadrv.Capability) []string {
	names := []string{}
	for bit := cudadrv.Capability(1); bit != 0 && bit <= c; bit <<= 1 {
		if c.Has(bit) {
			names = append(names, bit.String())
		}
	}
	return names
}
