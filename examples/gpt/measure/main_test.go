package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

func output(t *testing.T, args ...string) []byte {
	t.Helper()
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	var stdout, stderr bytes.Buffer
	args = append([]string{"-driver", "sim", "-batch", "1", "-length", "3"}, args...)
	require.Equal(t, command.OK, run(t.Context(), args, &stdout, &stderr), "%s%s", &stdout, &stderr)
	return stdout.Bytes()
}

// After the third step no memory is allocated, and the step's memory is the graph's.
func TestSpeed(t *testing.T) {
	var s speed
	require.NoError(t, json.Unmarshal(output(t, "-warm", "2", "-steps", "1"), &s))
	assert.Equal(t, "tiny", s.Name)
	assert.Equal(t, 3, s.Tokens)
	assert.NotEmpty(t, s.Library)
	assert.Positive(t, s.StepMillis)
	assert.InDelta(t, math.Log(256), s.Loss, 1)
	assert.Equal(t, s.PeakBytes, s.StepBytes)
	assert.Less(t, s.LiveBytes, s.PeakBytes)
}

func TestParts(t *testing.T) {
	table := string(output(t, "-what", "parts"))
	for _, kernel := range []string{"adamw", "cross_entropy", "norm_backward", "square_sums"} {
		assert.Contains(t, table, kernel)
	}
}

// The file has all that a training elsewhere needs, and the results of ours.
func TestParity(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	output(t, "-what", "parity", "-steps", "2", "-file", path)
	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	singles := func(name string) []float32 {
		e, err := f.Entry(name)
		require.NoError(t, err, name)
		b := make([]byte, e.Bytes())
		require.NoError(t, f.ReadInto(b, name))
		values := make([]float32, e.Elements())
		_, err = binary.Decode(b, binary.LittleEndian, values)
		require.NoError(t, err)
		return values
	}
	for name, shape := range map[string][]int64{
		"tokens": {2, 1, 3}, "targets": {2, 1, 3}, "logits": {3, 256}, "losses": {2}, "rates": {2},
		"weights.h.1.attn.c_attn.weight": {32, 96}, "gradients.h.1.attn.c_attn.weight": {32, 96}, "gradients.wte.weight": {256, 32},
	} {
		e, err := f.Entry(name)
		require.NoError(t, err, name)
		assert.Equal(t, shape, e.Shape, name)
	}
	e, err := f.Entry("targets")
	require.NoError(t, err)
	ids, targets := make([]byte, e.Bytes()), make([]int64, e.Elements())
	require.NoError(t, f.ReadInto(ids, "targets"))
	_, err = binary.Decode(ids, binary.LittleEndian, targets)
	require.NoError(t, err)
	logits, loss := singles("logits"), 0.0 // the first loss is of these logits
	for i := range 3 {
		sum := 0.0
		for _, v := range logits[256*i:][:256] {
			sum += math.Exp(float64(v))
		}
		loss += (math.Log(sum) - float64(logits[256*i+int(targets[i])])) / 3
	}
	losses := singles("losses")
	assert.InDelta(t, loss, losses[0], 1e-5)
	assert.NotEqual(t, losses[0], losses[1])
	assert.NotZero(t, singles("gradients.ln_f.bias")[0])
	assert.Equal(t, float32(1), singles("weights.ln_f.weight")[0], "before the first step")
	var settings hyperparameters
	require.NoError(t, json.Unmarshal([]byte(f.Metadata()["training"]), &settings))
	assert.Equal(t, hyperparameters{0.9, 0.95, 1e-8, 0.1, 1}, settings)
}

func TestMistakes(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"help":          {[]string{"-h"}, command.OK, "-what"},
		"no such model": {[]string{"-model", "huge"}, command.Misused, "124m"},
		"no such type":  {[]string{"-type", "int8"}, command.Misused, "bfloat16"},
		"nothing":       {[]string{"-what", "nothing"}, command.Misused, "parity"},
		"no file":       {[]string{"-what", "parity"}, command.Misused, "-file"},
		"no step":       {[]string{"-steps", "0"}, command.Misused, "-steps"},
		"no batch":      {[]string{"-driver", "sim", "-batch", "0"}, command.Failed, "batch"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr), name)
		assert.Contains(t, stderr.String(), c.text, name)
	}
}
