package tune_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/tune"
)

// An index has the rows of the whole table, key for key, and none of other keys.
func TestAnIndexHasTheRowsOfItsTable(t *testing.T) {
	spaced := strings.ReplaceAll(sampleText, "\n", "\r\n\n# a comment\n")
	for _, text := range []string{sample().String(), sampleText, spaced} {
		table, err := tune.Parse(text)
		require.NoError(t, err)
		x, err := tune.NewIndex(text)
		require.NoError(t, err)
		keys := 0
		for _, on := range table.Devices() {
			for _, of := range table.Keys(on) {
				keys++
				rows, err := x.Rows(on, of)
				require.NoError(t, err)
				assert.Equal(t, table.Rows(on, of), rows)
				rows, err = x.Rows(tune.Device{Name: "other"}, of)
				require.NoError(t, err)
				assert.Nil(t, rows)
			}
			rows, err := x.Rows(on, tune.Key{Kernel: "other"})
			require.NoError(t, err)
			assert.Nil(t, rows)
		}
		assert.Positive(t, keys)
	}
	rows, err := (*tune.Index)(nil).Rows(tune.Device{}, tune.Key{})
	require.NoError(t, err)
	assert.Nil(t, rows)
}

// Wrong lines of devices and keys are found at once, wrong rows when their key is asked for; the line has its number in the
// text.
func TestAnIndexOfAWrongText(t *testing.T) {
	_, err := tune.NewIndex("vram tuning table 2\n")
	require.ErrorIs(t, err, tune.ErrVersion)
	key := "key rows=1 cols=2 layouts=\"l\" kernel=\"k\"\n"
	begin := "vram tuning table 1\n# one\ndevice compute=9.0 name=\"x\"\n"
	for text, line := range map[string]int{"nonsense": 4, "row ns=1": 4, key + key: 5, "key rows=1": 4} {
		_, err := tune.NewIndex(begin + text)
		var wrong *tune.SyntaxError
		require.ErrorAs(t, err, &wrong, text)
		assert.Equal(t, line, wrong.Line, text)
	}
	x, err := tune.NewIndex(begin + key + row("v", 1, 2).String() + "\r\n\nrow ns=1\r\n" + "key rows=2 cols=2 layouts=\"l\" kernel=\"k\"\nrow\n")
	require.Error(t, err, "row is no first word of a row without what follows")
	assert.Nil(t, x)
	x, err = tune.NewIndex(begin + key + row("v", 1, 2).String() + "\r\n\nrow ns=1\r\n")
	require.NoError(t, err)
	_, err = x.Rows(tune.Device{Name: "x", Major: 9}, tune.Key{Kernel: "k", Layouts: "l", Rows: 1, Cols: 2})
	var wrong *tune.SyntaxError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, 7, wrong.Line)
	assert.Equal(t, "row ns=1", wrong.Text)
}
