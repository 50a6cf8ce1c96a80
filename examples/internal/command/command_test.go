package command_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/examples/internal/command"
)

// Exit prints an error on one line.
func TestExit(t *testing.T) {
	t.Parallel()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		code int
		text string
	}{
		"nothing":              {t.Context(), nil, command.OK, ""},
		"help":                 {t.Context(), flag.ErrHelp, command.OK, ""},
		"an interrupt":         {interrupted, errors.Join(errors.New("step 1"), context.Canceled), command.Interrupted, "p: interrupted; all memory is given back\n"},
		"somebody's end":       {t.Context(), context.Canceled, command.Failed, "p: context canceled\n"},
		"a failure after it":   {interrupted, errors.New("leak"), command.Failed, "p: leak\n"},
		"several failures":     {t.Context(), errors.Join(errors.New("a"), errors.New("b")), command.Failed, "p: a; b\n"},
		"a flag that can't be": {t.Context(), command.Misuse("-steps is %d", 0), command.Misused, "p: -steps is 0\n"},
	} {
		var stderr bytes.Buffer
		assert.Equal(t, c.code, command.Exit(c.ctx, "p", c.err, &stderr), name)
		assert.Equal(t, c.text, stderr.String(), name)
	}
}

// Given flags override variables.
func TestFlagsGoOverVariables(t *testing.T) {
	t.Setenv("VRAM_DRIVER", "sim")
	t.Setenv("VRAM_MEMORY_LIMIT", "2GB")
	t.Setenv("VRAM_FOOTPRINT", "fast")
	var help bytes.Buffer
	config := func(args ...string) (vram.Config, error) {
		f := command.NewFlags("p", `"12GB"`)
		footprint := f.String("footprint", "", "")
		f.Over("footprint", func(c *vram.Config) (err error) {
			c.Footprint, err = vram.ParseFootprint(*footprint)
			return err
		})
		if err := f.Parse(args, &help); err != nil {
			return vram.Config{}, err
		}
		return f.Config()
	}
	c, err := config()
	require.NoError(t, err)
	assert.Equal(t, int64(2e9), c.LimitBytes)
	assert.Equal(t, vram.Fast, c.Footprint)
	assert.NotNil(t, c.Driver)
	c, err = config("-limit", "1GB", "-device", "3", "-footprint", "lean")
	require.NoError(t, err)
	assert.Equal(t, int64(1e9), c.LimitBytes)
	assert.Equal(t, 3, c.Ordinal)
	assert.Equal(t, vram.Lean, c.Footprint)

	assert.Empty(t, help.String())
	_, err = config("-h")
	require.ErrorIs(t, err, flag.ErrHelp)
	assert.Contains(t, help.String(), `"12GB"`)
	for _, args := range [][]string{{"-nothing"}, {"argument"}, {"-limit", "much"}, {"-driver", "none"}, {"-footprint", "tiny"}} {
		_, err = config(args...)
		var misuse *command.UsageError
		require.ErrorAs(t, err, &misuse, "%v", args)
	}
	t.Setenv("VRAM_MEMORY_LIMIT", "much")
	_, err = config()
	var misuse *command.UsageError
	require.ErrorAs(t, err, &misuse)
	assert.Contains(t, err.Error(), "VRAM_MEMORY_LIMIT")
}
