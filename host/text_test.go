package host_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/host"
)

func TestStatsAsText(t *testing.T) {
	s := host.Stats{LiveBlocks: 1, LiveBytes: 2048, Allocs: 3, Frees: 2}
	assert.Equal(t, "live 1 block with 2 KiB (peak 0 B); 3 allocations, 2 frees, 0 refusals", s.String())
	s.KeptBytes = 1 << 20
	assert.Contains(t, s.String(), "; kept 1 MiB, pending 0 B, releasing 0 B")
	text, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Contains(t, string(text), `{"live_blocks":1,"live_bytes":2048,`)
}
