//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"encoding/binary"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
)

const kindModules = 9

// kernel is a kernel of the suite's module, which stays loaded.
func (d *driver) kernel(name string) uintptr {
	d.Helper()
	return d.made("cuModuleGetFunction", d.made("cuModuleLoadData", d.text(drivertest.PTX)), d.text(name))
}

// launch queues a kernel over 64 words, with the parameters in one piece.
func (d *driver) launch(kernel, s uintptr, params []byte) {
	d.Helper()
	size := &[1]uintptr{uintptr(len(params))}
	list := &[5]uintptr{1, d.address(&params[0]), 2, d.address(size), 0}
	d.ok("cuLaunchKernel", kernel, 1, 1, 1, 64, 1, 1, 0, s, 0, d.address(list))
}

// filling are the parameters of vram_fill32.
func filling(p uintptr, value, count uint32) []byte {
	params := binary.NativeEndian.AppendUint64(nil, uint64(p))
	return binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(params, value), count)
}

// A launch takes its turn: nothing is written before, its parameters are read when it is queued, and later work waits for it.
func TestLaunchesTakeTheirTurn(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", queued)
	host, words := d.pinned()
	fill, s := d.kernel("vram_fill32"), d.stream()
	params := filling(host, 7, 4)
	d.launch(fill, s, params)
	clear(params)
	d.ok("cuStreamWriteValue64_v2", s, host+32, 1, 0)
	assert.Equal(t, 2, d.pending(s))
	assert.Equal(t, make([]uint64, 5), words[:5])
	assert.True(t, d.step(s))
	assert.Equal(t, []uint64{7<<32 | 7, 7<<32 | 7, 0, 0, 0}, words[:5])
	d.ok("cuStreamSynchronize", s)
	assert.EqualValues(t, 1, words[4])
}

// A kernel that accesses unmapped memory fails its context, as on hardware; one that the fake does not know touches nothing.
func TestAKernelThatTouchesNothingOfItsOwn(t *testing.T) {
	d := start(t)
	s, fill, nothing := d.stream(), d.kernel("vram_fill32"), d.kernel("vram_nothing")
	d.ok("cuLaunchKernel", nothing, 1, 1, 1, 64, 1, 1, 0, s, 0, 0)
	d.ok("cuStreamSynchronize", s)
	d.launch(fill, s, filling(64, 1, 4))
	d.refused(cudadrv.IllegalAddress, "cuStreamSynchronize", s)
	d.refused(cudadrv.IllegalAddress, "cuMemAlloc_v2", d.address(new(uintptr)), 16)
}

// Launches of one executable graph come one after the other, also on streams that nothing else orders.
func TestLaunchesOfAGraphAreInOrder(t *testing.T) {
	d := start(t)
	host, words := d.pinned()
	s, other, fill := d.stream(), d.stream(), d.kernel("vram_fill32")
	d.ok("cuStreamBeginCapture_v2", s, 0)
	d.launch(fill, s, filling(host, 7, 2))
	var graph uintptr
	d.ok("cuStreamEndCapture", s, uintptr(unsafe.Pointer(&graph)))
	exec := d.made("cuGraphInstantiateWithFlags", graph, 0)
	d.value("fakecuda_set_mode", queued)
	d.ok("cuGraphLaunch", exec, s)
	d.ok("cuGraphLaunch", exec, other)
	assert.False(t, d.step(other), "the launch before it")
	d.ok("cuStreamSynchronize", other)
	assert.Zero(t, d.pending(s))
	assert.EqualValues(t, 7<<32|7, words[0])
	d.ok("cuGraphExecDestroy", exec)
	d.ok("cuGraphDestroy", graph)
}

// The log holds the compiler's message with the line, cut to the size of the buffer; the log is optional.
func TestTheLogOfACompiler(t *testing.T) {
	d := start(t)
	const head = ".version 7.0\n.target sm_70\n.address_size 64\n"
	load := func(source string, room uintptr, want cudadrv.Result) string {
		t.Helper()
		log := make([]byte, room+1)
		log[room] = '#'
		options := &[2]int32{5, 6}
		values := &[2]uintptr{d.address(&log[0]), room}
		out := new(uintptr)
		d.refused(want, "cuModuleLoadDataEx", d.address(out), d.text(source), 2, d.address(options), d.address(values))
		assert.EqualValues(t, '#', log[room], "past the end")
		text, _, _ := strings.Cut(string(log), "\x00")
		assert.EqualValues(t, len(text), values[1])
		return text
	}
	for text, want := range map[string]string{
		".version seven":                                   "Parsing error near 'seven'",
		head + "\n/* two\nlines */ nonsense":               "line 6; error   : Parsing error: syntax error near 'nonsense'",
		head + ".entry k(.param .u65 p) { ret; }":          "type expected near",
		head + ".entry k() { @%p1 nonsense.u32 %r1; }":     "Not a name of any known instruction: 'nonsense.u32'",
		head + ".entry k() { A: { ret; }":                  "expected '}'",
		head + ".func (.param .b32 r) f(.param .b32 x) { ": "expected '}'",
	} {
		assert.Contains(t, load(text, 512, cudadrv.InvalidPTX), want)
	}
	assert.Equal(t, "ptxas app", load(".version seven", 10, cudadrv.InvalidPTX))
	d.refused(cudadrv.InvalidPTX, "cuModuleLoadData", d.address(new(uintptr)), d.text(".version seven"))
	for _, text := range []string{"", "// nothing\n", ".target sm_70\n"} { // no PTX: no compiler sees it
		assert.Empty(t, load(text, 512, cudadrv.InvalidImage), "%q", text)
	}
	assert.Zero(t, d.live(kindModules))
}

// Declarations of every form give parameters their places, and variables their bytes.
func TestDeclarationsInPTX(t *testing.T) {
	d := start(t)
	before := d.freeBytes()
	module := d.made("cuModuleLoadData", d.text(`.version 8.1 // a comment
.target sm_80, debug
.address_size 64
.extern .func (.param .b32 r) other (.param .b64 x);
.visible .const .align 16 .b8 table[48] = {1, 2, 3};
.global .f64 sums[100];
.weak .entry k(
	.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 8 .b8 c[12], .param .u16 d
)
.maxntid 128, 1, 1
{
	.reg .pred p; /* { */
	.loc 1 2 3
L_1: @!p bra L_1;
	mov.b64 {lo, hi}, x;
	{ call.uni (r), other, (x); }
	ret;
}
.func helper() { ret; }`))
	k := d.made("cuModuleGetFunction", module, d.text("k"))
	for i, want := range [][2]uintptr{{0, 1}, {8, 8}, {16, 12}, {28, 2}} {
		offset, bytes := new(uintptr), new(uintptr)
		d.ok("cuFuncGetParamInfo", k, uintptr(i), d.address(offset), d.address(bytes))
		assert.Equal(t, want, [2]uintptr{*offset, *bytes}, "parameter %d", i)
	}
	for name, want := range map[string]uintptr{"table": 48, "sums": 800} {
		p, bytes := new(uintptr), new(uintptr)
		d.ok("cuModuleGetGlobal_v2", d.address(p), d.address(bytes), module, d.text(name))
		assert.Equal(t, want, *bytes, name)
		d.ok("cuMemsetD8_v2", *p, 1, *bytes)
		d.refused(cudadrv.InvalidValue, "cuMemFree_v2", *p)
	}
	d.refused(cudadrv.NotFound, "cuModuleGetFunction", d.address(new(uintptr)), module, d.text("helper"))
	assert.Less(t, d.freeBytes(), before)
	assert.Equal(t, 1, d.live(kindModules))
	d.ok("cuModuleUnload", module)
	assert.Equal(t, before, d.freeBytes())
	d.refused(cudadrv.InvalidHandle, "cuModuleUnload", module)
	d.refused(cudadrv.InvalidHandle, "cuLaunchKernel", k, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)
}

// Objects that are left in a destroyed context are lost.
func TestModulesGoWithTheirContext(t *testing.T) {
	d := start(t)
	d.kernel("vram_nothing")
	require.Equal(t, 1, d.live(kindModules))
	d.ok("cuDevicePrimaryCtxRelease_v2", 0)
	assert.Zero(t, d.live(kindModules))
	assert.Equal(t, 1, d.count("fakecuda_lost"))
}
