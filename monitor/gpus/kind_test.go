package gpus_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/monitor/gpus"
)

// Each set of kinds has a text of its own, in the order of nvidia-smi, which is read again; other texts leave the set as it was.
func TestKindsAreTexts(t *testing.T) {
	seen := map[string]bool{}
	for k := range gpus.Compute | gpus.Graphics | gpus.MPS + 1 {
		text, err := json.Marshal(k)
		require.NoError(t, err)
		assert.JSONEq(t, `"`+k.String()+`"`, string(text))
		assert.False(t, seen[string(text)], "%s", text)
		seen[string(text)] = true
		read := ^k
		require.NoError(t, json.Unmarshal(text, &read))
		assert.Equal(t, k, read)
	}
	assert.Len(t, seen, 8)
	assert.Equal(t, "M+C+G", (gpus.Compute | gpus.Graphics | gpus.MPS).String())
	read := gpus.Graphics
	require.EqualError(t, json.Unmarshal([]byte(`"G+C"`), &read), `gpus: "G+C" is no kind of process`)
	assert.Equal(t, gpus.Graphics, read)
}
