package sim

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// gpu is the state that all views of one simulated GPU share.
type gpu struct {
	driver *Driver
	info   cudadrv.Info

	modelled atomic.Int64              // ns, written under mu, read without
	counts   [call.Count]atomic.Uint64 // likewise

	mu            *sync.Mutex // guards the fields below; one for all GPUs of a Driver, as copies between them touch two
	opens         int
	capacityBytes int64
	usedBytes     int64 // physical: plain allocations, and handles that are unreleased or mapped

	regions     byAddress[*region]  // reservations and plain allocations
	mappings    byAddress[*mapping] // each in one reservation
	handles     map[cudadrv.Handle]*handle
	handleSlab  slab[handle]
	mappingSlab slab[mapping]

	backing backing // nil without bytes, and while no view is open
	file    space   // of the backing
	pinned  pinned
	fault   string // the failure of work; it fails every further call

	faultResult cudadrv.Result // of the fault
	faultCause  error          // the executor's, of a kernel; else nil

	drained    time.Duration // when all work queued so far has finished
	streams    map[cudadrv.Stream]*stream
	blocking   []*stream        // of streams
	freeStream []cudadrv.Stream // destroyed ids, with Config.ReuseStreamIDs
	events     map[cudadrv.Event]*event

	modules   map[cudadrv.Module]*module
	functions map[cudadrv.Function]*function // returned by ModuleGetFunction
	graphs    map[cudadrv.Graph]*Graph
	nodes     map[cudadrv.GraphNode]cudadrv.NodeKind // of graphs
	execs     map[cudadrv.GraphExec]*graphExec
}

// newUUID returns a random UUID: no two simulated GPUs of a process share one.
func newUUID() (u cudadrv.UUID) {
	binary.LittleEndian.PutUint64(u[:8], rand.Uint64()) //nolint:gosec // a name, not a secret
	binary.LittleEndian.PutUint64(u[8:], rand.Uint64()) //nolint:gosec // likewise
	return u
}

func newGPU(d *Driver, ordinal int, mu *sync.Mutex) *gpu {
	g := &gpu{
		driver: d,
		mu:     mu,
		info: cudadrv.Info{
			Driver:           d.Name(),
			Name:             "simulated GPU",
			Ordinal:          ordinal,
			UUID:             newUUID(),
			DriverVersion:    13000,
			TotalBytes:       d.config.TotalBytes,
			GranularityBytes: d.config.GranularityBytes,
			Compute:          cudadrv.ComputeCapability{Major: architecture / 10, Minor: architecture % 10},
			Multiprocessors:  multiprocessors,
			HostMemory:       d.config.HostMemory,
			Capabilities: cudadrv.VirtualMemory | cudadrv.CaptureInformation | cudadrv.BlockingCreation | cudadrv.KernelLaunches |
				cudadrv.GraphLaunches | cudadrv.EventTiming | cudadrv.WideFills | cudadrv.PeerAccess | cudadrv.EventSharing |
				cudadrv.BulkTensors,
		},
		capacityBytes: d.config.TotalBytes,
	}
	if d.config.NoVirtualMemory {
		g.info.GranularityBytes = 0
		g.info.Capabilities &^= cudadrv.VirtualMemory
	}
	if d.config.Bytes {
		g.info.Capabilities |= cudadrv.PinnedHost
	}
	g.info.Capabilities &^= d.config.Without
	g.forget()
	return g
}

// open makes a view that counts as opened.
func (g *gpu) open() (*Device, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opens == 0 && g.driver.config.Bytes {
		var err error
		if g.backing, err = newBacking(); err != nil {
			return nil, fmt.Errorf("%w: sim: %w", cudadrv.ErrNoDriver, err)
		}
		g.file.init(g.granuleBytes())
	}
	g.counts[call.PrimaryCtxRetain].Add(1)
	if g.opens == 0 { // later ones only count references
		g.charge(call.PrimaryCtxRetain)
	}
	g.opens++
	return &Device{gpu: g, opened: true}, nil
}

// forget drops memory, streams and events. Time, counts, costs and capacity remain.
func (g *gpu) forget() {
	for p, r := range g.regions.from(0) {
		g.driver.space.give(p, r.spanBytes)
	}
	g.usedBytes = 0
	g.regions = byAddress[*region]{}
	g.mappings = byAddress[*mapping]{}
	g.handles = map[cudadrv.Handle]*handle{}
	g.streams = map[cudadrv.Stream]*stream{0: {}}
	g.freeStream, g.blocking = nil, nil
	g.events = map[cudadrv.Event]*event{}
	g.modules = map[cudadrv.Module]*module{}
	g.functions = map[cudadrv.Function]*function{}
	g.graphs = map[cudadrv.Graph]*Graph{}
	g.nodes = map[cudadrv.GraphNode]cudadrv.NodeKind{}
	g.execs = map[cudadrv.GraphExec]*graphExec{}
	g.drained = 0
}

// charge adds the modelled cost of a call that succeeded, which callCosts has. Failed calls cost nothing: they were not measured.
func (g *gpu) charge(c call.Call) { g.chargeBytes(c, 0) }

// chargeBytes is charge of a call whose cost depends on a size.
func (g *gpu) chargeBytes(c call.Call, bytes int64) { g.chargeTime(callCosts[c].at(bytes)) }

func (g *gpu) chargeTime(cost time.Duration) {
	if !g.driver.config.NoCosts {
		g.modelled.Add(int64(cost))
	}
}

// take counts physical memory, or returns the error of a full GPU.
func (g *gpu) take(c call.Call, bytes int64) error {
	if bytes > g.capacityBytes-g.usedBytes {
		return fail(c, cudadrv.OutOfMemory, "%d bytes wanted, %d of %d in use", bytes, g.usedBytes, g.capacityBytes)
	}
	g.usedBytes += bytes
	return nil
}

// granuleBytes returns the granularity, also for a device without virtual memory calls.
func (g *gpu) granuleBytes() int64 { return g.driver.config.GranularityBytes }

// fail makes the error of a call.
func fail(c call.Call, r cudadrv.Result, format string, args ...any) error {
	return &cudadrv.CallError{Func: c.String(), Result: r, Detail: fmt.Sprintf(format, args...)}
}
