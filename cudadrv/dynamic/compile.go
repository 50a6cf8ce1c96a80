//go:build linux && (amd64 || arm64)

package dynamic

import (
	"bytes"
	"runtime"
	"strings"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// logBytes is how much of a compiler's log is kept: some twenty mistakes. It is written where something is wrong.
const logBytes = 8 << 10

// compilation has the inputs and outputs of a call that compiles. It is in the heap.
type compilation struct {
	options [2]int32
	values  [2]uintptr // each as wide as a pointer, also the number
	log     [logBytes]byte
}

func newCompilation() *compilation {
	c := &compilation{options: [2]int32{errorLogBuffer, errorLogBufferBytes}}
	c.values = [2]uintptr{uintptr(unsafe.Pointer(&c.log)), logBytes}
	return c
}

// logText returns the log, without blanks around it.
func (c *compilation) logText() string {
	if c == nil {
		return ""
	}
	text, _, _ := bytes.Cut(c.log[:], []byte{0})
	return strings.TrimSpace(string(text))
}

// isCubin and isFatBinary tell images from texts by their magic numbers.
func isCubin(image []byte) bool { return bytes.HasPrefix(image, []byte("\x7fELF")) }

func isFatBinary(image []byte) bool { return bytes.HasPrefix(image, []byte{0x50, 0xed, 0x55, 0xba}) }

// ended returns the image, as a text with a 0 at its end.
func ended(image []byte) []byte {
	if isCubin(image) || isFatBinary(image) || bytes.HasSuffix(image, []byte{0}) {
		return image
	}
	return append(bytes.Clone(image), 0)
}

// compiling is a compilation and the image that it works on: a frame keeps one thing. A cubin has no compilation, and so no
// log: a process that starts loads many.
type compiling struct {
	*compilation
	image []byte
}

func newCompiling(image []byte) *compiling {
	c := &compiling{image: ended(image)}
	if !isCubin(image) {
		c.compilation = newCompilation()
	}
	return c
}

// ModuleLoadData calls cuModuleLoadDataEx.
func (d *device) ModuleLoadData(image []byte) (cudadrv.Module, error) {
	f, err := d.enterFeature(call.ModuleLoadData, cudadrv.KernelLaunches)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if len(image) == 0 {
		return 0, refuse(call.ModuleLoadData, cudadrv.InvalidValue, "no image")
	}
	c := newCompiling(image)
	f.hold(unsafe.Pointer(c))
	f.args = [mostArgs]uintptr{f.pointer(0), uintptr(unsafe.Pointer(unsafe.SliceData(c.image)))}
	if c.compilation != nil {
		f.args[2], f.args[3], f.args[4] = uintptr(len(c.options)), uintptr(unsafe.Pointer(&c.options)), uintptr(unsafe.Pointer(&c.values))
	}
	if r := d.outside(inContext, call.ModuleLoadData, f, 5); r != cudadrv.Success {
		return 0, d.failed(f, call.ModuleLoadData, r, "%s", c.logText())
	}
	return cudadrv.Module(f.out[0]), nil
}

// LinkImages calls cuLinkCreate to cuLinkDestroy, on one thread: the compiler of driver 580 keeps a link's memory by thread,
// and continuing on another thread crashes the process. An error names the one of them that failed.
func (d *device) LinkImages(images ...[]byte) ([]byte, error) {
	f, err := d.enterFeature(call.LinkComplete, cudadrv.KernelLaunches)
	if err != nil {
		return nil, err
	}
	defer d.gate.leave(f)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, image := range images {
		if len(image) == 0 {
			images = nil
		}
	}
	if len(images) == 0 {
		return nil, refuse(call.LinkComplete, cudadrv.InvalidValue, "no image")
	}
	c := newCompilation()
	defer runtime.KeepAlive(c) // the link writes to it until it is destroyed
	f.hold(unsafe.Pointer(c))
	f.args = [mostArgs]uintptr{
		uintptr(len(c.options)), uintptr(unsafe.Pointer(&c.options)), uintptr(unsafe.Pointer(&c.values)), f.pointer(0),
	}
	if r := d.outside(inContext, cuLinkCreate, f, 4); r != cudadrv.Success {
		return nil, d.linkFailed(f, "cuLinkCreate", r, c)
	}
	link := uintptr(f.out[0])
	cubin, err := d.link(f, link, c, images)
	f.args[0] = link
	if r := d.outside(inContext, cuLinkDestroy, f, 1); r != cudadrv.Success && err == nil {
		return nil, d.linkFailed(f, "cuLinkDestroy", r, c)
	}
	return cubin, err
}

// link adds the images to a link and copies the result, which belongs to the link.
func (d *device) link(f *frame, link uintptr, c *compilation, images [][]byte) ([]byte, error) {
	for _, image := range images {
		kind := uintptr(ptxInput)
		switch {
		case isCubin(image):
			kind = cubinInput
		case isFatBinary(image):
			kind = fatBinaryInput
		}
		image = ended(image)
		f.args = [mostArgs]uintptr{link, kind, f.hold(unsafe.Pointer(unsafe.SliceData(image))), uintptr(len(image))}
		if r := d.outside(inContext, cuLinkAddData, f, 8); r != cudadrv.Success {
			return nil, d.linkFailed(f, "cuLinkAddData", r, c)
		}
	}
	f.args = [mostArgs]uintptr{link, f.pointer(0), f.pointer(1)}
	if r := d.outside(inContext, call.LinkComplete, f, 3); r != cudadrv.Success {
		return nil, d.linkFailed(f, "cuLinkComplete", r, c)
	}
	return bytes.Clone(unsafe.Slice((*byte)(f.address()), f.out[1])), nil
}

func (d *device) linkFailed(f *frame, function string, r cudadrv.Result, c *compilation) error {
	return d.lib.describe(f, function, r, c.logText())
}
