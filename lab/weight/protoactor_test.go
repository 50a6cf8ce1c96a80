//go:build !vram_builtin

package weight

// debugVars is the pattern that expvar registers: protoactor imports OpenTelemetry's exporter for Prometheus, which imports
// Prometheus' client, which imports expvar.
const debugVars = "GET /debug/vars"
