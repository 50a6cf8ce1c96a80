package peers

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/safetensors"
)

// The scripts that compare examples/gpt with PyTorch compile, read our files, and print tables of our figures without PyTorch.
func TestGPTWithoutPyTorch(t *testing.T) {
	needs(t, "python3")
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	var singles []byte
	for _, v := range []float32{1.5, -2} {
		singles = binary.LittleEndian.AppendUint32(singles, math.Float32bits(v))
	}
	require.NoError(t, safetensors.WriteFile(path, map[string]string{"type": "float32"}, []safetensors.Source{
		{Name: "losses", Type: safetensors.Float32, Shape: []int64{2}, Data: bytes.NewReader(singles)},
	}))
	for _, script := range []string{"gpt_torch.py", "gpt_parity.py", "gpt_speed.py", "gpt_learns.py"} {
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(folder, script), text, 0o600)) // what Python leaves stays there
		output(t, nil, "python3", "-m", "py_compile", filepath.Join(folder, script))
	}
	read := output(t, []string{"PYTHONPATH=" + folder}, "python3", "-c", `
import struct, gpt_parity
texts, tensors = gpt_parity.read("`+path+`")
kind, shape, data = tensors["losses"]
print(texts["type"], kind, shape, struct.unpack("<2f", data))
print(gpt_parity.grouped("h.11.ln_1.weight"), gpt_parity.grouped("wte.weight"))`)
	assert.Equal(t, "float32 F32 [2] (1.5, -2.0)\nh.*.ln_1.weight wte.weight\n", read)

	ours := filepath.Join(folder, "ours.jsonl")
	require.NoError(t, os.WriteFile(ours, []byte(`{"name":"124m","type":"bfloat16","batch":4,"parts":2,"length":1024,"library":"own","step_ms":20,"peak_reserved_bytes":5500000000}`+"\n"), 0o600))
	made := output(t, nil, "python3", filepath.Join(folder, "gpt_speed.py"), "--models", "", ours)
	assert.Contains(t, made, "| 124m:8x1024 | ours, bfloat16, own | 20.00     | 410 k    | 5.50 GB  |")
}
