package history_test

import (
	"testing"

	"github.com/go-vram/vram/internal/jsontext/jsontexttest"
	"github.com/go-vram/vram/monitor/history"
)

// Events and snapshots have the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&history.Event{}, &history.Snapshot{}}
	jsontexttest.Check(t, all...)
	jsontexttest.All(t, []string{"."}, []string{"Event", "Snapshot"}, all)
}
