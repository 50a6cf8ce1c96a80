package pool

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
)

// The errors of the pool have all their fields in JSON, and their empty lists are lists.
func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	jsonformtest.Check(t, &OutOfMemoryError{}, &WaitError{}, &DeadlockError{}, &QuotaError{}, &QuotaBoundsError{})
	for _, e := range []error{&OutOfMemoryError{}, &WaitError{}, &DeadlockError{}} {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		for _, name := range []string{"streams", "tenants", "holders", "waiters", "largest"} {
			if list, has := fields[name]; has {
				assert.Equal(t, []any{}, list, "%T: %s", e, name)
			}
		}
	}
}
