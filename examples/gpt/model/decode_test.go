package model_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/vramtest"
)

// decoding returns a decoder, and the plain model, of one seed on a device that computes, checks every access and finds leaks.
func decoding(t *testing.T, config model.Config, sizes model.Decoding) (*model.Decoder, *model.Model) {
	t.Helper()
	dev := vramtest.Open(t, vramtest.Kernels(vramtest.KernelConfig{Pointers: true}))
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	o, err := ops.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Synchronize(context.WithoutCancel(t.Context())))
		assert.NoError(t, o.Close())
	})
	m, err := model.New(c, o, config, 1)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, m.Close()) })
	d, err := model.NewDecoder(c, o, config, model.Random(config, 1), sizes)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d, m
}

// prefilled returns a sequence with its prompt's keys and values, and its tokens so far.
func prefilled(t *testing.T, d *model.Decoder, prompt []int64, tokens int, draw model.Draw) (*model.Sequence, []int64) {
	t.Helper()
	s, err := d.NewSequence(t.Context(), len(prompt)+tokens, draw, nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Free()) })
	token, err := d.Prefill(s, prompt)
	require.NoError(t, err)
	return s, append(append([]int64{}, prompt...), token)
}

// Sequences that come and go between steps have the tokens of the plain model, with pages and chunks that end anywhere.
func TestDecoderIsThePlainModel(t *testing.T) {
	config := model.Tiny
	d, m := decoding(t, config, model.Decoding{Batch: 3, Chunk: 5, PageRows: 4})
	random := rand.New(rand.NewPCG(6, 0))
	var all, ended []*text
	for n, length := range []int{1, 7, 12, 4, 2, 9} {
		prompt, _ := batch(random, length, config.Vocabulary)
		want, err := m.Sample(prompt, 4, model.Sampling{})
		require.NoError(t, err)
		x := &text{want: want}
		x.Sequence, x.tokens = prefilled(t, d, prompt, 4, model.Draw{})
		all = append(all, x)
		for len(all) == 3 || n == 5 && len(all) > 0 { // one, two and three at a time, in places that change
			all, ended = step(t, d, all, ended)
		}
		if len(all) == 2 && n%2 == 1 {
			all, ended = step(t, d, all, ended)
			slices.Reverse(all)
		}
	}
	require.Len(t, ended, 6)
	for _, x := range ended {
		assert.Equal(t, x.want, x.tokens)
	}
}

type text struct {
	*model.Sequence
	tokens, want []int64
}

// step makes a step of some texts, and frees those that are complete.
func step(t *testing.T, d *model.Decoder, all, ended []*text) (left, done []*text) {
	t.Helper()
	var sequences []*model.Sequence
	for _, x := range all {
		sequences = append(sequences, x.Sequence)
	}
	tokens, err := d.Step(sequences)
	require.NoError(t, err)
	for i, x := range all {
		if x.tokens = append(x.tokens, tokens[i]); x.Left() > 0 {
			left = append(left, x)
			continue
		}
		require.NoError(t, x.Free())
		ended = append(ended, x)
	}
	return left, ended
}
