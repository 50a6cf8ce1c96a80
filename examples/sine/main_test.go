package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// The README prints this line below the program.
func Example() {
	main()
	// Output:
	// [0.8415 0.9093 0.1411]
}

// The kernel and the function that runs it, with its errors, have at most 24 lines.
func TestTheProgramIsShort(t *testing.T) {
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	_, program, found := bytes.Cut(source, []byte("const sine"))
	require.True(t, found)
	count := 0
	for line := range bytes.Lines(program) {
		if len(bytes.TrimSpace(line)) > 0 {
			count++
		}
	}
	assert.LessOrEqual(t, count, 24)
}
