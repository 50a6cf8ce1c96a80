package metrics

import "github.com/prometheus/client_golang/prometheus"

// descs are the metrics' names.
type descs struct {
	all []*prometheus.Desc

	memory, reserved, limit, largestFree, peak, fragmentation, efficiency, pressure *prometheus.Desc
	gpuTotal, gpuFree                                                               *prometheus.Desc

	allocs, frees, failed, badFrees, retries, reclaims, panics, pressureRises *prometheus.Desc
	lostFences, neighbour                                                     *prometheus.Desc

	waiting, demand, deadlocks, waits *prometheus.Desc

	sizeAllocs, sizeFrees, sizeMemory *prometheus.Desc

	streamMemory, streamHeld, streamPeak, streamAllocs, streamFrees, streamHits *prometheus.Desc

	tenantMemory, tenantCharged, tenantLimit, tenantShare, tenantPeak   *prometheus.Desc
	tenantAllocs, tenantFrees, tenantFailed, tenantWaiting, tenantWaits *prometheus.Desc

	driverCalls, driverFailures, driverSeconds *prometheus.Desc
}

func newDescs(constant prometheus.Labels) descs {
	var d descs
	name := func(name, help string, labels ...string) *prometheus.Desc {
		one := prometheus.NewDesc("vram_"+name, help, labels, constant)
		d.all = append(d.all, one)
		return one
	}
	d.memory = name("memory_bytes", "Memory by state. All states less twice the sleeping ones equal vram_reserved_bytes while no request runs.", "state")
	d.reserved = name("reserved_bytes", "Memory held from the driver.")
	d.limit = name("limit_bytes", "The bound of vram_reserved_bytes.")
	d.largestFree = name("largest_free_bytes", "The longest free range, in the pool or in a stream.")
	d.peak = name("peak_bytes", "The maximum of memory by state since the device was opened or its peaks were reset.", "state")
	d.fragmentation = name("fragmentation_ratio", "The share of free and cached memory outside its longest range.")
	d.efficiency = name("efficiency_ratio", "The peak of live memory over the peak of reserved memory.")
	d.pressure = name("pressure_level", "The level of pressure: 0 is normal, 1 high, 2 critical.")
	d.gpuTotal = name("gpu_memory_bytes", "The memory of the whole GPU.")
	d.gpuFree = name("gpu_free_memory_bytes", "The memory of the whole GPU that the driver could give.")

	d.allocs = name("allocations_total", "Allocations by the level that served them.", "level")
	d.frees = name("frees_total", "Frees.")
	d.failed = name("failed_requests_total", "Requests that came to nothing.", "cause")
	d.badFrees = name("bad_frees_total", "Frees of buffers that were not live.")
	d.retries = name("retries_total", "Requests that were tried again after they had failed.")
	d.reclaims = name("reclaims_total", "Requests of the pool to streams to release memory.")
	d.panics = name("panics_total", "Panics that were recovered. Each is a defect.")
	d.pressureRises = name("pressure_rises_total", "Rises of the level of pressure.")

	d.lostFences = name("lost_fences_total", "Fences that captures of streams into graphs took away.")
	d.neighbour = name("neighbour_released_bytes_total", "Memory that other devices of the process on the same GPU have released for this one.")

	d.waiting = name("waiting_requests", "Requests that wait for memory.")
	d.demand = name("waiting_bytes", "Memory that the waiting requests want.")
	d.deadlocks = name("deadlocks_total", "Waits that were refused, since they would never have ended.")
	d.waits = name("wait_seconds", "Waits for memory that have ended.")

	d.sizeAllocs = name("size_allocations_total", "Allocations by the size of their blocks.", "block_bytes")
	d.sizeFrees = name("size_frees_total", "Frees by the size of their blocks.", "block_bytes")
	d.sizeMemory = name("size_memory_bytes", "Memory by the size of blocks and by state.", "block_bytes", "state")

	d.streamMemory = name("stream_memory_bytes", "Memory of a stream by state.", "stream", "state")
	d.streamHeld = name("stream_held_bytes", "Memory that the pool has lent to a stream.", "stream")
	d.streamPeak = name("stream_peak_bytes", "The maximum of a stream's memory by state.", "stream", "state")
	d.streamAllocs = name("stream_allocations", "Allocations of an open stream.", "stream")
	d.streamFrees = name("stream_frees", "Frees of an open stream's buffers.", "stream")
	d.streamHits = name("stream_hits", "Allocations of an open stream by the level that served them.", "stream", "level")
	d.tenantMemory = name("tenant_memory_bytes", "Memory in a tenant's buffers.", "tenant")
	d.tenantCharged = name("tenant_charged_bytes", "Memory in a tenant's buffers and in its requests that wait.", "tenant")
	d.tenantLimit = name("tenant_limit_bytes", "The bound of vram_tenant_charged_bytes, of tenants that have one.", "tenant")
	d.tenantShare = name("tenant_share_bytes", "The part of the memory that a tenant has a right to, of tenants that have one.", "tenant")
	d.tenantPeak = name("tenant_peak_bytes", "The maximum of vram_tenant_memory_bytes.", "tenant")
	d.tenantAllocs = name("tenant_allocations_total", "Allocations of a tenant.", "tenant")
	d.tenantFrees = name("tenant_frees_total", "Frees of a tenant's buffers.", "tenant")
	d.tenantWaiting = name("tenant_waiting_requests", "Requests that wait for their tenant's quota.", "tenant")
	d.tenantFailed = name("tenant_failed_requests_total", "Requests of a tenant that came to nothing.", "tenant", "cause")
	d.tenantWaits = name("tenant_wait_seconds", "Waits of a tenant's requests that have ended.", "tenant")

	d.driverCalls = name("driver_calls_total", "Driver calls that the allocator made, by function.", "function")
	d.driverFailures = name("driver_failures_total", "Driver calls of the allocator that failed, by function.", "function")
	d.driverSeconds = name("driver_seconds_total", "Time spent in driver calls of the allocator, by function; modelled where the device is simulated.", "function")
	return d
}
