package tables_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/kernel/tune/tables"
)

// Each file is a table as String writes it, has no wrong variant, and Default has its rows.
func TestTheFilesAreTables(t *testing.T) {
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	read := 0
	for _, e := range entries {
		if e.Name() == "tables.go" || e.Name() == "tables_test.go" {
			continue
		}
		read++
		text, err := os.ReadFile(e.Name())
		require.NoError(t, err)
		table, err := tune.Parse(string(text))
		require.NoError(t, err, e.Name())
		assert.Equal(t, string(text), table.String(), e.Name())
		for _, on := range table.Devices() {
			for _, of := range table.Keys(on) {
				assert.Equal(t, table.Rows(on, of), tables.Default().Rows(on, of))
				assert.Equal(t, table.Rows(on, of), tables.Rows(on, of))
				for _, r := range table.Rows(on, of) {
					assert.Equal(t, tune.Verified, r.State, "%v: %v", of, r)
				}
			}
		}
	}
	assert.Positive(t, read)
}
