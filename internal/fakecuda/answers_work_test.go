//go:build linux && (amd64 || arm64)

package fakecuda_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"unsafe"
)

func askStreams(q *questions) {
	q.ask("flags 2", "cuStreamCreate", q.out(), 2)
	q.ask("priority -100", "cuStreamCreateWithPriority", q.out(), 1, ^uintptr(99))
	low := uintptr(q.uint64())
	q.ok("cuStreamGetPriority", low, q.out())
	q.answer("priority -100 is", fmt.Sprint(q.int32()))
	q.ok("cuStreamDestroy_v2", low)
	for _, s := range []uintptr{0, 1, 2} {
		what := fmt.Sprint("stream ", s)
		q.ask(what, "cuStreamQuery", s)
		q.ask(what, "cuStreamSynchronize", s)
		q.ask(what, "cuStreamGetFlags", s, q.out())
		q.answer(what+", flags", fmt.Sprint(q.int32()))
		q.ask(what, "cuStreamGetPriority", s, q.out())
		q.ask(what, "cuStreamIsCapturing", s, q.out())
	}
	q.ask("stream 0", "cuStreamDestroy_v2", 0)
	q.ask("stream 1", "cuStreamDestroy_v2", 1)

	q.ask("flags 8", "cuEventCreate", q.out(), 8)
	q.ask("flags 4", "cuEventCreate", q.out(), 4)
	s, e, timed := q.stream(), q.event(), q.made("cuEventCreate", 0)
	q.ask("never recorded", "cuEventQuery", e)
	q.ask("never recorded", "cuEventSynchronize", e)
	q.ask("never recorded", "cuStreamWaitEvent", s, e, 0)
	q.ask("never recorded", "cuEventElapsedTime", q.out(), timed, timed)
	q.ask("flags 2", "cuStreamWaitEvent", s, e, 2)
	q.ok("cuEventRecord", e, s)
	q.ok("cuEventRecord", timed, s)
	q.ok("cuStreamSynchronize", s)
	q.ask("without timing", "cuEventElapsedTime", q.out(), e, timed)
	q.ask("itself", "cuEventElapsedTime", q.out(), timed, timed)
	q.ask("event 0", "cuEventQuery", 0)
	q.ask("event 0", "cuEventSynchronize", 0)
	q.ask("event 0", "cuEventRecord", 0, s)
	q.ask("event 0", "cuEventDestroy_v2", 0)
	q.ask("event 0", "cuStreamWaitEvent", s, 0, 0)

	p, host := q.plain(4096), q.made("cuMemHostAlloc", 4096, 0)
	q.ask("device memory", "cuStreamWriteValue32_v2", s, p, 5, 0)
	q.ask("pinned memory", "cuStreamWriteValue32_v2", s, host, 5, 0)
	q.ask("pinned memory", "cuStreamWriteValue64_v2", s, host+8, 5, 0)
	q.ask("no barrier", "cuStreamWriteValue32_v2", s, host, 5, 1)
	q.ask("no barrier", "cuStreamWriteValue64_v2", s, host+8, 5, 1)
	q.ask("misaligned", "cuStreamWriteValue32_v2", s, host+2, 5, 0)
	q.ask("misaligned", "cuStreamWriteValue64_v2", s, host+4, 5, 0)
	q.ask("flags 2", "cuStreamWriteValue32_v2", s, host, 5, 2)
	q.ask("pageable memory", "cuStreamWriteValue32_v2", s, q.out(), 5, 0)
	q.ask("address 0", "cuStreamWriteValue32_v2", s, 0, 5, 0)
	q.ask("equal", "cuStreamWaitValue32_v2", s, host, 5, 1)
	q.ask("and", "cuStreamWaitValue32_v2", s, host, 4, 2)
	q.ask("nor", "cuStreamWaitValue32_v2", s, host, 4, 3)
	q.ask("flags 4", "cuStreamWaitValue32_v2", s, host, 4, 4)
	q.ask("on stream 0", "cuStreamWriteValue32_v2", 0, host, 5, 0)
	q.ok("cuStreamSynchronize", s)
	q.ask("no function", "cuLaunchHostFunc", s, 0, 0)

	q.ok("cuMemFree_v2", p)
	q.ok("cuMemFreeHost", host)
	for _, event := range []uintptr{e, timed} {
		q.ok("cuEventDestroy_v2", event)
	}
	q.ok("cuStreamDestroy_v2", s)
}

// askCapture asks which functions may be called while a stream is captured, each in a capture of its own, and for the
// resulting nodes.
func askCapture(q *questions) {
	s, other, e, never := q.stream(), q.stream(), q.event(), q.event()
	p, plain := q.plain(4096), q.plain(4096)
	q.ok("cuEventRecord", e, other)
	reserved, h := q.made("cuMemAddressReserve", 2*granuleBytes, 0, 0, 0), q.create(granuleBytes, prop(0, 0))
	captured := func(mode uintptr, what, name string, arguments ...uintptr) {
		q.ok("cuStreamBeginCapture_v2", s, mode)
		q.ask(what, name, arguments...)
		if q.asked(what+" "+name+", then, cuStreamEndCapture", "cuStreamEndCapture", s, q.out()) && q.uint64() != 0 {
			q.ok("cuGraphDestroy", uintptr(q.uint64()))
		}
	}
	const global, local, relaxed = 0, 1, 2
	for mode, name := range []string{"global", "thread-local", "relaxed"} {
		what, mode := "capture "+name, uintptr(mode)
		captured(mode, what, "cuStreamQuery", s)
		captured(mode, what, "cuStreamSynchronize", s)
		q.ok("cuStreamSynchronize", other)
		captured(mode, what+", another stream", "cuStreamQuery", other)
		captured(mode, what+", another stream", "cuStreamSynchronize", other)
		captured(mode, what, "cuCtxSynchronize")
		captured(mode, what, "cuEventQuery", e)
		captured(mode, what, "cuEventSynchronize", e)
		captured(mode, what, "cuEventRecord", never, other)
		captured(mode, what, "cuMemGetInfo_v2", q.out(), q.out()+8)
		captured(mode, what, "cuMemFree_v2", 0)
		captured(mode, what, "cuMemHostAlloc", q.out()+16, 4096, 0)
		host := q.made("cuMemHostAlloc", 4096, 0)
		captured(mode, what, "cuMemFreeHost", host)
		q.result("cuMemFreeHost", host) // where it was refused
		captured(mode, what, "cuStreamCreate", q.out()+16, 1)
		captured(mode, what, "cuEventCreate", q.out()+16, 2)
		captured(mode, what, "cuMemMap", reserved, granuleBytes, 0, h, 0)
		captured(mode, what, "cuMemSetAccess", reserved, granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
		captured(mode, what, "cuMemUnmap", reserved, granuleBytes)
		q.result("cuMemUnmap", reserved, granuleBytes)
		captured(mode, what, "cuMemsetD8Async", p, 1, 8, s)
		captured(mode, what+", another stream", "cuMemsetD8Async", p, 1, 8, other)
		captured(mode, what+", legacy stream", "cuMemsetD8Async", p, 1, 8, 0)
		captured(mode, what, "cuMemsetD8_v2", p, 1, 8)
		captured(mode, what, "cuMemcpyHtoD_v2", p, q.out()+64, 8)
		captured(mode, what, "cuMemcpyDtoH_v2", q.out()+64, p, 8)
		captured(mode, what, "cuMemcpyHtoDAsync_v2", p, q.out()+64, 8, s)
		captured(mode, what, "cuEventRecord", e, s)
		q.ask(what+", captured event", "cuEventQuery", e)
		q.ask(what+", captured event", "cuEventSynchronize", e)
		q.ask(what+", captured event", "cuStreamWaitEvent", other, e, 0)
		q.ok("cuEventRecord", e, other)
		captured(mode, what+", event from outside", "cuStreamWaitEvent", s, e, 0)
		captured(mode, what, "cuStreamIsCapturing", s, q.out()+16)
		captured(mode, what, "cuStreamBeginCapture_v2", s, mode)
		clear(q.block[16:24])
		captured(mode, what, "cuMemAlloc_v2", q.out()+16, 4096)
		if extra := binary.NativeEndian.Uint64(q.block[16:]); mode == relaxed && extra != 0 {
			q.ok("cuMemFree_v2", uintptr(extra))
		}
	}
	captured(relaxed, "capture relaxed", "cuMemFree_v2", plain)
	captured(global, "capture global", "cuMemFree_v2", p)
	q.result("cuMemFree_v2", p)

	q.ask("not capturing", "cuStreamEndCapture", s, q.out())
	q.ask("legacy stream", "cuStreamBeginCapture_v2", 0, 0)
	q.ask("mode 3", "cuStreamBeginCapture_v2", s, 3)
	q.ok("cuStreamBeginCapture_v2", s, local)
	q.ok("cuEventRecord", e, s)
	q.ok("cuStreamWaitEvent", other, e, 0)
	q.ask("forked", "cuStreamIsCapturing", other, q.out())
	q.answer("forked, status", fmt.Sprint(q.int32()))
	q.ask("forked", "cuStreamEndCapture", other, q.out())
	q.ask("forked, origin", "cuStreamEndCapture", s, q.out())
	q.ask("forked, after", "cuStreamIsCapturing", other, q.out())
	q.answer("forked, after, status", fmt.Sprint(q.int32()))
	q.ok("cuEventRecord", e, other)
	for _, event := range []uintptr{e, never} {
		q.ok("cuEventDestroy_v2", event)
	}
	q.ok("cuStreamDestroy_v2", s)
	q.ok("cuStreamDestroy_v2", other)
	q.ok("cuMemRelease", h)
	q.ok("cuMemAddressFree", reserved, 2*granuleBytes)
}

func askContexts(q *questions) {
	context := q.context
	q.ask("primary", "cuCtxDestroy_v2", context)
	q.ask("context 0", "cuCtxDestroy_v2", 0)
	q.ask("context 0", "cuCtxPushCurrent_v2", 0)
	var made uintptr
	q.ask("device 99", "cuCtxCreate_v2", q.out(), 0, 99)
	q.ok("cuCtxCreate_v2", uintptr(unsafe.Pointer(&made)), 0, 0)
	var now uintptr
	q.ok("cuCtxGetCurrent", uintptr(unsafe.Pointer(&now)))
	q.answer("a created context is current", fmt.Sprint(now == made))
	s, e, p := q.stream(), q.event(), q.plain(4096)
	q.ok("cuCtxSetCurrent", context)
	own := q.stream()
	q.ask("another context's event", "cuEventRecord", e, own)
	q.ask("another context's event", "cuStreamWaitEvent", own, e, 0)
	q.ask("another context's event", "cuEventQuery", e)
	q.ask("another context's memory", "cuMemsetD8Async", p, 1, 8, own)
	q.ask("another context's memory and stream", "cuMemsetD8Async", p, 1, 8, s)
	q.ask("another context's stream", "cuStreamSynchronize", s)
	q.ask("another context's memory", "cuMemFree_v2", p)
	q.ok("cuStreamDestroy_v2", own)
	q.ok("cuCtxSetCurrent", made)
	q.ask("current", "cuCtxDestroy_v2", made)
	q.ok("cuCtxGetCurrent", uintptr(unsafe.Pointer(&now)))
	q.answer("after destroying the current context, current", fmt.Sprint(now != 0))
	q.ask("after destroying the current context", "cuMemAlloc_v2", q.out(), 4096)
	for range 3 {
		q.result("cuCtxPopCurrent_v2", q.out())
	}
	q.ask("nothing left", "cuCtxPopCurrent_v2", q.out())
	q.ok("cuCtxGetCurrent", uintptr(unsafe.Pointer(&now)))
	q.answer("nothing left, current", fmt.Sprint(now))
	q.ask("context 0", "cuCtxSetCurrent", 0)
}

// onAnotherThread calls f on a thread that ends with it, and that has made no call before.
func onAnotherThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and not unlocked: the thread goes with the goroutine
		f()
	}()
	<-done
}

// askWithout asks which calls work on a thread without a current context, and after the primary context was released.
func askWithout(q *questions) {
	context := q.context
	q.ok("cuCtxSetCurrent", context)
	s, e, p := q.stream(), q.event(), q.plain(4096)
	host := q.made("cuMemHostAlloc", 4096, 0)
	reserved, h := q.made("cuMemAddressReserve", granuleBytes, 0, 0, 0), q.create(granuleBytes, prop(0, 1))
	q.ok("cuCtxSetCurrent", 0)
	const when = "no context"
	q.ask(when, "cuMemMap", reserved, granuleBytes, 0, h, 0)
	q.ask(when, "cuMemSetAccess", reserved, granuleBytes, uintptr(unsafe.Pointer(access(3))), 1)
	q.ask(when+", virtual", "cuMemsetD8Async", reserved, 1, 8, s)
	q.ask(when+", virtual, stream 0", "cuMemsetD8Async", reserved, 1, 8, 0)
	q.ask(when+", plain", "cuMemsetD8Async", p, 1, 8, s)
	q.ask(when+", plain, stream 0", "cuMemsetD8Async", p, 1, 8, 0)
	q.ask(when+", pinned", "cuMemsetD8Async", host, 1, 8, s)
	q.ask(when+", plain", "cuMemcpyDtoDAsync_v2", p, p+64, 8, s)
	q.ask(when+", virtual", "cuMemcpyDtoDAsync_v2", reserved, reserved+64, 8, s)
	q.ask(when+", virtual to plain", "cuMemcpyDtoDAsync_v2", p, reserved, 8, s)
	onAnotherThread(func() {
		q.ask("never a context, plain", "cuMemsetD8Async", p, 1, 8, s)
		q.ask("never a context, pinned", "cuMemsetD8Async", host, 1, 8, s)
		q.ask("never a context, virtual", "cuMemsetD8Async", reserved, 1, 8, s)
		q.ask("never a context, plain", "cuMemcpyDtoDAsync_v2", p, p+64, 8, s)
		q.ask("never a context, virtual to plain", "cuMemcpyDtoDAsync_v2", p, reserved, 8, s)
	})
	q.ask(when+", virtual from pageable", "cuMemcpyHtoDAsync_v2", reserved, q.out(), 8, s)
	q.ask(when+", virtual", "cuMemcpyHtoD_v2", reserved, q.out(), 8)
	q.ask(when+", virtual", "cuMemcpyDtoH_v2", q.out(), reserved, 8)
	q.ask(when+", plain", "cuMemcpyDtoH_v2", q.out(), p, 8)
	q.ask(when, "cuMemsetD8_v2", reserved, 1, 8)
	q.ask(when, "cuStreamSynchronize", s)
	q.ask(when+", stream 0", "cuStreamSynchronize", 0)
	q.ask(when+", stream 2", "cuStreamSynchronize", 2)
	q.ask(when, "cuStreamQuery", s)
	q.ask(when+", stream 0", "cuStreamQuery", 0)
	q.ask(when, "cuStreamCreate", q.out(), 1)
	q.ask(when, "cuStreamGetFlags", s, q.out())
	q.ask(when, "cuStreamIsCapturing", s, q.out())
	q.ask(when+", pinned", "cuStreamWriteValue32_v2", s, host, 1, 0)
	q.ask(when+", pinned", "cuStreamWaitValue32_v2", s, host, 1, 0)
	q.ask(when+", plain", "cuStreamWriteValue32_v2", s, p, 1, 0)
	q.ask(when+", virtual", "cuStreamWriteValue32_v2", s, reserved, 1, 0)
	q.ask(when, "cuEventCreate", q.out(), 2)
	q.ask(when, "cuEventRecord", e, s)
	q.ask(when+", stream 0", "cuEventRecord", e, 0)
	q.ask(when, "cuStreamWaitEvent", s, e, 0)
	q.ask(when+", stream 0", "cuStreamWaitEvent", 0, e, 0)
	q.ask(when, "cuEventSynchronize", e)
	q.ask(when, "cuEventQuery", e)
	q.ask(when, "cuCtxSynchronize")
	q.ask(when, "cuCtxGetDevice", q.out())
	q.ask(when, "cuMemGetInfo_v2", q.out(), q.out()+8)
	q.ask(when, "cuMemAlloc_v2", q.out(), 4096)
	q.ask(when, "cuMemHostAlloc", q.out(), 4096, 0)
	q.ask(when, "cuMemHostRegister_v2", q.out(), 4096, 0)
	q.ask(when, "cuMemHostGetDevicePointer_v2", q.out(), host, 0)
	q.ask(when, "cuMemHostGetFlags", q.out(), host)
	q.ask(when, "cuMemGetAllocationGranularity", q.out(), uintptr(unsafe.Pointer(prop(0, 0))), 0)
	q.ask(when, "cuMemExportToShareableHandle", q.out(), h, 1, 0)
	q.ask(when, "cuMemUnmap", reserved, granuleBytes)
	q.ask(when, "cuMemRelease", h)
	q.ask(when, "cuMemAddressFree", reserved, granuleBytes)
	q.ask(when, "cuMemFreeHost", host)
	q.ask(when, "cuMemFree_v2", p)
	q.ask(when, "cuEventDestroy_v2", e)
	q.ask(when, "cuStreamDestroy_v2", s)

	const released = "primary released"
	q.ok("cuCtxSetCurrent", context)
	kept := q.made("cuMemAddressReserve", granuleBytes, 0, 0, 0)
	h = q.create(granuleBytes, prop(0, 0))
	q.ok("cuDevicePrimaryCtxRelease_v2", 0)
	q.ask(released, "cuCtxGetDevice", q.out())
	q.ask(released, "cuMemAlloc_v2", q.out(), 4096)
	q.ask(released, "cuMemGetInfo_v2", q.out(), q.out()+8)
	q.ask(released, "cuStreamCreate", q.out(), 1)
	q.ask(released, "cuCtxSynchronize")
	q.ask(released, "cuMemMap", kept, granuleBytes, 0, h, 0)
	q.ask(released, "cuMemUnmap", kept, granuleBytes)
	q.ask(released, "cuMemRelease", h)
	q.ask(released, "cuMemAddressFree", kept, granuleBytes)
	q.ask(released, "cuCtxSetCurrent", context)
	q.ask("again", "cuDevicePrimaryCtxRetain", q.out(), 0)
	q.answer("retained again, the same context", fmt.Sprint(uintptr(q.uint64()) == context))
	q.ok("cuCtxSetCurrent", uintptr(q.uint64()))
	q.ask("retained again", "cuMemAlloc_v2", q.out(), 4096)
	q.ask("retained again", "cuMemFree_v2", uintptr(q.uint64()))
	q.ok("cuDevicePrimaryCtxRelease_v2", 0)
}
