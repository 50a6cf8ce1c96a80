package drivertest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// Run checks the rules of cudadrv for the driver that open makes. open is called once for each subtest; every call may return
// the same driver. The first device must exist, with 256 MiB of free memory, and no other code should allocate on it during the
// run.
func Run(t *testing.T, open func(t *testing.T) cudadrv.Driver) {
	t.Helper()
	subtests := []struct {
		name string
		run  func(*bench)
	}{
		{"finding and opening", testOpening},
		{"views share the device", testSharedDevice},
		{"closed device", testClosedDevice},
		{"plain allocations", testPlain},
		{"plain segments", testPlainSegments},
		{"plain mistakes", testPlainMistakes},
		{"plain free waits for the device", testPlainFreeWaits},
		{"memory information", testMemoryInformation},
		{"address space", testAddressSpace},
		{"address space mistakes", testAddressSpaceMistakes},
		{"handle mistakes", testHandleMistakes},
		{"map and unmap", testMapping},
		{"map mistakes", testMapMistakes},
		{"access mistakes", testAccessMistakes},
		{"access of some mappings", testAccessOfSome},
		{"unmap mistakes", testUnmapMistakes},
		{"move a handle", testMove},
		{"a handle in two places", testAlias},
		{"a released handle lives while mapped", testReleasedWhileMapped},
		{"without virtual memory", testWithoutVirtualMemory},
		{"streams", testStreams},
		{"events", testEvents},
		{"order between streams", testOrder},
		{"the legacy default stream", testLegacyStream},
		{"work on memory", testWork},
		{"work mistakes", testWorkMistakes},
		{"many goroutines", testGoroutines},
		{"page-locked memory", testHostMemory},
		{"registered memory", testRegisteredMemory},
		{"page-locked free waits for the device", testHostFreeWaits},
		{"bytes follow handles", testBytesFollowHandles},
		{"host functions", testHostFunctions},
		{"shareable handles", testShareable},
		{"capture state", testCapture},
		{"modules", testModules},
		{"variables of modules", testVariables},
		{"links", testLinks},
		{"functions", testFunctions},
		{"launches", testLaunches},
		{"graphs", testGraphs},
		{"graph changes", testGraphChanges},
		{"graphs in graphs", testGraphsInGraphs},
		{"graphs on host memory", testGraphsOnHostMemory},
		{"calls in captures", testCallsInCaptures},
		{"the default stream in captures", testDefaultStreamInCaptures},
		{"capture information", testCaptureInformation},
		{"capture mistakes", testCaptureMistakes},
		{"timed events", testTimedEvents},
		{"wide fills", testWideFills},
		{"copies of rows", testRows},
		{"peers", testPeers},
		{"shared events", testSharedEvents},
		{"tensor maps", testTensorMaps},
	}
	for _, sub := range subtests {
		t.Run(sub.name, func(t *testing.T) {
			drv := open(t)
			dev, err := drv.Open(0)
			require.NoError(t, err)
			b := &bench{T: t, drv: drv, dev: dev, info: dev.Info()}
			defer b.end()
			sub.run(b)
			if !b.closed {
				require.NoError(t, dev.CtxSynchronize())
				require.NoError(t, dev.Close())
				b.closed = true
			}
		})
	}
}

// bench is one subtest's device and its assertions.
type bench struct {
	*testing.T
	drv    cudadrv.Driver
	dev    cudadrv.Device
	info   cudadrv.Info
	closed bool // the subtest has closed the device
}

// end closes the device of a failed subtest with its objects, so that later subtests test their own calls.
func (b *bench) end() {
	if !b.closed {
		_ = b.dev.Close()
	}
}

// hasVirtualMemory reports whether the address space and handle calls work. A subtest of its own checks drivers without them.
func (b *bench) hasVirtualMemory() bool { return b.info.Capabilities.Has(cudadrv.VirtualMemory) }

// granules returns n times the granularity.
func (b *bench) granules(n int64) int64 { return n * b.info.GranularityBytes }

// refused asserts that a call failed with a *CallError that names the function and one of the results.
func (b *bench) refused(err error, function string, results ...cudadrv.Result) {
	b.Helper()
	if !assert.Error(b, err, "%s, want %v", function, results) {
		return
	}
	var callError *cudadrv.CallError
	if assert.True(b, errors.As(err, &callError), "%T is no *CallError: %v", err, err) {
		assert.Equal(b, function, callError.Func)
		assert.Contains(b, results, callError.Result, "%v", err)
		assert.ErrorIs(b, err, callError.Result)
	}
}

// ok asserts that a call worked.
func (b *bench) ok(err error) {
	b.Helper()
	require.NoError(b, err)
}

// must asserts that a call worked and gives its result.
func must[T any](value T, err error) func(b *bench) T {
	return func(b *bench) T {
		b.Helper()
		require.NoError(b, err)
		return value
	}
}

// reserve, create and stream are the calls that subtests begin with.
func (b *bench) reserve(bytes int64) cudadrv.Ptr {
	b.Helper()
	return must(b.dev.MemAddressReserve(bytes))(b)
}

func (b *bench) create(bytes int64) cudadrv.Handle {
	b.Helper()
	return must(b.dev.MemCreate(bytes))(b)
}

func (b *bench) stream() cudadrv.Stream {
	b.Helper()
	return must(b.dev.StreamCreate())(b)
}

func (b *bench) event() cudadrv.Event {
	b.Helper()
	return must(b.dev.EventCreate())(b)
}

// freeBytes asks for the free memory.
func (b *bench) freeBytes() int64 {
	b.Helper()
	freeBytes, _, err := b.dev.MemGetInfo()
	require.NoError(b, err)
	return freeBytes
}
