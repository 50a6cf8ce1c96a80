package trace_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
)

func BenchmarkRead(b *testing.B) {
	data, err := os.ReadFile("data/pipeline_1f1b.csv.gz")
	require.NoError(b, err)
	b.ReportAllocs()
	events := 0
	for b.Loop() {
		tr, err := trace.Read("pipeline_1f1b.csv.gz", bytes.NewReader(data))
		require.NoError(b, err)
		events = tr.Info.EventCount
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}
