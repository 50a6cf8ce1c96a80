package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/examples/gpt/bpe"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/examples/internal/command"
)

// Each number of a request has its bounds, which are allowed, and its default.
func TestBoundsOfRequests(t *testing.T) {
	t.Parallel()
	ofBytes := tokenizer{bytes: true}
	c := small()
	whole := strings.Repeat("a", c.Context)
	for name, r := range map[string]completionRequest{
		"the longest answer":   {Prompt: promptOf("a"), MaxTokens: c.Context},
		"the longest prompt":   {Prompt: promptOf(whole), MaxTokens: 1},
		"the greatest top":     {Prompt: promptOf("a"), TopK: c.Vocabulary},
		"the longest timeout":  {Prompt: promptOf("a"), TimeoutSeconds: 3600},
		"the last token":       {Prompt: prompt{tokens: []int64{0, int64(c.Vocabulary) - 1}}},
		"a temperature and so": {Prompt: promptOf("a"), Temperature: 7, Seed: 1 << 63},
	} {
		require.NoError(t, r.check(c, ofBytes, time.Hour), name)
	}
	for name, r := range map[string]completionRequest{
		"max_tokens": {Prompt: promptOf("a"), MaxTokens: c.Context + 1}, "the number of the prompt's tokens": {Prompt: promptOf(whole + "a")},
		"top_k": {Prompt: promptOf("a"), TopK: c.Vocabulary + 1}, "timeout_seconds": {Prompt: promptOf("a"), TimeoutSeconds: 3600.5},
		"prompt[1]": {Prompt: prompt{tokens: []int64{0, int64(c.Vocabulary)}}},
	} {
		var refused *fieldError
		require.ErrorAs(t, r.check(c, ofBytes, time.Hour), &refused, name)
		assert.Equal(t, name, refused.Field)
	}
	r := completionRequest{Prompt: promptOf("ab"), Temperature: 0.5, TopK: 3, Seed: 9}
	require.NoError(t, r.check(c, ofBytes, time.Minute))
	assert.Equal(t, [2]any{16, 60.0}, [2]any{r.MaxTokens, r.TimeoutSeconds})
	assert.Equal(t, []int64{'a', 'b'}, r.Prompt.tokens)
	assert.Equal(t, model.Draw{Temperature: 0.5, Top: 3, Seed: 9}, r.draw())
}

// Texts need a model whose tokens are bytes, or a tokenizer; a token that has no text has an empty one.
func TestTextsOfTokens(t *testing.T) {
	t.Parallel()
	var refused *fieldError
	_, err := tokenizer{}.encode("a")
	require.ErrorAs(t, err, &refused)
	assert.Empty(t, tokenizer{}.decode('a'))
	entries := map[string]int{}
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
	pairs, err := bpe.New(bytes.NewReader(vocabulary), strings.NewReader(""))
	require.NoError(t, err)
	x := tokenizer{pairs: pairs}
	tokens, err := x.encode("a ä")
	require.NoError(t, err)
	assert.Equal(t, []int64{255 - 'a', 255 - ' ', 255 - 0xc3, 255 - 0xa4}, tokens)
	assert.Equal(t, "a ä", x.decode(tokens...))
	assert.Empty(t, x.decode(256))
	assert.Equal(t, "a ä", tokenizer{bytes: true}.decode('a', ' ', 0xc3, 0xa4))
}

// A problem has the bytes of the request that memory refused, and of the limit that it exceeds.
func TestBytesOfProblems(t *testing.T) {
	t.Parallel()
	quota := &vram.QuotaError{RequestedBytes: 5, Quota: vram.Quota{ShareBytes: 7, LimitBytes: 9}}
	for _, c := range []struct {
		err                    error
		code                   string
		requested, free, limit int64
	}{
		{quota, "larger_than_quota", 5, 0, 9},
		{&vram.WaitError{Err: context.DeadlineExceeded, Quota: quota}, "over_quota", 5, 0, 9},
		{&vram.SizeError{RequestedBytes: 5, LimitBytes: 4}, "larger_than_device", 5, 0, 4},
		{&vram.OutOfMemoryError{RequestedBytes: 5, FreeBytes: 3, LimitBytes: 4}, "out_of_memory", 5, 3, 4},
		{&neverError{5, 4}, "larger_than_device", 5, 0, 4},
		{vram.ErrWouldDeadlock, "out_of_memory", 0, 0, 0},
		{&vram.WaitError{Err: context.DeadlineExceeded}, "no_memory_in_time", 0, 0, 0},
	} {
		p := problemOf(c.err)
		assert.Equal(t, [4]any{c.code, c.requested, c.free, c.limit}, [4]any{p.Code, p.RequestedBytes, p.FreeBytes, p.LimitBytes}, "%v", c.err)
	}
}

// A client takes an answer that has all its tokens; one that ends early, or not at all, is a failure.
func TestAnswersOfALoad(t *testing.T) {
	t.Parallel()
	const token = "data: {\"token\":97,\"text\":\"a\"}\n\n"
	read := func(text string) (s sample, err error) {
		err = s.read(strings.NewReader(text), time.Now())
		return s, err
	}
	s, err := read(token + token + token + "data: {\"finish_reason\":\"length\",\"usage\":{}}\n\ndata: [DONE]\n\n")
	require.NoError(t, err)
	assert.Equal(t, [2]int{3, 2}, [2]int{s.tokens, len(s.gaps)})
	for _, reason := range []string{endedDeadline, endedStopping, endedError, endedStop} {
		s, err = read(token + "data: {\"finish_reason\":\"" + reason + "\"}\n\ndata: [DONE]\n\n")
		var failed *loadError
		require.ErrorAs(t, err, &failed)
		assert.Equal(t, [2]any{reason, 1}, [2]any{failed.kind, s.tokens})
	}
	for _, text := range []string{"", token, token + "data: [DONE]\n\n"} {
		_, err = read(text)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, text)
	}
	_, err = read("data: {no JSON\n")
	require.Error(t, err)
}

// The sizes of requests are drawn from the least to the most.
func TestSizesOfALoad(t *testing.T) {
	t.Parallel()
	of := sizesOf(small())
	prompts, answers := map[int]bool{}, map[int]bool{}
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		length, answer := of.draw(random)
		prompts[length], answers[answer] = true, true
		assert.True(t, length >= of.leastPrompt && length <= of.mostPrompt && answer >= of.leastNew && answer <= of.mostNew)
	}
	assert.Len(t, prompts, of.mostPrompt-of.leastPrompt+1)
	assert.Len(t, answers, of.mostNew-of.leastNew+1)
	assert.Equal(t, sizes{1, 1, 1, 1}, sizesOf(model.Config{Context: 1}))
}

// A load has a limit and tenants where the command line names none.
func TestDefaultsOfALoad(t *testing.T) {
	clearVariables(t)
	own := []weight{{"own", 1}}
	for name, c := range map[string]struct {
		with    settings
		limited bool
		tenants int
	}{
		"none":        {settings{}, true, 3},
		"a limit":     {settings{Config: vram.Config{LimitBytes: 7}}, false, 3},
		"a fraction":  {settings{Config: vram.Config{MemoryFraction: 0.5}}, false, 3},
		"own tenants": {settings{Tenants: own}, true, 1},
	} {
		s := c.with
		s.Model = small()
		require.NoError(t, loading{ClientCount: 64}.defaults(&s), name)
		assert.Equal(t, c.limited, s.Config.LimitBytes != c.with.Config.LimitBytes, name)
		assert.Len(t, s.Tenants, c.tenants, name)
	}
	o, err := parse([]string{"-driver", "sim", "-load", "-seed", "7", "-tenants", "a=1000000"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, [2]any{uint64(7), uint64(7)}, [2]any{o.loading.Seed, o.settings.Seed})
	assert.Equal(t, []weight{{"a", 1000000}}, o.settings.Tenants)
	_, err = parse([]string{"-driver", "sim", "-tenants", "a=1000001"}, io.Discard)
	require.Error(t, err)
	for _, c := range []struct {
		name, of string
		want     tensor.Type
	}{
		{"tiny", "", tensor.Float32}, {"char", "", tensor.BFloat16}, {"char", "float32", tensor.Float32}, {"tiny", "bfloat16", tensor.BFloat16},
	} {
		got, err := sized(c.name, c.of)
		require.NoError(t, err)
		assert.Equal(t, c.want, got.Type, "%s %s", c.name, c.of)
	}
}

// The times of incomplete answers count, and requests without a token have none.
func TestTimesOfFailures(t *testing.T) {
	t.Parallel()
	late := &loadError{"deadline", errors.New("late")}
	o := outcome{tenants: []weight{{"a", 1}}, clients: []*client{{tenant: "a", samples: []sample{
		{first: 3, gaps: []time.Duration{5}, tokens: 2, err: late}, {err: late}, {first: 2, tokens: 1},
	}}}}
	each, _ := o.standings()
	assert.Equal(t, []time.Duration{2, 3}, each[0].first)
	assert.Equal(t, []time.Duration{5}, each[0].gaps)
	assert.Equal(t, [3]int{1, 2, 2}, [3]int{each[0].answered, each[0].failed(), each[0].failures["deadline"]})
}

// A service that cannot be opened, or cannot listen, leaves nothing; one that is closed does not sleep later.
func TestNothingIsLeft(t *testing.T) {
	clearVariables(t)
	synctest.Test(t, func(t *testing.T) { // which fails if a goroutine stays
		_, err := Open(settings{Config: vram.Config{Driver: cpu.New(cpu.Config{})}, Model: small(), Decoding: model.Decoding{Batch: 1, Chunk: 4}, Tokenizer: t.TempDir()})
		require.Error(t, err)
		assert.Equal(t, command.Failed, run(t.Context(), t.Context(), []string{"-driver", "sim", "-batch", "1", "-addr", "127.0.0.1:65536"}, io.Discard, io.Discard))

		sv, err := Open(settings{
			Config: vram.Config{Driver: cpu.New(cpu.Config{})}, Model: small(), Decoding: model.Decoding{Batch: 1, Chunk: 4, PageRows: 4}, Timeout: time.Minute, Idle: time.Minute,
		})
		require.NoError(t, err)
		w := httptest.NewRecorder()
		sv.complete(w, httptest.NewRequestWithContext(t.Context(), "POST", "/v1/completions", strings.NewReader(`{"prompt":"ab","max_tokens":3}`)))
		assert.Contains(t, w.Body.String(), endedLength)
		require.NoError(t, sv.Close())
		<-time.After(2 * time.Minute) // virtual
		assert.Zero(t, sv.sleeper.sleeps.Load())
		assert.False(t, sv.broken.Load())
	})
}
