package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
)

// The program computes with and without a GPU, or prints why an installed driver does not work.
func TestKernels(t *testing.T) {
	_, broken := vram.DriverNamed("auto")
	var out bytes.Buffer
	err := command([]string{"-rows", "3", "-columns", "50"}, &out)
	if broken != nil {
		require.EqualError(t, err, broken.Error())
		return
	}
	require.NoError(t, err)
	assert.Contains(t, out.String(), "150 numbers, relative error below 1e-5\n")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	assert.Len(t, lines, 5, "%s: a line for each of two kernels", out.String())
}

func TestMistakesAreReported(t *testing.T) {
	var out bytes.Buffer
	require.Error(t, command([]string{"-rows", "many"}, &out))
	require.Error(t, command([]string{"-rows", "-1"}, &out))
	require.ErrorIs(t, report(&out, []float32{1}, []float64{2}, nil), errWrong)
}
