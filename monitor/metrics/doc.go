// Package metrics exports the statistics of devices to Prometheus: a Collector for each device, any
// number of them in one registry.
//
//	registry.MustRegister(metrics.New(device))
//
// # Names and labels
//
// Names begin with vram_ and end with their unit: _bytes, _seconds, _total for counters. Each metric has the label device, the
// device's number. Some have one more:
//
//	state    of bytes: live, cached, pending, free, set_aside, sleeping, shared, reserved, held
//	level    of allocations: magazine, stream, pool, driver
//	cause    of failed requests: out_of_memory, refused, wait_ended, quota
//	stream   the stream's number, up to Options.MaxStreams of them; the others are summed up as "other"
//	block_bytes  the size of blocks, a power of two: at most 33
//	tenant   the tenant's name, likewise up to Options.MaxTenants, and "other"
//	function the driver's function: at most as many as the driver has
//
// So the number of series is bounded for any program. The series of the summed streams and tenants have no peaks and bounds.
// vram_wait_seconds is a histogram whose bounds are powers of two of a microsecond; all of them exist from the beginning.
//
// # Processes of all GPUs
//
// NewProcesses is a Collector of another kind: of all GPUs of the machine and of all processes there, as package gpus reads them by
// NVML. Its metrics begin with vram_gpu_. Labels are gpu (NVML's number), uuid and, of processes, pid, instance (of MIG), command,
// container, pod and unit. ProcessOptions.MaxProcesses bounds the processes of each GPU; the others are summed up as pid "other". A process
// whose bytes the driver does not know has no series.
//
// # Statistics that are off
//
// With Config.Stats at vram.StatsOff, or switched to it by Reconfigure, bytes by state, peaks, shares and the streams' series
// are left out, since they are not known. Counters keep the last value that was read, and continue from there once statistics
// are on again: no scraper sees a reset.
//
// # OpenTelemetry
//
// A program that exports by OpenTelemetry registers a Collector with a prometheus.Registry, and its
// reader reads the registry through the bridge go.opentelemetry.io/contrib/bridges/prometheus:
//
//	reader := metric.NewPeriodicReader(exporter,
//		metric.WithProducer(prometheusbridge.NewMetricProducer(prometheusbridge.WithGatherer(registry))))
//
// All metrics arrive under the same names. This package does not depend on the bridge.
//
// # Concurrency properties
//
// A Collector may be used from any goroutine. Collecting reads Device.Stats, which waits for the
// request that each stream and the pool are serving, and stops no allocation. Nothing is counted
// between two collections. With Options.GPUMemory it makes one driver call.
package metrics
