package model_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/vramtest"
)

// decoding returns a decoder, and the plain model, of one seed on a device that computes, checks every access and finds leaks.
func decoding(t *testing.T, config model.Config, sizes model.Decoding) (*model.Decoder, *model.Model) {
	t.Helper()
	return decodingFrom(t, config, sizes, model.Random(config, 1))
}

// decodingFrom is decoding with a decoder of other parameters.
func decodingFrom(t *testing.T, config model.Config, sizes model.Decoding, from model.Source, with ...vramtest.Option) (*model.Decoder, *model.Model) {
	t.Helper()
	dev := vramtest.Open(t, append(with, vramtest.Kernels(vramtest.KernelConfig{Pointers: true}))...)
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
	d, err := model.NewDecoder(c, o, config, from, sizes)
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

// tiny is model.Tiny, in the short form narrower and with fewer tokens.
func tiny() model.Config {
	config := model.Tiny
	if testing.Short() {
		config.Width, config.Vocabulary = 16, 61
	}
	return config
}

// Sequences that come and go between steps have the tokens of the plain model, with pages and chunks that end anywhere.
func TestDecoderIsThePlainModel(t *testing.T) {
	config := tiny()
	d, m := decoding(t, config, model.Decoding{Batch: 3, Chunk: 5, PageRows: 4})
	random := rand.New(rand.NewPCG(6, 0))
	var all, ended []*text
	for n, length := range []int{1, 7, 12, 4, 2, 9} {
		prompt, _ := batch(random, length, config.Vocabulary)
		tokens := 4 + n%2 // others join when some have ended
		want, err := m.Sample(prompt, tokens, model.Sampling{})
		require.NoError(t, err)
		x := &text{want: want}
		x.Sequence, x.tokens = prefilled(t, d, prompt, tokens, model.Draw{})
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

// A step or a prefill of which a driver call fails changes no sequence, whichever call that is: the same again, and all later
// steps, have the tokens of the plain model.
func TestWorkThatFailsCanBeRepeated(t *testing.T) {
	config := tiny()
	var faults *fault.Driver
	d, m := decodingFrom(t, config, model.Decoding{Batch: 2, Chunk: 3, PageRows: 4}, model.Random(config, 1),
		vramtest.Wrap(func(inner cudadrv.Driver) cudadrv.Driver {
			faults = fault.Wrap(inner)
			return faults
		}))
	failed := map[string]int{}
	repeated := func(launch string, unchanged func(), work func() error) {
		for _, function := range []string{launch, "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync"} {
			require.NoError(t, faults.Add(fault.Rule{Func: function, Result: cudadrv.Unknown}))
			err := work()
			faults.Clear()
			if err == nil {
				require.Equal(t, "cuMemcpyHtoDAsync", function)
				return // the device has the state already
			}
			require.ErrorIs(t, err, cudadrv.Unknown, function)
			failed[function]++
			unchanged()
		}
		require.NoError(t, work())
	}
	const tokens = 6
	var all, now []*model.Sequence
	var got, want [][]int64
	for _, prompt := range [][]int64{{3, 1, 4, 1, 5}, {9, 2}} {
		plain, err := m.Sample(prompt, tokens, model.Sampling{})
		require.NoError(t, err)
		s, err := d.NewSequence(t.Context(), len(prompt)+tokens, model.Draw{}, nil)
		require.NoError(t, err)
		left := s.Left()
		var token int64
		repeated("cuLaunchKernel", func() { require.Equal(t, left, s.Left()) }, func() (err error) { token, err = d.Prefill(s, prompt); return err })
		all, got, want = append(all, s), append(got, append(slices.Clone(prompt), token)), append(want, plain)
	}
	for n, which := range [][]int{{0, 1}, {1, 0}, {1, 0}, {0, 1}, {0}, {1}} { // in places that stay, and that change
		now = now[:0] // the same memory of the caller
		var left []int
		for _, i := range which {
			now, left = append(now, all[i]), append(left, all[i].Left())
		}
		work := func() error {
			next, err := d.Step(now)
			for i, token := range next {
				got[which[i]] = append(got[which[i]], token)
			}
			return err
		}
		if n == 1 || n == 3 { // of which no call fails
			require.NoError(t, work())
			continue
		}
		repeated("cuGraphLaunch", func() {
			for i, s := range now {
				require.Equal(t, left[i], s.Left())
			}
		}, work)
	}
	assert.Equal(t, want[0], got[0])
	assert.Equal(t, want[1], got[1])
	assert.Equal(t, map[string]int{"cuLaunchKernel": 2, "cuGraphLaunch": 4, "cuMemcpyDtoHAsync": 6, "cuMemcpyHtoDAsync": 6}, failed)
	for _, s := range all {
		require.NoError(t, s.Free())
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

// New makes the same random parameters as Random.
func TestRandomParameters(t *testing.T) {
	_, m := decoding(t, small, model.Decoding{Batch: 1, Chunk: 1, PageRows: 1})
	from := model.Random(small, 1)
	for _, p := range m.Parameters() {
		values, err := from(p.Name, p.Param.Shape())
		require.NoError(t, err)
		var want []float32
		for _, v := range read(t, p.Param) {
			want = append(want, float32(v))
		}
		assert.Equal(t, want, values, p.Name)
	}
	_, err := from("h.0.ln_1.weight", []int{8})
	var config *model.ConfigError
	require.ErrorAs(t, err, &config, "there is no other one")
}

// Values of 16 bits have the tokens of float32 where no two logits are close: with parameters that make attention count.
func TestDecoderOfHalves(t *testing.T) {
	config := model.Config{Layers: 1, Width: 16, Heads: 2, Context: 20, Vocabulary: 32, Type: tensor.Float32}
	tokens := func(of tensor.Type) (all [][]int64) {
		config.Type = of
		random := model.Random(config, 4)
		d, _ := decodingFrom(t, config, model.Decoding{Batch: 2, Chunk: 3, PageRows: 2}, func(name string, shape []int) ([]float32, error) {
			values, err := random(name, shape)
			scale := float32(1)
			if strings.Contains(name, "attn") {
				scale = 25
			}
			for i := range values {
				values[i] *= scale
			}
			return values, err
		})
		a, first := prefilled(t, d, []int64{3, 1, 4, 1, 5}, 10, model.Draw{})
		b, second := prefilled(t, d, []int64{9, 2, 6}, 10, model.Draw{})
		for range 9 {
			next, err := d.Step([]*model.Sequence{a, b})
			require.NoError(t, err)
			first, second = append(first, next[0]), append(second, next[1])
		}
		return [][]int64{first, second}
	}
	want := tokens(tensor.Float32)
	assert.Equal(t, want, tokens(tensor.BFloat16))
	slices.Sort(want[0])
	assert.Greater(t, len(slices.Compact(want[0])), 5, "they differ")
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// A draw takes each token as often as softmax says, of the most probable ones alone, and by its seed.
func TestDrawsOnTheDevice(t *testing.T) {
	logits := []float32{0, 2, 3, 2, -1, 1, 0, 0, 0, 0, 1}
	config := model.Config{Layers: 1, Width: 8, Heads: 2, Context: 64, Vocabulary: len(logits), Type: tensor.Float32}
	d, _ := decodingFrom(t, config, model.Decoding{Batch: 4, Chunk: 1, PageRows: 8}, func(name string, shape []int) ([]float32, error) {
		values := make([]float32, product(shape))
		switch name { // the last norm is its bias
		case "wte.weight":
			for i, v := range logits {
				values[i*shape[1]] = v
			}
		case "ln_f.bias":
			values[0] = 1
		}
		return values, nil
	})
	const steps = 60
	draw := func(how ...model.Draw) (counts [][]float64) {
		var all []*model.Sequence
		for _, one := range how {
			s, err := d.NewSequence(t.Context(), steps+2, one, nil)
			require.NoError(t, err)
			_, err = d.Prefill(s, []int64{0})
			require.NoError(t, err)
			all, counts = append(all, s), append(counts, make([]float64, len(logits)))
		}
		for range steps {
			tokens, err := d.Step(all)
			require.NoError(t, err)
			for i, token := range tokens {
				counts[i][token]++
			}
		}
		for _, s := range all {
			require.Zero(t, s.Left())
			require.NoError(t, s.Free())
			require.NoError(t, s.Free())
		}
		return counts
	}
	got := draw(model.Draw{Temperature: 0.5, Top: 3, Seed: 1}, model.Draw{}, model.Draw{Temperature: 0.5, Top: 3, Seed: 1}, model.Draw{Temperature: 2, Seed: 9})
	assert.Equal(t, got[0], got[2], "one seed")
	sum := 1 + 2*math.Exp(-2)
	for token, want := range map[int]float64{2: steps / sum, 1: steps * math.Exp(-2) / sum, 3: steps * math.Exp(-2) / sum, 0: 0, 4: 0, 5: 0} {
		assert.InDelta(t, want, got[0][token], 10, token)
	}
	assert.Zero(t, got[0][0]+got[0][4]+got[0][5]+got[0][10], "the three most probable ones")
	assert.InDelta(t, steps, got[1][2], 0, "the most probable one")
	tail := got[3][0] + got[3][4] + got[3][5] + got[3][6] + got[3][7] + got[3][8] + got[3][9] + got[3][10]
	assert.InDelta(t, 0.51*steps, tail, 14, "of all tokens")
	assert.NotEqual(t, got[0], got[3])
}

// Sequences and sizes that cannot be are refused, and nothing is lost.
func TestDecoderMistakes(t *testing.T) {
	config := model.Config{Layers: 1, Width: 8, Heads: 2, Context: 6, Vocabulary: 11, Type: tensor.Float32}
	d, m := decoding(t, config, model.Decoding{Batch: 2, Chunk: 2, PageRows: 2})
	var wrong *model.ConfigError
	for _, x := range []model.Decoding{{Batch: -1}, {Batch: 1 << 20}, {Chunk: -1}, {PageRows: 3}, {PageRows: -2}} {
		_, err := model.NewDecoder(m.Context(), m.Ops(), config, model.Random(config, 1), x)
		require.ErrorAs(t, err, &wrong, "%v", x)
	}
	heads := config
	heads.Width, heads.Heads = 12, 2 // of 6 elements
	_, err := model.NewDecoder(m.Context(), m.Ops(), heads, model.Random(heads, 1), model.Decoding{})
	require.ErrorAs(t, err, &wrong)
	gone := errors.New("gone")
	_, err = model.NewDecoder(m.Context(), m.Ops(), config, func(string, []int) ([]float32, error) { return nil, gone }, model.Decoding{})
	require.ErrorIs(t, err, gone)
	_, err = model.NewDecoder(m.Context(), m.Ops(), config, func(string, []int) ([]float32, error) { return nil, nil }, model.Decoding{})
	require.ErrorAs(t, err, &wrong)
	for _, tokens := range []int{0, 1, 8} {
		_, err := d.NewSequence(t.Context(), tokens, model.Draw{}, nil)
		require.ErrorAs(t, err, &wrong, tokens)
	}
	for _, draw := range []model.Draw{{Temperature: -1}, {Temperature: math.NaN()}, {Top: -1}} {
		_, err := d.NewSequence(t.Context(), 3, draw, nil)
		require.ErrorAs(t, err, &wrong, "%v", draw)
	}
	s, err := d.NewSequence(t.Context(), 3, model.Draw{}, nil)
	require.NoError(t, err)
	for _, prompt := range [][]int64{nil, {1, 2, 3}, {11}, {-1}} {
		_, err := d.Prefill(s, prompt)
		require.ErrorAs(t, err, &wrong, "%v", prompt)
	}
	for _, all := range [][]*model.Sequence{nil, {s}, {s, s, s}} {
		_, err := d.Step(all)
		require.ErrorAs(t, err, &wrong)
	}
	require.NoError(t, d.Sleep(t.Context()))
	_, err = d.Prefill(s, []int64{1})
	require.ErrorIs(t, err, cuda.ErrAsleep)
	require.NoError(t, d.Wake(t.Context()))
	_, err = d.Prefill(s, []int64{1})
	require.NoError(t, err)
	require.NoError(t, d.Sleep(t.Context()))
	_, err = d.Step([]*model.Sequence{s})
	require.ErrorIs(t, err, cuda.ErrAsleep)
	require.NoError(t, d.Wake(t.Context()))
	_, err = d.Prefill(s, []int64{1})
	require.ErrorAs(t, err, &wrong, "a second time")
	_, err = d.Step([]*model.Sequence{s})
	require.NoError(t, err)
	_, err = d.Step([]*model.Sequence{s})
	require.ErrorAs(t, err, &wrong, "it is complete")
	require.NoError(t, s.Free())
	other, err := model.NewDecoder(m.Context(), m.Ops(), config, model.Random(config, 1), model.Decoding{Batch: 1, Chunk: 1, PageRows: 2})
	require.NoError(t, err)
	left, _ := prefilled(t, d, []int64{1}, 3, model.Draw{})
	_, err = other.Step([]*model.Sequence{left})
	require.ErrorAs(t, err, &wrong, "of another decoder")
	fresh, err := d.NewSequence(t.Context(), 3, model.Draw{}, nil)
	require.NoError(t, err)
	_, err = other.Prefill(fresh, []int64{1})
	require.ErrorAs(t, err, &wrong, "of another decoder")
	require.NoError(t, errors.Join(fresh.Free(), left.Free(), other.Close()))
	_, err = d.Step([]*model.Sequence{left})
	require.ErrorAs(t, err, &wrong, "freed before it is complete")
	_, err = d.Prefill(fresh, []int64{1})
	require.ErrorAs(t, err, &wrong, "freed")
}

// The compiled kernels match their source: make kernels.
func TestCompiledKernelsMatchTheirSource(t *testing.T) {
	source, err := os.ReadFile("kernels/decode.cu")
	require.NoError(t, err)
	sum := sha256.Sum256(source)
	for _, of := range []tensor.Type{tensor.Float32, tensor.BFloat16} {
		text, err := os.ReadFile("kernels/decode_" + of.String() + ".ptx")
		require.NoError(t, err)
		first, _, _ := strings.Cut(string(text), "\n")
		assert.Equal(t, "// decode.cu "+hex.EncodeToString(sum[:]), first, "make kernels")
		assert.NotContains(t, string(text), ".local", "registers in memory")
	}
}

// No prompt of any length allocates: what it needs was there from the beginning, also where the products of some lengths are computed in more
// parts than longer ones. The device computes nothing.
func TestPrefillAllocatesNothing(t *testing.T) {
	config := model.Config{Layers: 1, Width: 768, Heads: 12, Context: 512, Vocabulary: 11, Type: tensor.BFloat16}
	c, err := cuda.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TimedKernels: true})})
	require.NoError(t, err)
	o, err := ops.New(c)
	require.NoError(t, err)
	d, err := model.NewDecoder(c, o, config, model.Random(config, 1), model.Decoding{Batch: 1, PageRows: 8})
	require.NoError(t, err)
	for length := 1; length <= config.Context; length++ {
		prompt, _ := batch(rand.New(rand.NewPCG(8, 0)), length, config.Vocabulary)
		s, err := d.NewSequence(t.Context(), length+1, model.Draw{}, nil)
		require.NoError(t, err)
		before := c.Device().Stats().AllocCount
		_, err = d.Prefill(s, prompt)
		require.NoError(t, err)
		assert.Equal(t, before, c.Device().Stats().AllocCount, "a prompt of %d tokens", length)
		require.NoError(t, s.Free())
	}
	require.NoError(t, errors.Join(c.Synchronize(t.Context()), d.Close(), o.Close(), c.Close()))
}
