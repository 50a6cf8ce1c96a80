package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// The program runs with and without a GPU and prints the device, or why an installed driver does not work.
func TestQuickstart(t *testing.T) {
	driver, broken := vram.DriverNamed("auto")
	var out bytes.Buffer
	err := run(t.Context(), &out)
	if broken != nil {
		require.EqualError(t, err, broken.Error())
		return
	}
	require.NoError(t, err)
	assert.Contains(t, out.String(), "driver "+driver.Name()+"\n")
	assert.Contains(t, out.String(), "buffers of 67108864 and 134217728 bytes")
}
