package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/build"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/examples/internal/command"
)

// entry is the program with some model.
type entry func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// quick returns the program, in the short form with the least model.
func quick() entry {
	if testing.Short() {
		return least
	}
	return run
}

func (run entry) output(t *testing.T, args ...string) string {
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
	whole := entry(run).output(t, "-steps", "3", "-sample", "4")
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
	assert.NotContains(t, stdout.String(), "---", "no sample after an interrupt")
	rest := entry(run).output(t, "-steps", "3", "-sample", "0", "-checkpoint", path)
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
	want := step.FindAllStringSubmatch(quick().output(t, "-steps", "2", "-sample", "0", "-stages", "1", "-parts", "2"), -1)
	require.Len(t, want, 2)

	path := filepath.Join(t.TempDir(), "checkpoint")
	first := quick().output(t, "-steps", "2", "-sample", "1", "-stages", "2", "-parts", "2", "-for", "1ns", "-checkpoint", path)
	assert.Contains(t, first, "saved step 1 to ", "its time was over")
	rest := quick().output(t, "-steps", "2", "-sample", "0", "-devices", "0", "-stages", "2", "-parts", "2", "-save", "1", "-checkpoint", path)
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

// A batch may be of any place of the text, the last one too; steps of one seed, and seeds of one step, draw different ones.
func TestPlacesOfBatches(t *testing.T) {
	from := make([]int64, 12)
	for i := range from {
		from[i] = int64(i)
	}
	begins := map[int64]int{}
	batches := map[string]bool{}
	for seed := range uint64(5) {
		for step := range 5 {
			var d drawn
			d.draw(from, seed, step, 8, 8)
			for i := range d.tokens {
				if i%8 == 0 {
					begins[d.tokens[i]]++
				}
				assert.Equal(t, d.tokens[i]+1, d.targets[i])
			}
			batches[fmt.Sprint(d.tokens)] = true
		}
	}
	assert.Len(t, begins, 4, "%v", begins)
	for place, count := range begins {
		assert.InDelta(t, 25*8/4, count, 30, "place %d", place)
	}
	assert.Len(t, batches, 25)
}

// The text is of all files one after the other, up to a number of bytes; the last tenth is for the test. Without files it is of Go's
// source tree, without testdata.
func TestTextsToLearn(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, "src", name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	a, b := write("a.go", "0123456789abcdefghij"), write("c/b.go", "klmnopqrst")
	write("c/README", "no source")
	write("c/testdata/d.go", "no source either")
	write("e/f.go", "uvwxyz")
	was := build.Default.GOROOT
	t.Cleanup(func() { build.Default.GOROOT = was })
	build.Default.GOROOT = folder
	decoded := func(tokens []int64) string { return string(coder{}.decode(tokens)) }
	for _, c := range []struct {
		most           int64
		paths          []string
		lessons, tests string
	}{
		{100, []string{a, b}, "0123456789abcdefghijklmnopq", "rst"},
		{100, []string{b, a}, "klmnopqrst0123456789abcdefg", "hij"},
		{25, []string{a, b}, "0123456789abcdefghijklm", "no"},
		{20, []string{a, b}, "0123456789abcdefgh", "ij"},
		{100, nil, "0123456789abcdefghijklmnopqrstuvw", "xyz"},
		{12, nil, "0123456789a", "b"},
	} {
		x, err := load(c.most, c.paths, coder{})
		require.NoError(t, err)
		assert.Equal(t, [3]any{c.lessons, c.tests, len(c.lessons) + len(c.tests)}, [3]any{decoded(x.lessons), decoded(x.tests), x.bytes})
	}
	for _, paths := range [][]string{{filepath.Join(folder, "none"), a}, {a, filepath.Join(folder, "none")}} {
		_, err := load(100, paths, coder{})
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "-data names files")
	}
	build.Default.GOROOT = filepath.Join(folder, "none")
	_, err := load(100, nil, coder{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A line of progress comes each -every steps and at the last one; a checkpoint is written each -save steps, and at the end; -for ends the
// training after a step.
func TestStepsOfProgress(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	line := regexp.MustCompile(`(?m)^step +(\d+): `)
	for _, c := range []struct {
		args   []string
		lines  []string
		stored []string // in the checkpoint, when each line comes
		end    string
	}{
		{[]string{"-steps", "5"}, []string{"1", "2", "3", "4", "5"}, []string{"", "", "", "", ""}, "5"},
		{[]string{"-steps", "5", "-save", "2"}, []string{"1", "2", "3", "4", "5"}, []string{"", "", "2", "2", "4"}, "5"},
		{[]string{"-steps", "5", "-every", "3"}, []string{"3", "5"}, []string{"", ""}, "5"},
		{[]string{"-steps", "50", "-for", "1ns", "-every", "7"}, []string{"1"}, []string{""}, "1"},
	} {
		if testing.Short() && len(c.args) == 2 { // the others have its lines and its checkpoint, too
			continue
		}
		path := filepath.Join(t.TempDir(), "checkpoint")
		stored := func() string {
			f, err := safetensors.OpenFile(path)
			if err != nil {
				require.ErrorIs(t, err, os.ErrNotExist)
				return ""
			}
			defer func() { assert.NoError(t, f.Close()) }()
			return f.Metadata()["step"]
		}
		var lines, seen []string
		var stderr bytes.Buffer
		args := append([]string{"-driver", "sim", "-batch", "1", "-length", "3", "-bytes", "10000", "-every", "1", "-sample", "0", "-checkpoint", path}, c.args...)
		require.Equal(t, command.OK, quick()(t.Context(), args, writer(func(b []byte) {
			if found := line.FindSubmatch(b); found != nil {
				lines, seen = append(lines, string(found[1])), append(seen, stored())
			}
		}), &stderr), &stderr)
		assert.Equal(t, c.lines, lines, "%v", c.args)
		assert.Equal(t, c.stored, seen, "%v", c.args)
		assert.Equal(t, c.end, stored(), "%v", c.args)
	}
}

// The rate rises in a twentieth of the steps, and in one at least.
func TestTrainingOfFlags(t *testing.T) {
	for steps, warmup := range map[string]int{"1": 1, "19": 1, "40": 2, "400": 20} {
		o, err := parse([]string{"-driver", "sim", "-steps", steps, "-rate", "0.5"}, io.Discard)
		require.NoError(t, err)
		assert.Equal(t, model.Schedule{Rate: 0.5, Warmup: warmup, Steps: o.steps}, o.training.Schedule)
		assert.Equal(t, [2]float64{1, 0.1}, [2]float64{o.training.Clip, o.training.Decay})
	}
}

// A program that begins with the weights of another one's checkpoint, and with a tokenizer, continues the text as that one.
func TestWeights(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	folder := t.TempDir()
	path := filepath.Join(folder, "weights")
	certain := []string{"-sample", "2", "-temperature", "0", "-prompt", "fu"}
	trained := quick().output(t, append(certain, "-steps", "1", "-parts", "2", "-checkpoint", path)...)
	loaded := quick().output(t, append(certain, "-steps", "0", "-weights", path)...)
	_, want, found := strings.Cut(trained, "---\n")
	require.True(t, found)
	_, got, _ := strings.Cut(loaded, "---\n")
	assert.Equal(t, want, got)
	assert.Contains(t, loaded, "weights of "+path)
	both := quick().output(t, append(certain, "-steps", "1", "-parts", "2", "-weights", path, "-checkpoint", path)...)
	assert.Contains(t, both, "continues after step 1 of "+path, "a checkpoint goes before weights")
	var drawn []string
	for _, seed := range []string{"1", "2", "1"} {
		text := quick().output(t, "-steps", "0", "-weights", path, "-temperature", "1", "-top", "0", "-sample", "8", "-seed", seed)
		_, sample, _ := strings.Cut(text, "---\n")
		drawn = append(drawn, sample)
	}
	assert.NotEqual(t, drawn[0], drawn[1], "the seed is the sample's, too")
	assert.Equal(t, drawn[0], drawn[2])

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
	coded := quick().output(t, append(certain, "-steps", "1", "-parts", "2", "-tokenizer", folder)...)
	assert.Regexp(t, `(?s)---\nfu`, coded)

	entries["fu"] = 256
	vocabulary, err = json.Marshal(entries)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vocab.json"), vocabulary, 0o600))
	var stdout, stderr bytes.Buffer
	assert.Equal(t, command.Misused, run(t.Context(), []string{"-driver", "sim", "-tokenizer", folder}, &stdout, &stderr))
	assert.Contains(t, stderr.String(), "the tokenizer has 257 tokens, and the model 256")
}
