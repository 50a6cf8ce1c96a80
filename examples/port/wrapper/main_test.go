package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// The wrapper prints what the program port prints, as docs/examples.md has it.
func TestWrapper(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(vram.Config{DriverName: "cpu"}, &out))
	page, err := os.ReadFile("../../../docs/examples.md")
	require.NoError(t, err)
	assert.NotEmpty(t, out.String())
	assert.Contains(t, string(page), out.String())
}
