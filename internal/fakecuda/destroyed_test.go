//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// destroyedVariable names the call that a process of TestWhatWasDestroyedEndsTheProcess makes.
const destroyedVariable = "FAKECUDA_TEST_DESTROYED"

// onDestroyed lists calls on destroyed objects, each made in a process of its own.
var onDestroyed = map[string]func(d *driver, s, e, graph, exec, at uintptr){
	"cuStreamQuery":             func(d *driver, s, _, _, _, _ uintptr) { d.result("cuStreamQuery", s) },
	"cuStreamGetCaptureInfo_v2": func(d *driver, s, _, _, _, at uintptr) { d.result("cuStreamGetCaptureInfo_v2", s, at, 0, 0, 0, 0) },
	"cuStreamEndCapture":        func(d *driver, s, _, _, _, at uintptr) { d.result("cuStreamEndCapture", s, at) },
	"cuStreamDestroy_v2":        func(d *driver, s, _, _, _, _ uintptr) { d.result("cuStreamDestroy_v2", s) },
	"cuStreamWaitEvent":         func(d *driver, _, e, _, _, _ uintptr) { d.result("cuStreamWaitEvent", 0, e, 0) },
	"cuEventQuery":              func(d *driver, _, e, _, _, _ uintptr) { d.result("cuEventQuery", e) },
	"cuGraphDestroy":            func(d *driver, _, _, graph, _, _ uintptr) { d.result("cuGraphDestroy", graph) },
	"cuGraphLaunch":             func(d *driver, _, _, _, exec, _ uintptr) { d.result("cuGraphLaunch", exec, 0) },
}

// A driver reads the memory of destroyed objects, and mostly the process ends. The fake ends it each time and says why,
// so that a test finds the mistake; a handle that was never given out is only refused.
func TestWhatWasDestroyedEndsTheProcess(t *testing.T) {
	if name := os.Getenv(destroyedVariable); name != "" {
		d := start(t)
		s, e, graph := d.stream(), d.event(), d.made("cuGraphCreate", 0)
		exec := d.made("cuGraphInstantiateWithFlags", graph, 0)
		d.ok("cuStreamDestroy_v2", s)
		d.ok("cuEventDestroy_v2", e)
		d.ok("cuGraphDestroy", graph)
		d.ok("cuGraphExecDestroy", exec)
		onDestroyed[name](d, s, e, graph, exec, d.address(new([4]uint64)))
		return
	}
	d := start(t)
	d.refused(cudadrv.InvalidHandle, "cuStreamQuery", d.stream()+16)
	d.refused(cudadrv.InvalidHandle, "cuEventQuery", 77)
	for name := range onDestroyed {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWhatWasDestroyedEndsTheProcess$", "-test.timeout=30s")
		command.Env = append(os.Environ(), destroyedVariable+"="+name, libraryVariable+"="+library)
		output, err := command.CombinedOutput()
		require.Error(t, err, name)
		assert.Regexp(t, `(?m)^fakecuda: `+name+`: the (stream|event|graph|executable graph) 0x[0-9a-f]+ was destroyed: a driver may crash$`,
			string(output), name)
	}
}
