package vramtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/vramtest"
)

// The error of a text or a kernel that cannot be executed is the driver's, and has the finding as a typed error.
func TestRefusalsHaveTheFinding(t *testing.T) {
	_, c, _ := kernels(t, vramtest.Kernels())
	_, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { .reg .b32 %r<2>;\n add.u32 %r1, %r1; ret; }"))
	finding(t, err, cudadrv.InvalidPTX, 5)

	m, err := c.LoadModule([]byte(".version 7.0\n.target sm_70\n.address_size 64\n.extern .func malloc();\n.visible .entry k() {\n call malloc; ret; }"))
	require.NoError(t, err)
	f, err := m.Function("k")
	require.NoError(t, err)
	finding(t, c.Launch(f, cuda.Cover(1, 1)), cudadrv.NotSupported, 6)
}

func finding(t *testing.T, err error, result cudadrv.Result, line int) {
	t.Helper()
	var call *cudadrv.CallError
	require.ErrorAs(t, err, &call)
	assert.Equal(t, result, call.Result)
	var found *ptx.CheckError
	require.ErrorAs(t, err, &found)
	assert.Equal(t, line, found.Pos.Line)
	assert.Contains(t, call.Error(), found.Message)
}
