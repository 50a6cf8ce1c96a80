package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv/internal/call"
)

// The costs are medians measured on an NVIDIA H200 with driver 580.159 (CUDA 13.0), warm, device
// idle, from Go without cgo. Costs that depend on bytes are interpolated between the sizes measured.

// point is a measured cost at a size.
type point struct {
	bytes int64
	cost  time.Duration
}

// curve is a cost by size, points in ascending order of bytes. An empty curve is free.
type curve []point

// at interpolates between the two points around bytes. Below the first point the cost is the first one's; above the last it
// continues with the last slope.
func (c curve) at(bytes int64) time.Duration {
	switch {
	case len(c) == 0:
		return 0
	case len(c) == 1 || bytes <= c[0].bytes:
		return c[0].cost
	}
	i := 1
	for i < len(c)-1 && bytes > c[i].bytes {
		i++
	}
	low, high := c[i-1], c[i]
	slope := float64(high.cost-low.cost) / float64(high.bytes-low.bytes)
	return low.cost + time.Duration(slope*float64(bytes-low.bytes))
}

const (
	kib int64 = 1 << 10
	mib int64 = 1 << 20
	gib int64 = 1 << 30
	tib int64 = 1 << 40
)

// callCosts is the cost of each call by the bytes it names. For cuMemSetAccess and cuMemUnmap it has the cost of the call
// without its handles, which is listed below. Waiting for the device, as cuMemFree does, is time of the device's clock and no
// cost.
var callCosts = [call.Count]curve{ //nolint:gochecknoglobals // a constant table
	call.PrimaryCtxRetain: {{0, 103_961 * time.Microsecond}}, // the first Open; further ones are free

	call.MemGetInfo: {{0, 3366}},
	call.MemAlloc: { // one block at a time
		{256, 25_900},
		{64 * kib, 25_700},
		{2 * mib, 24_800},
		{20 * mib, 29_100},
		{256 * mib, 43_800},
		{gib, 71_500},
		{8 * gib, 406_800},
	},
	call.MemFree: {
		{256, 23_100},
		{64 * kib, 22_900},
		{2 * mib, 22_300},
		{20 * mib, 26_500},
		{256 * mib, 80_300},
		{gib, 242_000},
		{8 * gib, 1_798_600},
	},

	call.MemAddressReserve: {{0, 1334}}, // 64 MiB to 16 TiB without a trend
	call.MemAddressFree:    {{64 * mib, 1146}, {64 * gib, 1242}, {tib, 2231}, {16 * tib, 2494}},
	call.MemCreate:         {{2 * mib, 5614}, {32 * mib, 6015}, {256 * mib, 9619}, {gib, 17_400}},
	call.MemRelease:        {{2 * mib, 6967}, {32 * mib, 12_600}, {256 * mib, 53_500}, {gib, 196_900}},
	call.MemMap:            {{2 * mib, 549}, {32 * mib, 526}, {256 * mib, 546}, {gib, 678}},
	call.MemSetAccess:      {{0, 12_000}}, // one handle costs 28.3 us, 32 side by side 522.1 us
	call.MemUnmap:          {{0, 7_000}},  // one handle costs 18.4 us, 32 side by side 359.2 us

	call.StreamCreate:      {{0, 1451}},
	call.StreamDestroy:     {{0, 923}},
	call.StreamQuery:       {{0, 201}},
	call.StreamSynchronize: {{0, 228}},
	call.StreamIsCapturing: {{0, 201}}, // not measured; as cuStreamQuery
	call.StreamWaitEvent:   {{0, 169}},
	call.CtxSynchronize:    {{0, 228}}, // not measured; as cuStreamSynchronize
	call.EventCreate:       {{0, 184}}, // timing disabled, as all of these
	call.EventDestroy:      {{0, 149}},
	call.EventRecord:       {{0, 192}},
	call.EventQuery:        {{0, 200}},
	call.EventSynchronize:  {{0, 200}}, // not measured; as cuEventQuery

	// The cost of the submission; the work itself takes device time.
	call.MemHostAlloc: {{64 * kib, 350_400}, {2 * mib, 348_200}, {64 * mib, 10_950_000}},
	call.MemFreeHost:  {{64 * kib, 162_000}, {2 * mib, 161_700}, {64 * mib, 4_218_100}},

	call.MemsetD8Async:   {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}},
	call.MemcpyDtoDAsync: {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}}, // not measured; as memset
	call.MemcpyHtoDAsync: {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}}, // likewise
	call.MemcpyDtoHAsync: {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}},
	call.MemsetD16Async:  {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}}, // not measured; as memset
	call.MemsetD32Async:  {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}}, // likewise
	call.Memcpy2DAsync:   {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}}, // likewise
	call.MemcpyPeerAsync: {{4 * kib, 824}, {2 * mib, 2885}, {64 * mib, 2719}, {gib, 2930}}, // likewise

	call.LaunchKernel:   {{0, 3000}},
	call.ModuleLoadData: {{0, 5_500_000}}, // PTX of a small kernel that the driver's own cache does not have
	call.LinkComplete:   {{0, 5_500_000}}, // not measured; as loading
	call.GraphLaunch:    {{0, 1400}},      // for any number of nodes
	// The curve is over nodes, not bytes.
	call.GraphInstantiate: {{1, 15_000}, {100, 160_000}, {1000, 3_000_000}},
	call.GraphExecUpdate:  {{1, 15_000}, {100, 160_000}, {1000, 3_000_000}}, // not measured; as instantiation

	call.EventElapsedTime:     {{0, 200}}, // not measured; as cuEventQuery
	call.StreamGetCaptureInfo: {{0, 201}}, // not measured; as cuStreamIsCapturing
	// Not measured, and free: unloading, looking functions up and asking about them, captures, nodes, destruction of
	// graphs, and the names of events.
}

// The cost of each handle in the range of cuMemSetAccess and cuMemUnmap, by the handle's bytes. At 2 and 32 MiB it is the whole
// call over 32 handles without the share above, by 32; at 256 MiB and 1 GiB the whole call over one handle without that share.
var (
	accessHandleCost = curve{ //nolint:gochecknoglobals // a constant table
		{2 * mib, 15_940}, {32 * mib, 17_020}, {256 * mib, 17_900}, {gib, 39_200},
	}
	unmapHandleCost = curve{ //nolint:gochecknoglobals // a constant table
		{2 * mib, 11_010}, {32 * mib, 11_400}, {256 * mib, 11_400}, {gib, 20_100},
	}
)

// Device time of a memset or copy: a start of 5 us (a 4 KiB memset is waited for 4.9 us), then bytes
// at the rate of a 1 GiB memset (261 us) and of copies between buffers (2130 GB/s).
const (
	workLatency        = 5 * time.Microsecond
	memsetBytesPerNano = 4150
	memcpyBytesPerNano = 2130
	hostBytesPerNano   = 55  // page-locked memory: 64 MiB in 1217 us, either way
	peerBytesPerNano   = 450 // not measured: the specification of NVLink 4, each way
)

// memsetTime returns the device's time to fill bytes.
func memsetTime(bytes int64) time.Duration {
	return workLatency + time.Duration(bytes/memsetBytesPerNano)
}

// hostTime returns the device's time to copy bytes from the host or to it.
func hostTime(bytes int64) time.Duration {
	return workLatency + time.Duration(bytes/hostBytesPerNano)
}

// memcpyTime returns the device's time to copy bytes within its memory.
func memcpyTime(bytes int64) time.Duration {
	return workLatency + time.Duration(bytes/memcpyBytesPerNano)
}

// peerTime returns the time of a copy between two devices.
func peerTime(bytes int64) time.Duration {
	return workLatency + time.Duration(bytes/peerBytesPerNano)
}
