package history_test

import (
	"testing"

	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
	"github.com/go-vram/vram/monitor/history"
)

// Events and snapshots have the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&history.Event{}, &history.Snapshot{}}
	jsonformtest.Check(t, all...)
	jsonformtest.All(t, []string{"."}, []string{"Event", "Snapshot"}, all)
}
