package metrics_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/monitor/gpus"
	"github.com/go-vram/vram/monitor/metrics"
	"github.com/go-vram/vram/monitor/page"
	"github.com/go-vram/vram/vramtest"
)

// exported serves what docs/kubernetes.md has a pod serve.
func exported(dev *vram.Device) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		metrics.New(dev), // vram's own memory, waits and refusals
		metrics.NewProcesses(gpus.OnDemand(gpus.Config{}), metrics.ProcessOptions{}), // all processes that the pod can see
	)
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/debug/vram/", page.Handler(dev)) // not for the network: it shows call stacks
	return mux
}

// docs/kubernetes.md has the code above, and names metrics that exist.
func TestTheDocumentedMetrics(t *testing.T) {
	text, err := os.ReadFile("../../docs/kubernetes.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "```go\n")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	source, err := os.ReadFile("documented_test.go")
	require.NoError(t, err)
	assert.Contains(t, string(source), "\t"+strings.ReplaceAll(strings.TrimSuffix(block, "\n"), "\n", "\n\t")+"\n")

	handler := exported(vramtest.Open(t).Device)
	for path, want := range map[string]string{"/metrics": "vram_reserved_bytes", "/debug/vram/": "<html"} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		assert.Equal(t, http.StatusOK, w.Code, path)
		assert.Contains(t, w.Body.String(), want, path)
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	for _, name := range []string{"vram_reserved_bytes", "vram_limit_bytes"} {
		assert.Contains(t, string(text), name)
		assert.Contains(t, w.Body.String(), "\n"+name+"{")
	}
}
