//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// act is one submission of a program over streams that have a buffer of bufferBytes each.
type act struct {
	kind     int // 0 sets, 1 copies within the stream's buffer, 2 copies from another stream's, 3 asks, 4 steps
	stream   int
	other    int
	from, to int
	length   int
	value    byte
}

const (
	streamCount = 3
	bufferBytes = 64
)

func drawActs(t *rapid.T) []act {
	one := rapid.Custom(func(t *rapid.T) act {
		a := act{
			kind:   rapid.IntRange(0, 4).Draw(t, "kind"),
			stream: rapid.IntRange(0, streamCount-1).Draw(t, "stream"),
			other:  rapid.IntRange(0, streamCount-1).Draw(t, "other"),
			length: rapid.IntRange(1, bufferBytes/2).Draw(t, "length"),
			value:  rapid.Byte().Draw(t, "value"),
		}
		a.from = rapid.IntRange(0, bufferBytes-a.length).Draw(t, "from")
		a.to = rapid.IntRange(0, bufferBytes-a.length).Draw(t, "to")
		return a
	})
	return rapid.SliceOfN(one, 1, 60).Draw(t, "acts")
}

// reference performs a program on plain slices, in the order in which it is written.
func reference(acts []act) [][]byte {
	buffers := make([][]byte, streamCount)
	for i := range buffers {
		buffers[i] = make([]byte, bufferBytes)
	}
	for _, a := range acts {
		to := buffers[a.stream][a.to : a.to+a.length]
		switch a.kind {
		case 0:
			copy(to, pattern(a.value, a.length))
		case 1:
			copy(to, buffers[a.stream][a.from:a.from+a.length])
		case 2:
			copy(to, buffers[a.other][a.from:a.from+a.length])
		}
	}
	return buffers
}

// TestModesAgree runs programs whose streams are ordered by events where they share bytes: in every mode, and however
// streams are queried and stepped, the bytes equal the program executed line by line.
func TestModesAgree(t *testing.T) {
	d := start(t)
	var streams, buffers, events [streamCount]uintptr
	for i := range streamCount {
		streams[i], buffers[i], events[i] = d.stream(), d.plain(bufferBytes), d.event()
	}
	after := func(later, earlier int) {
		d.ok("cuEventRecord", events[earlier], streams[earlier])
		d.ok("cuStreamWaitEvent", streams[later], events[earlier], 0)
	}
	rapid.Check(t, func(r *rapid.T) {
		acts := drawActs(r)
		d.value("fakecuda_set_mode", uintptr(rapid.IntRange(immediate, threaded).Draw(r, "mode")))
		d.value("fakecuda_set_patience", uintptr(rapid.IntRange(0, 3).Draw(r, "patience")))
		for i := range streamCount {
			d.ok("cuMemsetD8Async", buffers[i], 0, bufferBytes, streams[i])
		}
		for _, a := range acts {
			s, p := streams[a.stream], buffers[a.stream]
			switch a.kind {
			case 0:
				d.ok("cuMemsetD8Async", p+uintptr(a.to), uintptr(a.value), uintptr(a.length), s)
			case 1:
				d.ok("cuMemcpyDtoDAsync_v2", p+uintptr(a.to), p+uintptr(a.from), uintptr(a.length), s)
			case 2:
				after(a.stream, a.other)
				d.ok("cuMemcpyDtoDAsync_v2", p+uintptr(a.to), buffers[a.other]+uintptr(a.from), uintptr(a.length), s)
				after(a.other, a.stream)
			case 3:
				d.result("cuStreamQuery", s)
				d.result("cuEventQuery", events[a.other])
			case 4:
				d.step(s)
			}
		}
		want := reference(acts)
		for i := range streamCount {
			got := make([]byte, bufferBytes)
			d.ok("cuMemcpyDtoHAsync_v2", uintptr(unsafe.Pointer(&got[0])), buffers[i], bufferBytes, streams[i])
			require.Equal(r, want[i], got, "buffer %d", i)
		}
	})
}
