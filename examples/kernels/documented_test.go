package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/examples.md has the program's output on the simulated device.
func TestTheDocumentedOutput(t *testing.T) {
	t.Setenv("VRAM_DRIVER", "sim") // also where there is a GPU
	page, err := os.ReadFile("../../docs/examples.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)## Kernels\n.*?```text\n(.*?)```").FindStringSubmatch(string(page))
	require.NotNil(t, block)
	var out bytes.Buffer
	require.NoError(t, command(nil, &out))
	if !strings.Contains(out.String(), "simulated GPU") {
		t.Skip("this is a GPU") //nolint:forbidigo // whose times differ
	}
	assert.Equal(t, block[1], out.String())
}
