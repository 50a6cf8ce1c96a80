package sim

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// The limits of an H200 (compute capability 9.0).
const (
	multiprocessors        = 132
	maxBlockThreads        = 1024
	maxBlockDepth          = 64 // threads in direction Z
	maxGridWidth           = 1<<31 - 1
	maxGridHeight          = 1<<16 - 1 // blocks in directions Y and Z
	maxMultiprocessorWarps = 64
	maxMultiprocessorBlock = 32
	warpThreads            = 32
	defaultSharedBytes     = 48 << 10  // dynamic shared memory of a block, unless an attribute allows more
	maxSharedBytes         = 227 << 10 // the limit of the attribute
	maxParamBytes          = 32764
)

// Attributes that are equal for all kernels: the simulator compiles none.
const (
	kernelRegisters     = 32
	kernelBinaryVersion = 90
)

// FuncGetAttribute returns attributes of the text, attributes that were set, and otherwise plausible constants.
func (d *Device) FuncGetAttribute(f cudadrv.Function, a cudadrv.FunctionAttribute) (int, error) {
	const c = call.FuncGetAttribute
	return value(d, c, cudadrv.KernelLaunches, func(g *gpu) (int, error) {
		fn, err := g.functionNamed(c, f)
		if err != nil {
			return 0, err
		}
		switch a {
		case cudadrv.MaxThreadsPerBlock:
			return fn.maxThreads, nil
		case cudadrv.StaticSharedBytes, cudadrv.ConstBytes, cudadrv.LocalBytes, cudadrv.ClusterSizeMustBeSet:
			return 0, nil
		case cudadrv.Registers:
			return kernelRegisters, nil
		case cudadrv.PTXVersion:
			return fn.module.program.version, nil
		case cudadrv.BinaryVersion:
			return kernelBinaryVersion, nil
		case cudadrv.MaxDynamicSharedBytes:
			return fn.dynamicSharedBytes, nil
		case cudadrv.PreferredSharedCarveout:
			return fn.carveout, nil
		}
		return 0, fail(c, cudadrv.InvalidValue, "attribute %d", a)
	})
}

// FuncSetAttribute sets the two attributes that can be set.
func (d *Device) FuncSetAttribute(f cudadrv.Function, a cudadrv.FunctionAttribute, value int) error {
	const c = call.FuncSetAttribute
	return d.do(c, cudadrv.KernelLaunches, func(g *gpu) error {
		fn, err := g.functionNamed(c, f)
		if err != nil {
			return err
		}
		switch {
		case a == cudadrv.MaxDynamicSharedBytes && value >= 0 && value <= maxSharedBytes:
			fn.dynamicSharedBytes = value
		case a == cudadrv.PreferredSharedCarveout && value >= -1 && value <= 100:
			fn.carveout = value
		default:
			return fail(c, cudadrv.InvalidValue, "attribute %d, value %d", a, value)
		}
		return nil
	})
}

// FuncGetParamInfo returns the place of a parameter.
func (d *Device) FuncGetParamInfo(f cudadrv.Function, index int) (offsetBytes, bytes int64, err error) {
	const c = call.FuncGetParamInfo
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterWith(c, cudadrv.KernelLaunches); err != nil {
		return 0, 0, err
	}
	fn, err := g.functionNamed(c, f)
	if err != nil {
		return 0, 0, err
	}
	if index < 0 || index >= len(fn.params) {
		return 0, 0, fail(c, cudadrv.InvalidValue, "parameter %d of %d", index, len(fn.params))
	}
	return fn.params[index].offsetBytes, fn.params[index].bytes, nil
}

// activeBlocks returns the number of blocks of blockThreads threads that fit a multiprocessor.
func activeBlocks(blockThreads int) int {
	warps := (blockThreads + warpThreads - 1) / warpThreads
	return min(maxMultiprocessorWarps/warps, maxMultiprocessorBlock)
}

// OccupancyMaxActiveBlocksPerMultiprocessor counts threads alone, not registers and shared memory.
func (d *Device) OccupancyMaxActiveBlocksPerMultiprocessor(f cudadrv.Function, blockThreads int, sharedBytes int64) (int, error) {
	const c = call.OccupancyMaxActiveBlocksPerMultiprocessor
	return value(d, c, cudadrv.KernelLaunches, func(g *gpu) (int, error) {
		fn, err := g.functionNamed(c, f)
		if err != nil {
			return 0, err
		}
		if blockThreads < 1 || sharedBytes < 0 {
			return 0, fail(c, cudadrv.InvalidValue, "blocks of %d threads, %d bytes of shared memory", blockThreads, sharedBytes)
		}
		if blockThreads > fn.maxThreads {
			return 0, nil
		}
		return activeBlocks(blockThreads), nil
	})
}

// OccupancyMaxPotentialBlockSize returns the largest block with which most threads run at once.
func (d *Device) OccupancyMaxPotentialBlockSize(f cudadrv.Function, sharedBytes int64, maxThreads int) (gridBlocks, blockThreads int, err error) {
	const c = call.OccupancyMaxPotentialBlockSize
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterWith(c, cudadrv.KernelLaunches); err != nil {
		return 0, 0, err
	}
	fn, err := g.functionNamed(c, f)
	if err != nil {
		return 0, 0, err
	}
	if sharedBytes < 0 || maxThreads < 0 {
		return 0, 0, fail(c, cudadrv.InvalidValue, "at most %d threads, %d bytes of shared memory", maxThreads, sharedBytes)
	}
	limit := fn.maxThreads
	if maxThreads > 0 {
		limit = min(limit, maxThreads)
	}
	most := 0
	for threads := limit; threads > 0; threads = (threads - 1) / warpThreads * warpThreads {
		if active := activeBlocks(threads) * threads; active > most {
			most, blockThreads = active, threads
		}
	}
	return activeBlocks(blockThreads) * multiprocessors, blockThreads, nil
}
