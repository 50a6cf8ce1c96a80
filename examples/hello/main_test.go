package main

import (
	"testing"

	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// The program and its output are in docs/usage.md.
func Example() {
	main()
	// Output:
	// x: 67108864 bytes
	// free x: <nil>
	// free x again: vram: free of a buffer that is not live: it was freed before
	// y: 67108864 bytes
	// close: vram: closed with 1 live buffer, 64 MiB in all: a buffer of 64 MiB at 0x300000000 on stream 1; Config.SampleBytes names where large ones were allocated, Config.Debug where each was
}
