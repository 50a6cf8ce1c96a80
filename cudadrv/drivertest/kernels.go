package drivertest

import (
	"encoding/binary"
	"errors"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// simulated reports whether the device is the simulator's, also inside wrappers, which keep the name of the driver in Info: it
// queues kernels without executing them, and checks no instruction.
func (b *bench) simulated() bool { return b.info.Driver == "sim" }

// kernels returns the device's interface for kernels, if it has one.
func (b *bench) kernels() (cudadrv.Kernels, bool) {
	b.Helper()
	return optional(b, cudadrv.KernelLaunches, func(k cudadrv.Kernels) error {
		_, err := k.ModuleLoadData([]byte(PTX))
		return err
	})
}

// function finds a kernel of a module.
func (b *bench) function(k cudadrv.Kernels, m cudadrv.Module, name string) cudadrv.Function {
	b.Helper()
	return must(k.ModuleGetFunction(m, name))(b)
}

// refusedWithLog asserts that a compiler refused an image, and gave its reason.
func (b *bench) refusedWithLog(err error, words string) {
	b.Helper()
	require.ErrorIs(b, err, cudadrv.InvalidPTX)
	var failure *cudadrv.CallError
	require.True(b, errors.As(err, &failure))
	assert.Contains(b, failure.Detail, words)
}

// roomy returns an image in a longer array, and a function that reports whether the array has not changed.
func roomy(image string) (text []byte, unchanged func() bool) {
	array := append([]byte(image), "the caller's"...)
	before := string(array)
	return array[:len(image)], func() bool { return string(array) == before }
}

func testModules(b *bench) {
	k, ok := b.kernels()
	if !ok {
		return
	}
	for _, image := range []string{PTX, PTX + "\x00", "// a comment in front\n" + PTX} {
		text, unchanged := roomy(image)
		m := must(k.ModuleLoadData(text))(b)
		assert.True(b, unchanged(), "a driver does not write into the caller's memory")
		assert.NotZero(b, m)
		seen := map[cudadrv.Function]bool{0: true}
		for _, name := range []string{"vram_fill32", "vram_add32", "vram_nothing"} {
			f := b.function(k, m, name)
			assert.False(b, seen[f], "%s has a name of its own", name)
			seen[f] = true
		}
		for _, name := range []string{"vram_fill3", "vram_fill322", "vram_word"} {
			_, err := k.ModuleGetFunction(m, name)
			b.refused(err, "cuModuleGetFunction", cudadrv.NotFound)
		}
		_, err := k.ModuleGetFunction(m, "")
		b.refused(err, "cuModuleGetFunction", cudadrv.InvalidValue)
		p, bytes, err := k.ModuleGetGlobal(m, "vram_word")
		b.ok(err)
		assert.EqualValues(b, 4, bytes)
		b.ok(b.dev.MemsetD8Async(p, 7, bytes, 0))
		_, _, err = k.ModuleGetGlobal(m, "vram_wor")
		b.refused(err, "cuModuleGetGlobal", cudadrv.NotFound)
		for _, name := range []string{"vram_nothing", ""} { // a kernel's name is another error than an unknown name
			_, _, err := k.ModuleGetGlobal(m, name)
			b.refused(err, "cuModuleGetGlobal", cudadrv.InvalidValue)
		}
		b.ok(b.dev.CtxSynchronize())
		b.ok(k.ModuleUnload(m))
	}
	if !b.simulated() {
		_, err := k.ModuleLoadData([]byte(mistaken))
		b.refused(err, "cuModuleLoadData", cudadrv.InvalidPTX)
		b.refusedWithLog(err, "nonsense")
	}
	for _, image := range []string{"\x00", ".target sm_70\n"} { // no PTX
		_, err := k.ModuleLoadData([]byte(image))
		b.refused(err, "cuModuleLoadData", cudadrv.InvalidImage)
	}
	_, err := k.ModuleLoadData(nil)
	b.refused(err, "cuModuleLoadData", cudadrv.InvalidValue, cudadrv.InvalidImage)
	_, err = k.ModuleGetFunction(0, "vram_nothing")
	b.refused(err, "cuModuleGetFunction", cudadrv.InvalidHandle)
	b.refused(k.ModuleUnload(0), "cuModuleUnload", cudadrv.InvalidHandle)
}

// The result of linking several texts has the kernels of all, and is no input of another link: it is not relocatable.
func testLinks(b *bench) {
	k, ok := b.kernels()
	if !ok {
		return
	}
	first, unchanged := roomy(head + fill)
	second, alsoUnchanged := roomy(head + sum)
	linked := must(k.LinkImages(first, second))(b)
	assert.True(b, unchanged() && alsoUnchanged(), "a driver does not write into the caller's memory")
	m := must(k.ModuleLoadData(linked))(b)
	b.function(k, m, "vram_fill32")
	b.function(k, m, "vram_add32")
	b.ok(k.ModuleUnload(m))
	if !b.simulated() {
		_, err := k.LinkImages([]byte(PTX), []byte(mistaken))
		b.refusedWithLog(err, "nonsense")
	}
	for _, images := range [][][]byte{{linked}, {[]byte(head + fill), linked}} {
		_, err := k.LinkImages(images...)
		b.refused(err, "cuLinkAddData", cudadrv.NoBinaryForGPU)
	}
	_, err := k.LinkImages()
	b.refused(err, "cuLinkComplete", cudadrv.InvalidValue, cudadrv.InvalidImage)
	_, err = k.LinkImages([]byte(PTX), nil)
	b.refused(err, "cuLinkComplete", cudadrv.InvalidValue, cudadrv.InvalidImage)
}

func testFunctions(b *bench) {
	k, ok := b.kernels()
	if !ok {
		return
	}
	assert.Positive(b, b.info.Compute.Major)
	assert.Positive(b, b.info.Multiprocessors)
	m := must(k.ModuleLoadData([]byte(PTX)))(b)
	f := b.function(k, m, "vram_fill32")
	most := must(k.FuncGetAttribute(f, cudadrv.MaxThreadsPerBlock))(b)
	assert.True(b, most >= 32 && most <= 1024, "%d threads of a block", most)
	assert.Zero(b, must(k.FuncGetAttribute(f, cudadrv.StaticSharedBytes))(b))
	b.ok(k.FuncSetAttribute(f, cudadrv.MaxDynamicSharedBytes, 4096))
	assert.Equal(b, 4096, must(k.FuncGetAttribute(f, cudadrv.MaxDynamicSharedBytes))(b))
	b.refused(k.FuncSetAttribute(f, cudadrv.MaxDynamicSharedBytes, 1<<30), "cuFuncSetAttribute", cudadrv.InvalidValue)
	beyond := int64(1) << 32 // its low half is 0
	b.refused(k.FuncSetAttribute(f, cudadrv.MaxDynamicSharedBytes, int(beyond)), "cuFuncSetAttribute", cudadrv.InvalidValue)
	b.refused(k.FuncSetAttribute(f, cudadrv.Registers, 8), "cuFuncSetAttribute", cudadrv.InvalidValue)
	assert.Zero(b, must(k.FuncGetAttribute(f, cudadrv.ClusterSizeMustBeSet))(b))
	_, err := k.FuncGetAttribute(f, 10000)
	b.refused(err, "cuFuncGetAttribute", cudadrv.InvalidValue)
	_, err = k.FuncGetAttribute(0, cudadrv.Registers)
	b.refused(err, "cuFuncGetAttribute", cudadrv.InvalidHandle)
	b.parameters(k, f, [][2]int64{{0, 8}, {8, 4}, {12, 4}})
	b.parameters(k, b.function(k, m, "vram_add32"), [][2]int64{{0, 8}, {8, 8}, {16, 4}})
	b.parameters(k, b.function(k, m, "vram_nothing"), nil)
	b.occupancy(k, f, most)
	b.ok(k.ModuleUnload(m))
}

// parameters asks for each parameter's place and size, where the driver can tell.
func (b *bench) parameters(k cudadrv.Kernels, f cudadrv.Function, want [][2]int64) {
	b.Helper()
	for i, place := range want {
		offset, bytes, err := k.FuncGetParamInfo(f, i)
		if errors.Is(err, cudadrv.NotSupported) {
			return
		}
		b.ok(err)
		assert.Equal(b, place, [2]int64{offset, bytes}, "parameter %d", i)
	}
	for _, i := range []int{len(want), -1} {
		_, _, err := k.FuncGetParamInfo(f, i)
		b.refused(err, "cuFuncGetParamInfo", cudadrv.InvalidValue, cudadrv.NotSupported)
	}
}

func (b *bench) occupancy(k cudadrv.Kernels, f cudadrv.Function, most int) {
	b.Helper()
	few := must(k.OccupancyMaxActiveBlocksPerMultiprocessor(f, most, 0))(b)
	many := must(k.OccupancyMaxActiveBlocksPerMultiprocessor(f, 128, 0))(b)
	assert.Positive(b, few)
	assert.GreaterOrEqual(b, many, few)
	_, err := k.OccupancyMaxActiveBlocksPerMultiprocessor(f, 0, 0)
	b.refused(err, "cuOccupancyMaxActiveBlocksPerMultiprocessor", cudadrv.InvalidValue)
	for _, bound := range []int{0, 64} {
		blocks, threads, err := k.OccupancyMaxPotentialBlockSize(f, 0, bound)
		b.ok(err)
		assert.Positive(b, blocks)
		assert.Positive(b, threads)
		assert.LessOrEqual(b, threads, most)
		if bound > 0 {
			assert.LessOrEqual(b, threads, bound)
		}
	}
	_, _, err = k.OccupancyMaxPotentialBlockSize(f, -1, 0)
	b.refused(err, "cuOccupancyMaxPotentialBlockSize", cudadrv.InvalidValue)
}

// words packs parameters that are naturally aligned.
func words(values ...any) []byte {
	var packed []byte
	for _, v := range values {
		packed, _ = binary.Append(packed, binary.NativeEndian, v)
	}
	return packed
}

// wide returns a grid with a thread for each of count words.
func wide(count uint32) cudadrv.Geometry {
	const threads = 128
	return cudadrv.Geometry{
		Grid: cudadrv.Dim3{X: (count + threads - 1) / threads, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: threads, Y: 1, Z: 1},
	}
}

// holds asserts that device memory has a word count times, where that can be seen.
func (b *bench) holds(p cudadrv.Ptr, word uint32, count int, s cudadrv.Stream) {
	b.Helper()
	b.holdsPattern(p, words(word), count, s)
}

// holdsPattern asserts that device memory has a pattern count times.
func (b *bench) holdsPattern(p cudadrv.Ptr, pattern []byte, count int, s cudadrv.Stream) {
	b.Helper()
	if h, ok := b.host(); ok {
		seen := make([]byte, len(pattern)*count)
		b.ok(h.MemcpyDtoHAsync(seen, p, s))
		b.ok(b.dev.StreamSynchronize(s))
		for i := range count {
			require.Equal(b, pattern, seen[i*len(pattern):][:len(pattern)], "at %d of %d", i, count)
		}
	}
}

func testLaunches(b *bench) {
	k, ok := b.kernels()
	if !ok {
		return
	}
	const count = 1000
	m := must(k.ModuleLoadData([]byte(PTX)))(b)
	filling, adding := b.function(k, m, "vram_fill32"), b.function(k, m, "vram_add32")
	p, q := must(b.dev.MemAlloc(4*count+4))(b), must(b.dev.MemAlloc(4*count))(b)
	s := b.stream()
	for i, on := range []cudadrv.Stream{s, 0} {
		b.ok(b.dev.MemsetD8Async(p, 0xee, 4*count+4, on))
		params := words(p, uint32(40+i), uint32(count))
		b.ok(k.LaunchKernel(filling, wide(count), params, on))
		clear(params) // they were read
		b.ok(k.LaunchKernel(filling, wide(count), words(q, uint32(2), uint32(count)), on))
		b.ok(k.LaunchKernel(adding, wide(count), words(p, q, uint32(count)), on))
		b.ok(k.LaunchKernel(b.function(k, m, "vram_nothing"), wide(1), nil, on))
		b.ok(b.dev.StreamSynchronize(on))
		if !b.simulated() {
			b.holds(p, uint32(42+i), count, on)
			b.holds(p+4*count, 0xeeeeeeee, 1, on) // after the last word
		}
	}
	b.launchMistakes(k, filling, words(p, uint32(1), uint32(count)), s)
	b.launchInOrder(k, filling, p, s)
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.StreamDestroy(s))
	b.ok(k.ModuleUnload(m))
	b.ok(b.dev.MemFree(p))
	b.ok(b.dev.MemFree(q))
}

// launchMistakes checks launches that are refused at once, without effect.
func (b *bench) launchMistakes(k cudadrv.Kernels, f cudadrv.Function, params []byte, s cudadrv.Stream) {
	b.Helper()
	b.refused(k.LaunchKernel(0, wide(1), params, s), "cuLaunchKernel", cudadrv.InvalidHandle)
	for _, g := range []cudadrv.Geometry{
		{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}},
		{Block: cudadrv.Dim3{X: 1, Y: 1, Z: 1}},
		{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 2048, Y: 1, Z: 1}},
		{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 32, Y: 1, Z: 1}, SharedBytes: 1 << 30},
		{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 32, Y: 1, Z: 1}, SharedBytes: 1 << 32}, // the low half is 0
		{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 32, Y: 1, Z: 1}, SharedBytes: -1},
	} {
		b.refused(k.LaunchKernel(f, g, params, s), "cuLaunchKernel", cudadrv.InvalidValue)
	}
	more := append(words(uint64(0)), params...) // fewer would run with anything
	b.refused(k.LaunchKernel(f, wide(1), more, s), "cuLaunchKernel", cudadrv.LaunchOutOfResources)
	b.ok(k.LaunchKernel(f, wide(1), params, s))
}

// launchInOrder blocks a stream: the kernel runs after earlier work, with the parameters of the launch.
func (b *bench) launchInOrder(k cudadrv.Kernels, f cudadrv.Function, p cudadrv.Ptr, s cudadrv.Stream) {
	b.Helper()
	l, ok := b.dev.(cudadrv.HostFunctions)
	if !ok || !b.info.Capabilities.Has(cudadrv.HostCalls) {
		return
	}
	release, done := make(chan struct{}), b.event()
	b.ok(l.LaunchHostFunc(s, func() { <-release }))
	b.ok(b.dev.MemsetD8Async(p, 0, 64, s))
	params := words(p, uint32(0x1234), uint32(16))
	b.ok(k.LaunchKernel(f, wide(16), params, s))
	b.ok(b.dev.EventRecord(done, s))
	clear(params)
	assert.False(b, must(b.dev.EventQuery(done))(b))
	close(release)
	b.ok(b.dev.EventSynchronize(done))
	if !b.simulated() {
		b.holds(p, 0x1234, 16, s)
	}
	b.ok(b.dev.EventDestroy(done))
}
