//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/go-vram/vram/cudadrv/drivertest"
)

// packed is a list for cuLaunchKernel that names so many bytes of parameters.
func (q *questions) packed(params []byte, bytes uintptr) uintptr {
	size := &[1]uintptr{bytes}
	list := &[5]uintptr{1, q.address(&params[0]), 2, q.address(size), 0}
	return q.address(list)
}

// module loads the suite's kernels.
func (q *questions) module() uintptr {
	return q.made("cuModuleLoadDataEx", q.text(drivertest.PTX), 0, 0, 0)
}

func askKernels(q *questions) {
	module := q.module()
	askImages(q, module)
	fill := q.made("cuModuleGetFunction", module, q.text("vram_fill32"))
	for attribute := range uintptr(16) {
		q.ask(fmt.Sprint("attribute ", attribute), "cuFuncGetAttribute", q.out(), attribute, fill)
	}
	q.ask("attribute 10000", "cuFuncGetAttribute", q.out(), 10000, fill)
	for _, bytes := range []uintptr{0, 4096, 99 << 10, 1 << 30, ^uintptr(0)} {
		q.ask(fmt.Sprintf("%d dynamic bytes", int32(bytes)), "cuFuncSetAttribute", fill, 8, bytes)
	}
	q.ok("cuFuncSetAttribute", fill, 8, 48<<10)
	for _, percent := range []uintptr{50, 101, ^uintptr(0), ^uintptr(1)} {
		q.ask(fmt.Sprint("carveout ", int32(percent)), "cuFuncSetAttribute", fill, 9, percent)
	}
	q.ask("registers", "cuFuncSetAttribute", fill, 4, 8)
	for i := range uintptr(4) {
		clear(q.block[:16])
		q.ask(fmt.Sprint("parameter ", i), "cuFuncGetParamInfo", fill, i, q.out(), q.out()+8)
		q.answer(fmt.Sprint("parameter ", i, ", place and bytes"), fmt.Sprint(q.uint64(), binary.NativeEndian.Uint64(q.block[8:])))
	}
	q.ask("no size wanted", "cuFuncGetParamInfo", fill, 0, q.out(), 0)
	for _, threads := range []uintptr{0, 1, 1024, 1025, ^uintptr(0)} {
		q.ask(fmt.Sprint(int32(threads), " threads"), "cuOccupancyMaxActiveBlocksPerMultiprocessor", q.out(), fill, threads, 0)
		q.answer(fmt.Sprint(int32(threads), " threads, some blocks"), fmt.Sprint(q.int32() > 0))
	}
	q.ask("1 GiB shared", "cuOccupancyMaxActiveBlocksPerMultiprocessor", q.out(), fill, 128, 1<<30)
	for _, bound := range []uintptr{0, 64, 5000, ^uintptr(0)} {
		q.ask(fmt.Sprint("at most ", int32(bound)), "cuOccupancyMaxPotentialBlockSize", q.out(), q.out()+8, fill, 0, 0, bound)
	}
	askLaunches(q, fill)
	q.ok("cuCtxSynchronize")
	q.ok("cuModuleUnload", module)
}

func askImages(q *questions, module uintptr) {
	const head = ".version 7.0\n.target sm_70\n.address_size 64\n"
	for _, image := range []struct{ what, text string }{
		{"empty text", ""},
		{"no version", ".target sm_70\n"},
		{"only a head", head},
		{"a comment", "// nothing\n" + head},
		{"version 99", strings.Replace(head, "7.0", "99.0", 1)},
		{"an instruction that there is not", head + ".visible .entry k() { nonsense.u32 %r1; ret; }"},
		{"an end that is missing", head + ".visible .entry k() { ret;"},
	} {
		if q.asked(image.what+", cuModuleLoadDataEx", "cuModuleLoadDataEx", q.out(), q.text(image.text), 0, 0, 0) && q.uint64() != 0 {
			q.ok("cuModuleUnload", uintptr(q.uint64()))
		}
	}
	for _, name := range []string{"vram_nothing", "vram_word", "vram", ""} {
		q.ask("name "+name, "cuModuleGetFunction", q.out(), module, q.text(name))
		q.ask("name "+name, "cuModuleGetGlobal_v2", q.out(), q.out()+8, module, q.text(name))
	}
	a, b := q.made("cuModuleGetFunction", module, q.text("vram_add32")), q.made("cuModuleGetFunction", module, q.text("vram_add32"))
	q.answer("asked twice, one function", fmt.Sprint(a == b))

	runtime.LockOSThread() // a link stays on its thread
	defer runtime.UnlockOSThread()
	link := q.out() + 64
	text := drivertest.PTX
	q.ok("cuLinkCreate_v2", 0, 0, 0, link)
	state := uintptr(binary.NativeEndian.Uint64(q.block[64:]))
	q.ask("PTX", "cuLinkAddData_v2", state, 1, q.text(text), uintptr(len(text)+1), 0, 0, 0, 0)
	q.ask("linked", "cuLinkComplete", state, q.out(), q.out()+8)
	linked, bytes := uintptr(q.uint64()), uintptr(binary.NativeEndian.Uint64(q.block[8:]))
	q.ok("cuLinkCreate_v2", 0, 0, 0, link)
	again := uintptr(binary.NativeEndian.Uint64(q.block[64:]))
	q.ask("what was linked", "cuLinkAddData_v2", again, 0, linked, bytes, 0, 0, 0, 0)
	q.ask("what was linked", "cuLinkComplete", again, q.out(), q.out()+8)
	q.ok("cuLinkDestroy", again)
	q.ok("cuLinkDestroy", state)
	q.ok("cuLinkCreate_v2", 0, 0, 0, link)
	state = uintptr(binary.NativeEndian.Uint64(q.block[64:]))
	wrong := head + ".visible .entry k() { nonsense.u32 %r1; ret; }"
	q.ask("an instruction that there is not", "cuLinkAddData_v2", state, 1, q.text(wrong), uintptr(len(wrong)+1), 0, 0, 0, 0)
	q.ask("PTX as a cubin", "cuLinkAddData_v2", state, 0, q.text(text), uintptr(len(text)+1), 0, 0, 0, 0)
	q.ask("no bytes", "cuLinkAddData_v2", state, 1, q.text(text), 0, 0, 0, 0, 0)
	q.ok("cuLinkDestroy", state)
}

func askLaunches(q *questions, fill uintptr) {
	p, s := q.plain(4096), q.stream()
	params := make([]byte, 64)
	binary.NativeEndian.PutUint64(params, uint64(p))
	binary.NativeEndian.PutUint32(params[12:], 16)
	list := q.packed(params, 16)
	q.ask("usual", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, s, 0, list)
	q.ask("stream 0", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, 0, 0, list)
	for _, d := range [][6]uintptr{
		{0, 1, 1, 64, 1, 1},
		{1, 0, 1, 64, 1, 1},
		{1, 1, 1, 0, 1, 1},
		{1, 1, 1, 64, 1, 0},
		{1, 1, 1, 2048, 1, 1},
		{1, 1, 1, 1024, 2, 1},
		{1, 1, 1, 1, 1, 65},
		{1, 65536, 1, 1, 1, 1},
		{1, 1, 65536, 1, 1, 1},
		{1 << 31, 1, 1, 1, 1, 1},
	} {
		q.ask(fmt.Sprint("shape ", d), "cuLaunchKernel", fill, d[0], d[1], d[2], d[3], d[4], d[5], 0, s, 0, list)
	}
	for _, bytes := range []uintptr{48 << 10, 48<<10 + 1, 1 << 20} {
		q.ask(fmt.Sprint(bytes, " shared bytes"), "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, bytes, s, 0, list)
	}
	single := &[3]uintptr{q.address(&params[0]), q.address(&params[8]), q.address(&params[12])}
	q.ask("single parameters", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, s, q.address(single), 0)
	q.ask("both kinds of parameters", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, s, q.address(single), list)
	q.ask("15 bytes of 16", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, s, 0, q.packed(params, 15))
	q.ask("24 bytes of 16", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, s, 0, q.packed(params, 24))
	q.ok("cuCtxSetCurrent", 0)
	q.ask("no context", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, s, 0, list)
	q.ask("no context, stream 0", "cuLaunchKernel", fill, 1, 1, 1, 64, 1, 1, 0, 0, 0, list)
	q.ask("no context", "cuFuncGetAttribute", q.out(), 0, fill)
	q.ok("cuCtxSetCurrent", q.context)
	q.ok("cuStreamSynchronize", s)
	q.ok("cuStreamDestroy_v2", s)
	q.ok("cuMemFree_v2", p)
}

// capturedGraph returns the graph of the work that f gives a stream.
func (q *questions) capturedGraph(s uintptr, f func()) uintptr {
	q.ok("cuStreamBeginCapture_v2", s, 2)
	f()
	q.ok("cuStreamEndCapture", s, q.out())
	return uintptr(q.uint64())
}

// nodes are the first nodes of a graph, in the driver's order.
func (q *questions) nodes(graph uintptr) []uintptr {
	list := new([16]uintptr)
	count := &[1]uintptr{uintptr(len(list))}
	q.ok("cuGraphGetNodes", graph, q.address(list), q.address(count))
	return list[:count[0]]
}

func (q *questions) kinds(graph uintptr) string {
	var kinds []string
	for _, n := range q.nodes(graph) {
		q.ok("cuGraphNodeGetType", n, q.out())
		kinds = append(kinds, fmt.Sprint(q.int32()))
	}
	return strings.Join(kinds, " ")
}

func askGraphs(q *questions) {
	module := q.module()
	nothing := q.made("cuModuleGetFunction", module, q.text("vram_nothing"))
	p, s, e := q.plain(8192), q.stream(), q.event()
	launch := func() { q.ok("cuLaunchKernel", nothing, 1, 1, 1, 64, 1, 1, 0, s, 0, 0) }
	one := q.capturedGraph(s, launch)
	exec := q.made("cuGraphInstantiateWithFlags", one, 0)
	rows := [16]uintptr{4: p, 6: 64, 11: p + 4096, 13: 64, 14: 32, 15: 4}
	*(*uint32)(unsafe.Pointer(&rows[2])), *(*uint32)(unsafe.Pointer(&rows[9])) = 2, 2
	all := q.capturedGraph(s, func() {
		q.ok("cuMemsetD8Async", p, 1, 4096, s)
		launch()
		q.ok("cuMemcpyDtoDAsync_v2", p+4096, p, 4096, s)
		q.ok("cuMemsetD32Async", p, 1, 16, s)
		q.ok("cuMemcpy2DAsync_v2", q.address(&rows), s)
		q.ok("cuEventRecord", e, s)
	})
	q.answer("kinds of nodes", q.kinds(all))
	q.ask("flags 16", "cuGraphInstantiateWithFlags", q.out(), one, 16)
	q.ask("no place", "cuGraphNodeGetType", q.nodes(one)[0], 0)
	askUpdates(q, exec, one, all, nothing, launch, s)
	askInCaptures(q, exec, one, nothing)
	askThreads(q)
	q.ok("cuGraphDestroy", all)
	q.ok("cuGraphExecDestroy", exec)
	q.ok("cuGraphDestroy", one)
	q.ok("cuEventDestroy_v2", e)
	q.ok("cuStreamDestroy_v2", s)
	q.ok("cuModuleUnload", module)
}

// askUpdates asks which changes a graph of one kernel allows.
func askUpdates(q *questions, exec, one, all, nothing uintptr, launch func(), s uintptr) {
	info := new([3]uintptr)
	two := q.capturedGraph(s, func() { launch(); launch() })
	p := q.plain(4096)
	memset := q.capturedGraph(s, func() { q.ok("cuMemsetD8Async", p, 1, 4096, s) })
	for _, with := range []struct {
		what  string
		graph uintptr
	}{{"itself", one}, {"two nodes", two}, {"another kind", memset}} {
		q.ask(with.what, "cuGraphExecUpdate_v2", exec, with.graph, q.address(info))
		q.answer(with.what+", reason", fmt.Sprint(int32(info[0])))
	}
	q.ask("after failures", "cuGraphLaunch", exec, s)
	params := &struct { // CUDA_KERNEL_NODE_PARAMS
		function    uintptr
		grid, block [3]uint32
		_           [9]uint32 // no shared memory and no parameters
	}{function: nothing, grid: [3]uint32{1, 1, 1}, block: [3]uint32{32, 1, 1}}
	at := q.address(params)
	q.ask("its node", "cuGraphExecKernelNodeSetParams_v2", exec, q.nodes(one)[0], at)
	q.ask("another graph's node", "cuGraphExecKernelNodeSetParams_v2", exec, q.nodes(two)[0], at)
	q.ask("a memset's node", "cuGraphExecKernelNodeSetParams_v2", exec, q.nodes(all)[0], at)
	params.block[0] = 2048
	q.ask("2048 threads", "cuGraphExecKernelNodeSetParams_v2", exec, q.nodes(one)[0], at)
	q.ask("usual", "cuGraphUpload", exec, s)
	q.ask("usual", "cuGraphLaunch", exec, s)
	q.ok("cuStreamSynchronize", s)
	q.ok("cuGraphDestroy", two)
	q.ok("cuGraphDestroy", memset)
	q.ok("cuMemFree_v2", p)
}

// askInCaptures asks which functions may be called while a stream is captured, each in a capture of its own.
func askInCaptures(q *questions, exec, graph, function uintptr) {
	s, other, timed := q.stream(), q.stream(), q.made("cuEventCreate", 0)
	q.ok("cuEventRecord", timed, other)
	q.ok("cuStreamSynchronize", other)
	page := make([]byte, 2*4096)
	at := (q.address(&page[0]) + 4095) / 4096 * 4096
	worked := false // the last call that was asked for
	captured := func(mode uintptr, what, name string, arguments ...uintptr) (made uintptr) {
		clear(q.block[16:24])
		q.ok("cuStreamBeginCapture_v2", s, mode)
		worked = q.asked(what+", "+name, name, arguments...)
		made = uintptr(binary.NativeEndian.Uint64(q.block[16:]))
		if q.asked(what+" "+name+", then, cuStreamEndCapture", "cuStreamEndCapture", s, q.out()) && q.uint64() != 0 {
			q.ok("cuGraphDestroy", uintptr(q.uint64()))
		}
		return made
	}
	for mode, name := range []string{"global", "thread-local", "relaxed"} {
		what, mode := "capture "+name, uintptr(mode)
		if module := captured(mode, what, "cuModuleLoadDataEx", q.out()+16, q.text(drivertest.PTX), 0, 0, 0); module != 0 {
			captured(mode, what, "cuModuleGetFunction", q.out()+16, module, q.text("vram_fill32"))
			captured(mode, what, "cuModuleUnload", module)
			if !worked {
				q.ok("cuModuleUnload", module)
			}
		}
		captured(mode, what, "cuFuncGetAttribute", q.out(), 0, function)
		made := captured(mode, what, "cuGraphInstantiateWithFlags", q.out()+16, graph, 0)
		if made == 0 { // it was refused
			made = q.made("cuGraphInstantiateWithFlags", graph, 0)
		}
		captured(mode, what, "cuGraphExecDestroy", made)
		if !worked {
			q.ok("cuGraphExecDestroy", made)
		}
		captured(mode, what, "cuGraphUpload", exec, s)
		captured(mode, what+", another stream", "cuGraphUpload", exec, other)
		captured(mode, what, "cuGraphLaunch", exec, s)
		captured(mode, what+", another stream", "cuGraphLaunch", exec, other)
		captured(mode, what, "cuEventElapsedTime", q.out(), timed, timed)
		if h := captured(mode, what, "cuMemCreate", q.out()+16, granuleBytes, q.address(prop(0, 0)), 0); h != 0 {
			captured(mode, what, "cuMemRelease", h)
		}
		captured(mode, what, "cuMemHostRegister_v2", at, 4096, 0)
		q.result("cuMemHostRegister_v2", at, 4096, 0) // where it was refused
		captured(mode, what, "cuMemHostUnregister", at)
		q.result("cuMemHostUnregister", at)
		captured(mode, what, "cuStreamGetCaptureInfo_v2", s, q.out(), q.out()+8, 0, 0, 0)
		if stream := captured(mode, what, "cuStreamCreate", q.out()+16, 1); stream != 0 {
			captured(mode, what, "cuStreamDestroy_v2", stream)
		}
		if event := captured(mode, what, "cuEventCreate", q.out()+16, 2); event != 0 {
			captured(mode, what, "cuEventDestroy_v2", event)
		}
	}
	q.ok("cuEventDestroy_v2", timed)
	q.ok("cuStreamDestroy_v2", s)
	q.ok("cuStreamDestroy_v2", other)
}

// askThreads asks which calls captures forbid to other threads, and to threads that have changed their mode.
func askThreads(q *questions) {
	s, e := q.stream(), q.event()
	const relaxed = 2
	out := q.out() + 16
	for mode, name := range []string{"global", "thread-local", "relaxed"} {
		begun := func(f func()) {
			q.ok("cuStreamBeginCapture_v2", s, uintptr(mode))
			f()
			if q.asked("capture "+name+", then, cuStreamEndCapture", "cuStreamEndCapture", s, q.out()) && q.uint64() != 0 {
				q.ok("cuGraphDestroy", uintptr(q.uint64()))
			}
		}
		begun(func() {
			onAnotherThread(func() { q.ask("capture "+name+", another thread", "cuEventQuery", e) })
		})
		begun(func() {
			onAnotherThread(func() {
				own := &[1]uint32{relaxed}
				q.ok("cuThreadExchangeStreamCaptureMode", q.address(own))
				q.ask("capture "+name+", another thread, relaxed", "cuEventQuery", e)
			})
		})
		begun(func() {
			own := &[1]uint32{relaxed}
			q.ok("cuThreadExchangeStreamCaptureMode", q.address(own))
			q.answer("capture "+name+", mode of the thread", fmt.Sprint(own[0]))
			q.ask("capture "+name+", its thread, relaxed", "cuEventQuery", e)
			q.ok("cuThreadExchangeStreamCaptureMode", q.address(own))
		})
		q.ok("cuStreamBeginCapture_v2", s, uintptr(mode))
		clear(q.block[:24])
		onAnotherThread(func() { q.ask("capture "+name+", another thread", "cuStreamEndCapture", s, out) })
		q.ask("capture "+name+", another thread has ended it", "cuStreamIsCapturing", s, q.out())
		q.answer("capture "+name+", another thread has ended it, status", fmt.Sprint(q.int32()))
		if graph := binary.NativeEndian.Uint64(q.block[16:]); graph != 0 {
			q.ok("cuGraphDestroy", uintptr(graph))
		}
		if mode != relaxed {
			q.ask("capture "+name+", another thread has ended it", "cuStreamEndCapture", s, out)
		}
	}
	q.ok("cuEventDestroy_v2", e)
	q.ok("cuStreamDestroy_v2", s)
}

func askPeers(q *questions) {
	p, s, plain := q.plain(8192), q.stream(), q.event()
	q.ask("itself", "cuDeviceCanAccessPeer", q.out(), 0, 0)
	q.answer("itself, a peer", fmt.Sprint(q.int32()))
	q.ask("device 99", "cuDeviceCanAccessPeer", q.out(), 0, 99)
	q.ask("itself", "cuMemcpyPeerAsync", p, q.context, p+4096, q.context, 4096, s)
	q.ask("no bytes", "cuMemcpyPeerAsync", p, q.context, p+4096, q.context, 0, s)
	q.ask("stream 0", "cuMemcpyPeerAsync", p, q.context, p+4096, q.context, 4096, 0)
	rows := new([16]uintptr)
	for _, ask := range []struct {
		what                        string
		from, to, width, count, src uintptr
	}{
		{"rows", 64, 128, 32, 8, p},
		{"rows side by side", 32, 32, 32, 8, p},
		{"rows over each other", 31, 64, 32, 8, p},
		{"rows into each other", 64, 31, 32, 8, p},
		{"no width", 64, 64, 0, 8, p},
		{"no rows", 64, 64, 32, 0, p},
		{"one row without a pitch", 0, 0, 32, 1, p},
		{"rows without a pitch", 0, 0, 32, 8, p},
		{"rows from 0", 64, 64, 32, 8, 0},
	} {
		*rows = [16]uintptr{4: ask.src, 6: ask.from, 11: p + 4096, 13: ask.to, 14: ask.width, 15: ask.count}
		*(*uint32)(unsafe.Pointer(&rows[2])), *(*uint32)(unsafe.Pointer(&rows[9])) = 2, 2
		q.ask(ask.what, "cuMemcpy2DAsync_v2", q.address(rows), s)
	}
	shared := q.made("cuEventCreate", 6)
	handle := new([8]uint64)
	q.ask("flags 7", "cuEventCreate", q.out()+16, 7)
	q.ok("cuEventDestroy_v2", uintptr(binary.NativeEndian.Uint64(q.block[16:])))
	q.ask("no shared event", "cuIpcGetEventHandle", q.address(handle), plain)
	q.ask("shared event", "cuIpcGetEventHandle", q.address(handle), shared)
	if words := handle; runtime.GOARCH == "amd64" { // by value: on the stack there, and by its address on arm64
		q.ask("in the same process", "cuIpcOpenEventHandle", q.out(), 0, 0, 0, 0, 0, uintptr(words[0]), uintptr(words[1]), uintptr(words[2]),
			uintptr(words[3]), uintptr(words[4]), uintptr(words[5]), uintptr(words[6]), uintptr(words[7]))
	} else {
		q.ask("in the same process", "cuIpcOpenEventHandle", q.out(), q.address(handle))
	}
	q.ok("cuCtxSynchronize")
	q.ok("cuEventDestroy_v2", shared)
	q.ok("cuEventDestroy_v2", plain)
	q.ok("cuStreamDestroy_v2", s)
	q.ok("cuMemFree_v2", p)
}
