package main

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) {
	if slices.Contains(os.Args, "-member") {
		os.Exit(command.Interruptible(run))
	}
	recoveredtest.Main(m)
}

func TestFlagsThatCannotBe(t *testing.T) {
	for _, args := range [][]string{{"-fly"}, {"-limit", "1MiB"}, {"-member", "e"}, {"-member", "ab"}} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, command.Misused, run(t.Context(), append(args, "-driver", "sim"), &stdout, &stderr), "%v", args)
		assert.NotEmpty(t, stderr.String())
		assert.Empty(t, stdout.String())
	}
}
