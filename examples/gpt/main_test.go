package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/internal/command"
)

func output(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{"-driver", "sim", "-batch", "1", "-length", "3", "-bytes", "10000", "-every", "1"}, args...)
	require.Equal(t, command.OK, run(t.Context(), args, &stdout, &stderr), "%s%s", &stdout, &stderr)
	return stdout.String()
}

// The program trains, saves, and continues with the losses that it would have had.
func TestProgram(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	step := regexp.MustCompile(`(?m)^step +(\d+: loss \d\.\d+), \S+ tokens/s, \S+ MiB reserved, \S+ [KM]iB live$`)
	whole := output(t, "-steps", "3", "-sample", "4")
	want := step.FindAllStringSubmatch(whole, -1)
	require.Len(t, want, 3)
	assert.Contains(t, whole, "34176 parameters of float32; 9.8 KiB of text\n")
	assert.Regexp(t, `(?s)\n---\nfunc .{1,4}\n$`, whole) // bytes that are no UTF-8 are one "?"

	path := filepath.Join(t.TempDir(), "checkpoint")
	// The rate depends on -steps: the first process is interrupted.
	ctx, interrupt := context.WithCancel(t.Context())
	var stdout, stderr bytes.Buffer
	args := []string{"-driver", "sim", "-batch", "1", "-length", "3", "-bytes", "10000", "-every", "1", "-steps", "3", "-checkpoint", path}
	code := run(ctx, args, writer(func(b []byte) {
		stdout.Write(b)
		if step.Match(b) {
			interrupt()
		}
	}), &stderr)
	require.Equal(t, command.Interrupted, code, "%s%s", &stdout, &stderr)
	assert.Contains(t, stdout.String(), "saved step 1 to ")
	rest := output(t, "-steps", "3", "-sample", "0", "-checkpoint", path)
	assert.Contains(t, rest, "continues after step 1 of ")
	got := step.FindAllStringSubmatch(stdout.String()+rest, -1)
	require.Len(t, got, 3)
	for i := range want {
		assert.Equal(t, want[i][1], got[i][1])
	}
}

// Stages have the losses of one stage, also where the program was interrupted and the training continues in another number of
// stages; the program shows each stage.
func TestStages(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	step := regexp.MustCompile(`(?m)^step +(\d+: loss \d\.\d+), `)
	stage := regexp.MustCompile(`(?m)^  stage ([01]) on device 0: 1 block, (1 micro-batch|2 micro-batches) at a time, \S+ [KM]iB, waits +\d+ %$`)
	want := step.FindAllStringSubmatch(output(t, "-steps", "2", "-sample", "0", "-stages", "1", "-parts", "2"), -1)
	require.Len(t, want, 2)

	path := filepath.Join(t.TempDir(), "checkpoint")
	first := output(t, "-steps", "2", "-sample", "1", "-stages", "2", "-parts", "2", "-for", "1ns", "-checkpoint", path)
	assert.Contains(t, first, "saved step 1 to ", "its time was over")
	rest := output(t, "-steps", "2", "-sample", "0", "-devices", "0", "-stages", "2", "-parts", "2", "-save", "1", "-checkpoint", path)
	assert.Contains(t, rest, "continues after step 1 of ")
	assert.Equal(t, want, step.FindAllStringSubmatch(first+rest, -1))
	assert.Len(t, stage.FindAllString(first+rest, -1), 4)
}

// Copies on devices of their own train, show each stage, and leave a checkpoint that one copy continues.
func TestCopies(t *testing.T) {
	if testing.Short() {
		return
	}
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	path := filepath.Join(t.TempDir(), "checkpoint")
	two := func(o *options) { o.config.Driver = cpu.New(cpu.Config{Devices: 2}) }
	args := []string{"-driver", "sim", "-batch", "1", "-parts", "2", "-length", "3", "-bytes", "10000", "-every", "1", "-steps", "3", "-save", "1", "-checkpoint", path}
	train := func(args ...string) string {
		var stdout, stderr bytes.Buffer
		require.Equal(t, command.OK, changed(t.Context(), args, &stdout, &stderr, two), "%s%s", &stdout, &stderr)
		return stdout.String()
	}
	first := train(append(args, "-for", "1ns", "-copies", "2", "-devices", "0,1", "-stages", "2")...)
	assert.Regexp(t, `(?m)^  copy 1, stage 0 on device 1: 1 block, 1 micro-batch at a time, \S+ [KM]iB, waits +\d+ %$`, first)
	assert.Equal(t, 4, strings.Count(first, "  copy "))
	rest := train(append(args, "-stages", "1")...)
	assert.Contains(t, rest, "continues after step 1 of ")
	assert.NotContains(t, rest, "  copy ")
}

// writer calls a function with the bytes of each Write.
type writer func(b []byte)

func (w writer) Write(b []byte) (int, error) {
	w(b)
	return len(b), nil
}

func TestMistakes(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	short := filepath.Join(t.TempDir(), "short")
	require.NoError(t, os.WriteFile(short, []byte("too short a text"), 0o600))
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"help":              {[]string{"-h"}, command.OK, "-checkpoint"},
		"no such model":     {[]string{"-model", "huge"}, command.Misused, "tiny, char or 124m"},
		"no such type":      {[]string{"-type", "int8"}, command.Misused, "float32 or bfloat16"},
		"no prompt":         {[]string{"-prompt", ""}, command.Misused, "-prompt"},
		"a temperature":     {[]string{"-temperature", "-1"}, command.Misused, "-temperature"},
		"no part":           {[]string{"-parts", "0"}, command.Misused, "-parts"},
		"no tokenizer":      {[]string{"-tokenizer", short}, command.Failed, "vocab.json"},
		"no weights":        {[]string{"-driver", "sim", "-bytes", "1000", "-weights", short}, command.Failed, "safetensors"},
		"too many stages":   {[]string{"-stages", "3"}, command.Misused, "1 to 2 -stages"},
		"too many devices":  {[]string{"-devices", "0,1,2"}, command.Misused, "1 to 2 -stages"},
		"no device":         {[]string{"-devices", "0,x"}, command.Misused, "-devices"},
		"stages, no graph":  {[]string{"-stages", "2", "-graph=false"}, command.Misused, "-graph"},
		"copies, a device":  {[]string{"-copies", "2"}, command.Misused, "-devices"},
		"three devices":     {[]string{"-copies", "2", "-devices", "0,1,2"}, command.Misused, "-devices"},
		"copies, parts":     {[]string{"-copies", "2", "-devices", "0,1", "-parts", "3"}, command.Misused, "-parts"},
		"no copy":           {[]string{"-copies", "0"}, command.Misused, "-copies"},
		"no checkpoint":     {[]string{"-save", "2"}, command.Misused, "-checkpoint"},
		"no step":           {[]string{"-steps", "-1"}, command.Misused, "-steps"},
		"no batch":          {[]string{"-driver", "sim", "-bytes", "1000", "-batch", "0"}, command.Failed, "batch"},
		"a long sequence":   {[]string{"-driver", "sim", "-bytes", "1000", "-length", "17"}, command.Failed, "positions"},
		"a short text":      {[]string{"-data", short}, command.Misused, "too few"},
		"no file":           {[]string{"-data", short + ".missing"}, command.Failed, "-data"},
		"another file":      {[]string{"-driver", "sim", "-bytes", "1000", "-checkpoint", short}, command.Failed, "safetensors"},
		"too little memory": {[]string{"-driver", "sim", "-bytes", "10000", "-limit", "16MB", "-model", "char"}, command.Failed, "memory"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr), name)
		assert.Contains(t, stderr.String(), c.text, name)
	}
}

// A batch depends on seed and step alone, and a target is the token after its position.
func TestBatches(t *testing.T) {
	const sentence = "the quick brown fox jumps over the lazy dog"
	from := coder{}.encode([]byte(sentence))
	var first, again, other drawn
	first.draw(from, 1, 7, 3, 5)
	require.Len(t, first.tokens, 15)
	again.draw(from, 1, 8, 3, 5)
	again.draw(from, 1, 7, 3, 5)
	assert.Equal(t, first, again)
	other.draw(from, 1, 8, 3, 5)
	assert.NotEqual(t, first, other)
	for i := range first.tokens {
		if i%5 < 4 {
			assert.Equal(t, first.tokens[i+1], first.targets[i])
		}
		assert.Contains(t, sentence, string(coder{}.decode([]int64{first.tokens[i], first.targets[i]})))
	}
	assert.Equal(t, "a\uFFFD\uFFFD", string(coder{}.decode([]int64{'a', 256, -1})))
}

// A program that begins with the weights of another one's checkpoint, and with a tokenizer, continues the text as that one.
func TestWeights(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	folder := t.TempDir()
	path := filepath.Join(folder, "weights")
	certain := []string{"-sample", "2", "-temperature", "0", "-prompt", "fu"}
	trained := output(t, append(certain, "-steps", "1", "-parts", "2", "-checkpoint", path)...)
	loaded := output(t, append(certain, "-steps", "0", "-weights", path)...)
	_, want, found := strings.Cut(trained, "---\n")
	require.True(t, found)
	_, got, _ := strings.Cut(loaded, "---\n")
	assert.Equal(t, want, got)
	assert.Contains(t, loaded, "weights of "+path)

	entries := map[string]int{} // the tokens 0 to 255 are the bytes in another order, and "fu" is one token
	for b := range 256 {
		character := rune(b)
		switch {
		case b < 33:
			character = rune(256 + b)
		case b > 126 && b < 161:
			character = rune(256 + b - 94)
		case b == 173:
			character = 323
		}
		entries[string(character)] = 255 - b
	}
	vocabulary, err := json.Marshal(entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vocab.json"), vocabulary, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "merges.txt"), nil, 0o600))
	coded := output(t, append(certain, "-steps", "1", "-parts", "2", "-tokenizer", folder)...)
	assert.Regexp(t, `(?s)---\nfu`, coded)

	entries["fu"] = 256
	vocabulary, err = json.Marshal(entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vocab.json"), vocabulary, 0o600))
	var stdout, stderr bytes.Buffer
	assert.Equal(t, command.Misused, run(t.Context(), []string{"-driver", "sim", "-tokenizer", folder}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "the tokenizer has 257 tokens, and the model 256")
}
