package main

import (
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// top runs go tool pprof -top on the service's answer, and returns the bytes of the place that allocates for requests.
func top(t *testing.T, url, index string) float64 {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=B", "-sample_index="+index, url)
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
	text, err := cmd.Output()
	require.NoError(t, err, "%s", text)
	row := regexp.MustCompile(`(?m)^\s*(\d+)B?\s.* github\.com/go-vram/vram/examples/service\.\(\*Service\)\.allocate$`).FindSubmatch(text)
	require.NotNil(t, row, "%s", text)
	bytes, err := strconv.ParseFloat(string(row[1]), 64)
	require.NoError(t, err)
	return bytes
}

// pprof at the address of the running service names the place that allocates for requests, with the bytes of running and
// answered requests: exactly if each buffer is sampled, and within five standard deviations at the service's default rate.
func TestHeapProfile(t *testing.T) {
	if testing.Short() {
		return // It runs go tool pprof.
	}
	t.Parallel()
	for _, rate := range []int64{1, 0} {
		r := newRig(t, settings{Config: vram.Config{SampleBytes: rate}, BacklogCount: 10})
		server := httptest.NewServer(r.Handler())
		t.Cleanup(server.Close)
		done := make(chan struct{}, 2)
		post := func() {
			a, err := send(t.Context(), t, server.Client(), "POST", server.URL+"/v1/infer", large)
			assert.NoError(t, err)
			assert.Equal(t, 200, a.status)
			done <- struct{}{}
		}
		const answered, running = 3, 2
		for range answered {
			go post()
			finish(r, done)
		}
		for range running {
			go post()
		}
		r.until("the buffers", func() bool { return r.report().Requests.Running == running })
		inUse, allocated := top(t, server.URL+"/debug/vram/heap", "inuse_space"), top(t, server.URL+"/debug/vram/heap", "alloc_space")
		bound := 0.0
		if rate == 0 { // of the least of three buffers alone: the others are longer than the rate
			const logits = 16 * 128000
			bound = 5 * logits * math.Sqrt((answered+running)*(vram.DefaultSampleBytes/logits))
		}
		assert.InDelta(t, running*largeBytes, inUse, bound)
		assert.InDelta(t, (answered+running)*largeBytes, allocated, bound)

		text, err := send(t.Context(), t, server.Client(), "GET", server.URL+"/debug/vram/heap?debug=1", "")
		require.NoError(t, err)
		assert.Contains(t, text.body, "service.(*Service).allocate")
		for range running {
			finish(r, done)
		}
	}
}

// finish lets time pass until a request was answered: its kernel may come later than its buffers.
func finish(r *rig, done chan struct{}) {
	r.until("the answer", func() bool {
		r.kernels()
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}
