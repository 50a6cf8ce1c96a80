package magazine

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
)

// Errors say their kind and their facts, as text and as JSON.
func TestErrorsSayWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	for stream, text := range map[uint32]string{0: "vram: the device is closed", 7: "vram: stream 7 is closed"} {
		err := &ClosedError{Stream: stream}
		require.ErrorIs(t, err, ErrClosed)
		require.NotErrorIs(t, err, ErrBadFree)
		assert.EqualError(t, err, text)
	}
	for _, kind := range []error{ErrDoubleFree, ErrStale, ErrTransferred} {
		require.ErrorIs(t, kind, ErrBadFree)
		allocated, freed := site.Here(0), site.Here(1)
		err := &FreeError{Err: kind, Allocated: allocated, Freed: freed}
		require.ErrorIs(t, err, kind)
		require.ErrorIs(t, err, ErrBadFree)
		text, jsonErr := json.Marshal(err)
		require.NoError(t, jsonErr)
		var got map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(text, &got))
		assert.Len(t, got, 3)
		for name, places := range map[string]site.Stack{"allocated": allocated, "freed": freed} {
			want, jsonErr := json.Marshal(places)
			require.NoError(t, jsonErr)
			assert.JSONEq(t, string(want), string(got[name]), name)
		}
		assert.Contains(t, string(got["err"]), kind.Error())
	}
}
