package main

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/internal/recoveredtest"
)

// programVariable has the test binary be the program, with the least model.
const programVariable = "VRAM_GPT_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programVariable) != "" {
		os.Exit(command.Interruptible(least))
	}
	recoveredtest.Main(m)
}

// least is the program with a model that takes a step in no time: each byte is a token, and two stages have a block each.
func least(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return changed(ctx, args, stdout, stderr, func(*options) {})
}

// changed is least with other options.
func changed(ctx context.Context, args []string, stdout, stderr io.Writer, change func(o *options)) int {
	o, err := parse(args, stderr)
	if err == nil {
		o.sizes = model.Config{Layers: 2, Width: 4, Heads: 1, Context: 4, Vocabulary: bytesTokens, Type: tensor.Float32}
		change(&o)
		err = open(ctx, o, stdout)
	}
	return command.Exit(ctx, "gpt", err, stderr)
}
