package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The program runs with and without a GPU and says what it got.
func TestQuickstart(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	assert.Regexp(t, `driver (sim|dynamic)\n`, out.String())
	assert.Contains(t, out.String(), "buffers of 67108864 and 134217728 bytes")
}
