package history_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
	"github.com/go-vram/vram/monitor/history"
)

// Events and snapshots have the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&history.Event{}, &history.Snapshot{}}
	jsonformtest.Check(t, all...)
	jsonformtest.All(t, []string{"."}, []string{"Event", "Snapshot"}, all)
}

// An event's kind is a word, and a recording of nothing has empty lists.
func TestWordsOfJSON(t *testing.T) {
	text, err := json.Marshal(history.Snapshot{})
	require.NoError(t, err)
	assert.JSONEq(t, `{"events": [], "live": [], "lost_count": 0}`, string(text))
	for k := history.Allocated; k <= history.Unmapped; k++ {
		text, err := json.Marshal(history.Event{Kind: k})
		require.NoError(t, err)
		assert.Contains(t, string(text), `"kind":"`+k.String()+`"`)
		var read history.Kind
		require.NoError(t, read.UnmarshalText([]byte(k.String())))
		assert.Equal(t, k, read)
	}
	require.ErrorContains(t, new(history.Kind).UnmarshalText([]byte("lost")), `"lost" is no kind of event`)
}
