//go:build gorgonia && cgo && linux && (amd64 || arm64)

package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBuffersInAProgramOfGorgonia(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(&out))
	assert.Contains(t, out.String(), "driver gorgonia")
	assert.Contains(t, out.String(), "a buffer of 4194304 bytes, its blocks hold [1 2 3 4]")
}
