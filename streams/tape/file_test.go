package tape

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPlanFilesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		step := Step(drawStep(t, 100))
		require.NoError(t, step.Check())
		var file bytes.Buffer
		require.NoError(t, step.Write(&file))
		got, err := ReadStep(&file)
		require.NoError(t, err)
		require.Equal(t, step, got)
	})
}

// Whatever byte of a file is changed or missing, reading says so.
func TestDamagedPlanFilesAreRefused(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Step{{300, 1}, {70_000, 2}, {129, 0}}.Write(&file))
	whole := file.Bytes()
	for i := range whole {
		_, err := ReadStep(bytes.NewReader(whole[:i]))
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "the first %d bytes", i)
		for _, bit := range []byte{1, 0x40, 0x80} {
			damaged := bytes.Clone(whole)
			damaged[i] ^= bit
			_, err := ReadStep(bytes.NewReader(damaged))
			require.Error(t, err, "byte %d", i)
		}
	}
}

func TestPlanErrorsNameTheField(t *testing.T) {
	for name, c := range map[string]struct {
		step  Step
		field string
	}{
		"empty":    {nil, "number of requests"},
		"no units": {Step{{0, 1}}, "units"},
		"too long": {Step{{300, 2}}, "life"},
	} {
		var wrong *PlanError
		err := c.step.Check()
		require.ErrorAs(t, err, &wrong, name)
		require.ErrorIs(t, err, ErrPlan, name)
		assert.Equal(t, c.field, wrong.Field, name)
		assert.Contains(t, err.Error(), wrong.Want)
		var file bytes.Buffer
		require.NoError(t, c.step.Write(&file))
		_, err = ReadStep(&file)
		require.ErrorAs(t, err, &wrong, name)
		assert.Equal(t, c.field, wrong.Field, name)
	}
	_, err := ReadStep(bytes.NewReader([]byte("vramplan\x02")))
	require.EqualError(t, err, "vram: not a plan: version is 2, want 1")
}
