package model_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/gpt/model"
)

// result has losses and norms of steps, and the parameters and moments after them.
type result struct {
	losses []float32
	state  [][]float64
}

// trained returns the result of a number of copies and stages.
func trained(t *testing.T, places []model.Place, config model.Config, training model.Training, copies, stages, steps int) (r result) {
	t.Helper()
	p, err := model.NewPipeline(t.Context(), places, config, training, 1, copies, stages)
	require.NoError(t, err)
	r.losses = train(t, p, steps, training.Parts)
	for _, x := range p.Parameters() {
		r.state = append(r.state, read(t, x.Param), read(t, x.First), read(t, x.Second))
	}
	require.NoError(t, p.Close())
	return r
}

// A number of copies has one result, bit for bit, for any number of stages. The first loss equals one copy's, bit for bit, and the rest
// differs by the order of additions.
func TestCopiesAgree(t *testing.T) {
	type shape struct{ copies, stages int }
	type row struct {
		of     tensor.Type
		parts  int
		shapes []shape
	}
	rows, steps := []row{{tensor.Float32, 2, []shape{{2, 1}, {2, 2}}}}, 1
	if !testing.Short() {
		steps = 3
		rows = []row{
			{tensor.Float32, 4, []shape{{1, 2}, {2, 1}, {2, 2}, {2, 4}, {4, 1}, {4, 2}}},
			{tensor.Float32, 3, []shape{{3, 1}, {3, 2}}},
			{tensor.BFloat16, 4, []shape{{1, 2}, {2, 1}, {2, 2}}},
		}
	}
	places := several(t, 4)
	for _, row := range rows {
		config, training := deepWith(2), staged
		config.Type, training.Parts = row.of, row.parts
		one := trained(t, places[:1], config, training, 1, 1, steps)
		by := map[int]result{1: one}
		for _, s := range row.shapes {
			devices := s.copies
			if s.copies == 2 {
				devices *= min(s.stages, 2) // also with a device for each stage
			}
			got := trained(t, places[:devices], config, training, s.copies, s.stages, steps)
			if _, ok := by[s.copies]; !ok {
				by[s.copies] = got
			}
			assert.Equal(t, by[s.copies], got, "%v", s)
			assert.Equal(t, one.losses[0], got.losses[0], "%v", s) //nolint:testifylint // the same bits
			assert.InDeltaSlice(t, one.losses, got.losses, 1e-5, "%v", s)
			for i := range one.state {
				require.InDeltaSlice(t, one.state[i], got.state[i], 1e-5, "%v: %d", s, i)
			}
		}
	}
}

// A checkpoint of two copies is the same file as without copies, and any number of copies continues it.
func TestCopiesResume(t *testing.T) {
	if testing.Short() {
		return
	}
	places, training := several(t, 2), staged
	path := filepath.Join(t.TempDir(), "checkpoint")
	before, err := model.NewPipeline(t.Context(), places, deep, training, 1, 2, 2)
	require.NoError(t, err)
	train(t, before, 1, training.Parts)
	require.NoError(t, before.Save(path))
	want := train(t, before, 2, training.Parts)
	require.NoError(t, before.Close())
	for _, copies := range []int{2, 1} {
		f, err := safetensors.OpenFile(path)
		require.NoError(t, err)
		after, err := model.NewPipeline(t.Context(), places[:copies], deep, training, 99, copies, 1)
		require.NoError(t, err)
		require.NoError(t, after.Resume(t.Context(), f))
		require.NoError(t, f.Close())
		got := train(t, after, 2, training.Parts)
		if copies == 2 {
			assert.Equal(t, want, got)
		}
		assert.InDeltaSlice(t, want, got, 1e-5)
		m, err := after.Whole(places[0])
		require.NoError(t, err)
		for i, p := range after.Parameters() {
			assert.Equal(t, m.Parameters()[i].Name, p.Name)
			assert.Equal(t, read(t, p.Param), read(t, m.Parameters()[i].Param), p.Name)
		}
		require.NoError(t, m.Close())
		require.NoError(t, after.Close())
	}
}

// Places and micro-batches that copies cannot divide are refused, and a step that ends early leaves nothing.
func TestCopiesMistakes(t *testing.T) {
	places := several(t, 3)
	var alone []model.Place // each for itself
	for i := range 2 {
		c, err := cuda.Open(vram.Config{Driver: sim.New(sim.Config{Devices: 2, Without: cudadrv.PeerAccess}), Ordinal: i})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		alone = append(alone, model.Place{Context: c})
	}
	four := staged
	four.Parts = 4
	for text, c := range map[string]struct {
		places   []model.Place
		training model.Training
		copies   int
	}{
		"want at least 1 copy, not 0":                         {places[:1], four, 0},
		"2 copies want as many devices each, and there are 1": {places[:1], four, 2},
		"2 copies want as many devices each, and there are 3": {places, four, 2},
		"3 copies cannot divide 4 micro-batches":              {places, four, 3},
		"device 1 is in two copies":                           {[]model.Place{places[0], places[1], places[1], places[2]}, four, 2},
		"cannot copy from others":                             {alone, four, 2},
	} {
		_, err := model.NewPipeline(t.Context(), c.places, deep, c.training, 1, c.copies, 2)
		var config *model.ConfigError
		require.ErrorAs(t, err, &config, text)
		assert.ErrorContains(t, err, text)
	}
	if testing.Short() {
		return
	}
	p, err := model.NewPipeline(t.Context(), places[:2], deep, four, 1, 2, 2)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ids := make([]int64, four.Parts*four.Batch*four.Length)
	require.ErrorIs(t, p.Step(ctx, ids, ids), context.Canceled)
	require.NoError(t, p.Close())
}
