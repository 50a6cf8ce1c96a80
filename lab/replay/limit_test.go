package replay_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/replay"
)

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]replay.Limit{
		"":       {},
		"4096":   {Bytes: 4096},
		"512MiB": {Bytes: 512 << 20},
		"1.02x":  {TimesPeak: 1.02},
		"2x":     {TimesPeak: 2},
	} {
		got, err := replay.ParseLimit(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"x", "0x", "-1x", "NaNx", "Infx", "much", "0", "-4096", "1.02 x y"} {
		_, err := replay.ParseLimit(text)
		require.Error(t, err, text)
		assert.Contains(t, err.Error(), text)
	}
}

func TestLimitFor(t *testing.T) {
	assert.Equal(t, int64(0), replay.Limit{}.For(1000))
	assert.Equal(t, int64(77), replay.Limit{Bytes: 77}.For(1000))
	assert.Equal(t, int64(1020), replay.Limit{TimesPeak: 1.02}.For(1000))
	assert.Equal(t, int64(1024), replay.Limit{TimesPeak: 1.0231}.For(1000), "rounded up")
}
