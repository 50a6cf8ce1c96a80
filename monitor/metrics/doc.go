// Package metrics gives the statistics of devices to Prometheus: a Collector for each device, any
// number of them in one registry.
//
//	registry.MustRegister(metrics.New(device))
//
// # Names and labels
//
// Names begin with vram_ and end with their unit: _bytes, _seconds, _total for what only grows. Each
// metric has the label device, the device's number. Some have one more:
//
//	state    of bytes: live, cached, pending, free, set_aside, sleeping, reserved
//	level    of allocations: magazine, stream, pool, driver
//	cause    of requests and frees that came to nothing: out_of_memory, refused, bad_free, wait_ended
//	stream   the stream's number, up to Options.MaxStreams of them; the others are summed up as "other"
//	block_bytes  the size of blocks, a power of two: at most 33
//	tenant   the tenant's name, likewise up to Options.MaxTenants, and "other"
//	function the driver's function: at most as many as the driver has
//
// So the number of series is bounded whatever a program does. vram_wait_seconds is a histogram whose
// bounds are powers of two of a microsecond.
//
// # OpenTelemetry
//
// A program that exports by OpenTelemetry registers a Collector with a prometheus.Registry and gives
// that to the bridge go.opentelemetry.io/contrib/bridges/prometheus as a Producer: all metrics
// arrive under the same names. This package does not depend on it.
//
// # Concurrency properties
//
// A Collector may be used from any goroutine. Collecting reads Device.Stats, which waits for the
// request that each stream and the pool are serving, and stops no allocation. Nothing is counted
// between two collections. With Options.GPUMemory it makes one driver call.
package metrics
