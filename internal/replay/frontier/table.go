package main

import (
	"fmt"
	"strings"
)

// torchColdMs is the wall time of the first round of PyTorch 2.11's default allocator, called from C++ on the host of an H200, in ms.
func torchColdMs(trace string) (ms float64, known bool) {
	ms, known = map[string]float64{
		"gpt2_train": 12.1, "llama_varlen_ckpt": 21.2, "resnet_train": 8.2, "gpt2_generate": 67.5,
		"maskrcnn_train": 15.7, "pipeline_1f1b": 26.5, "gnn_varied": 4.8, "moe_train": 38.8,
	}[trace]
	return ms, known
}

// markdown is the table.
func markdown(points []point) string {
	var b strings.Builder
	b.WriteString("| trace | mode | cold ns/op: own + driver | PyTorch cold | warm ns/op | reserved / live | settled | least limit / live | driver calls by round |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|\n")
	for i := range points {
		p := &points[i]
		r := &p.result
		fmt.Fprintf(&b, "| %s | %s | %.0f + %.0f | %s | %.1f | %.3f | %s | %s | %s |\n",
			r.Trace, p.mode, p.cold.own, p.cold.driver, torch(p), p.warm, r.ReservedOverLive, ratio(r.SettledOverLive),
			limit(r.MinCapacityOverLive), calls(p))
	}
	return b.String()
}

// torch is PyTorch's first round in ns an event.
func torch(p *point) string {
	ms, known := torchColdMs(p.result.Trace)
	if !known {
		return ""
	}
	return fmt.Sprintf("%.0f", ms*1e6/float64(p.result.EventCount))
}

func ratio(r *float64) string {
	if r == nil {
		return ""
	}
	return fmt.Sprintf("%.3f", *r)
}

// limit is empty where none was looked for.
func limit(r float64) string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf("%.3f", r)
}

func calls(p *point) string {
	var all []string
	for _, r := range p.result.Rounds {
		all = append(all, fmt.Sprint(r.DriverCalls))
	}
	return strings.Join(all, ", ")
}
