//go:build linux && (amd64 || arm64)

package metrics_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/fakenvml"
	"github.com/go-vram/vram/monitor/gpus"
	"github.com/go-vram/vram/monitor/metrics"
)

// Processes have series up to a bound, and the others a sum; unknown bytes have none. Failures are counted.
func TestProcesses(t *testing.T) {
	path, err := fakenvml.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	f, err := fakenvml.Open(path)
	require.NoError(t, err)
	f.SetDevices(fakenvml.Device{UUID: "GPU-1", Total: 100, Reserved: 1, Free: 9, Used: 90}, fakenvml.Device{UUID: "GPU-2", Total: 8, Free: 8})
	f.AddProcess(0, fakenvml.Compute, 10, 60, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.Compute, 11, 15, 3)
	f.AddProcess(0, fakenvml.Compute, 11, 14, 4) // on two instances
	f.AddProcess(0, fakenvml.Compute, 12, 1, fakenvml.NoInstance)
	f.AddProcess(0, fakenvml.Compute, 13, fakenvml.NotAvailable, fakenvml.NoInstance)
	files := fstest.MapFS{"proc/10/cmdline": {Data: []byte("/bin/a\x00")}, "proc/10/cgroup": {Data: []byte("0::/a.service")}}
	r := gpus.OnDemand(gpus.Config{Library: path, Files: files, Fresh: -1})
	c := metrics.NewProcesses(r, metrics.ProcessOptions{MaxProcesses: 2, Labels: prometheus.Labels{"host": "here"}})
	assert.Zero(t, f.Started())
	problems, err := testutil.CollectAndLint(c)
	require.NoError(t, err)
	assert.Empty(t, problems)
	const want = `
# HELP vram_gpu_device_memory_bytes The memory of a GPU by state: used, free, reserved by the driver.
# TYPE vram_gpu_device_memory_bytes gauge
vram_gpu_device_memory_bytes{gpu="0",host="here",state="free",uuid="GPU-1"} 9
vram_gpu_device_memory_bytes{gpu="0",host="here",state="reserved",uuid="GPU-1"} 1
vram_gpu_device_memory_bytes{gpu="0",host="here",state="used",uuid="GPU-1"} 90
vram_gpu_device_memory_bytes{gpu="1",host="here",state="free",uuid="GPU-2"} 8
vram_gpu_device_memory_bytes{gpu="1",host="here",state="reserved",uuid="GPU-2"} 0
vram_gpu_device_memory_bytes{gpu="1",host="here",state="used",uuid="GPU-2"} 0
# HELP vram_gpu_process_memory_bytes The memory of a process on a GPU, where the driver knows it.
# TYPE vram_gpu_process_memory_bytes gauge
vram_gpu_process_memory_bytes{command="",container="",gpu="0",host="here",instance="",pid="other",pod="",unit="",uuid="GPU-1"} 15
vram_gpu_process_memory_bytes{command="",container="",gpu="0",host="here",instance="3",pid="11",pod="",unit="",uuid="GPU-1"} 15
vram_gpu_process_memory_bytes{command="a",container="",gpu="0",host="here",instance="",pid="10",pod="",unit="a.service",uuid="GPU-1"} 60
# HELP vram_gpu_processes Processes with a context on a GPU.
# TYPE vram_gpu_processes gauge
vram_gpu_processes{gpu="0",host="here",uuid="GPU-1"} 5
vram_gpu_processes{gpu="1",host="here",uuid="GPU-2"} 0
# HELP vram_gpu_reading_failures_total Readings of NVML, or of one GPU, that failed.
# TYPE vram_gpu_reading_failures_total counter
vram_gpu_reading_failures_total{host="here"} 0
`
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(want)))
	f.Fail("nvmlDeviceGetMemoryInfo_v2", -1, 15)
	assert.Equal(t, 3+2+1, testutil.CollectAndCount(c))
	require.NoError(t, r.Close())
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(want[strings.Index(want, "# HELP vram_gpu_reading"):len(want)-2]+"3\n")))
	assert.Zero(t, testutil.CollectAndCount((*metrics.Processes)(nil))+testutil.CollectAndCount(new(metrics.Processes)))
}
