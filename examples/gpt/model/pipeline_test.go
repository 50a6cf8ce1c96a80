package model_test

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/gpt/model"
	"github.com/go-vram/vram/vramtest"
)

// deep is the least model that four stages can have.
var deep = model.Config{Layers: 4, Width: 8, Heads: 2, Context: 4, Vocabulary: 11, Type: tensor.Float32}

// deepWith is deep, in the short form with so many layers.
func deepWith(layers int) model.Config {
	config := deep
	if testing.Short() {
		config.Layers = layers
	}
	return config
}

// staged is the training of pipelines.
var staged = model.Training{
	Batch: 1, Parts: 2, Length: 3, Clip: 0.5, Decay: 0.1, Schedule: model.Schedule{Rate: 1e-2, Warmup: 2, Steps: 6},
}

// placed returns a place on a device of a test.
func placed(t *testing.T, c *cuda.Context) model.Place {
	t.Helper()
	o, err := ops.New(c)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Synchronize(context.WithoutCancel(t.Context())))
		assert.NoError(t, o.Close())
	})
	return model.Place{Context: c, Ops: o}
}

// watched returns a place on a device that checks every access and finds leaks.
func watched(t *testing.T, options ...vramtest.Option) (model.Place, *vramtest.Device) {
	t.Helper()
	dev := vramtest.Open(t, append(options, vramtest.Kernels())...)
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return placed(t, c), dev
}

// several returns places on the devices of one machine.
func several(t *testing.T, devices int) (all []model.Place) {
	t.Helper()
	return severalOn(t, cpu.New(cpu.Config{Devices: devices}), devices)
}

func severalOn(t *testing.T, driver cudadrv.Driver, devices int) (all []model.Place) {
	t.Helper()
	for i := range devices {
		c, err := cuda.Open(vram.Config{Driver: driver, Ordinal: i})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, c.Close()) }) // finds leaks
		all = append(all, placed(t, c))
	}
	return all
}

func pipeline(t *testing.T, places []model.Place, config model.Config, training model.Training, stages int) *model.Pipeline {
	t.Helper()
	p, err := model.NewPipeline(t.Context(), places, config, training, 1, 1, stages)
	require.NoError(t, err)
	return p
}

// train makes steps with batches that depend on the number of the step alone, and returns losses and norms.
func train(t *testing.T, p *model.Pipeline, steps, parts int) (all []float32) {
	t.Helper()
	for range steps {
		random := rand.New(rand.NewPCG(3, uint64(p.Steps())))
		tokens, targets := batch(random, parts*staged.Batch*staged.Length, deep.Vocabulary)
		require.NoError(t, p.Step(t.Context(), tokens, targets))
		loss, err := p.Loss()
		require.NoError(t, err)
		norm, err := p.Norm()
		require.NoError(t, err)
		all = append(all, loss, norm)
	}
	return all
}

// One, two and four stages, on one device and on two, have the same losses, norms and parameters, bit for bit. The short form has one stage
// and three, with 16 bits two.
func TestStagesAgree(t *testing.T) {
	for of, counts := range map[tensor.Type][]int{tensor.Float32: {1, 2, 4}, tensor.BFloat16: {1, 4}} {
		t.Run(of.String(), func(t *testing.T) {
			config, training := deepWith(2), staged
			if of == tensor.Float32 {
				config, training.Parts = deepWith(3), 3
			}
			if config.Type = of; testing.Short() {
				counts = []int{1, config.Layers}
			}
			places := several(t, 2)
			var want []float32
			var parameters [][]float64
			for _, stages := range counts {
				devices := 1
				if stages == config.Layers {
					devices = 2
				}
				p := pipeline(t, places[:devices], config, training, stages)
				got := train(t, p, 1, training.Parts)
				for i, x := range p.Parameters() {
					if stages == 1 {
						parameters = append(parameters, read(t, x.Param))
					} else {
						require.Equal(t, parameters[i], read(t, x.Param), "%d stages: %s", stages, x.Name)
					}
				}
				require.NoError(t, p.Close())
				if want == nil {
					want = got
				}
				assert.Equal(t, want, got, "%d stages", stages)
			}
		})
	}
}

// With a tenth less memory than they would take, stages keep fewer micro-batches, wait for each other, and compute the same.
func TestStagesWait(t *testing.T) {
	config := deepWith(3)
	run := func(limitBytes int64) (losses []float32, slots int, peakBytes int64) {
		place, dev := watched(t, vramtest.Machine(sim.Config{GranularityBytes: 4 << 10}), vramtest.Config(vram.Config{LimitBytes: limitBytes}))
		p := pipeline(t, []model.Place{place}, config, staged, config.Layers)
		losses = train(t, p, 1, staged.Parts)
		usage, err := p.Usage(t.Context())
		require.NoError(t, err)
		for i, u := range usage {
			slots += u.Slots
			assert.True(t, i == 0 || u.Slots <= usage[i-1].Slots, "%v", usage)
		}
		peakBytes = dev.Stats().PeakReservedBytes
		require.NoError(t, p.Close())
		return losses, slots, peakBytes
	}
	want, slots, peakBytes := run(0)
	assert.Equal(t, 2*(config.Layers-1)+1, slots, "the first stage keeps as many as there are")
	got, fewer, limitedBytes := run(peakBytes * 9 / 10)
	assert.Equal(t, want, got)
	assert.Less(t, fewer, slots)
	assert.LessOrEqual(t, limitedBytes, peakBytes*9/10)
}

// A pipeline computes the same as a trainer, up to the order of additions.
func TestStagesTrain(t *testing.T) {
	place, _ := watched(t)
	m, err := model.New(place.Context, place.Ops, deep, 1)
	require.NoError(t, err)
	x, err := model.NewTrainer(m, staged)
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(3, 0))
	tokens, targets := batch(random, staged.Parts*staged.Batch*staged.Length, deep.Vocabulary)
	require.NoError(t, x.Step(tokens, targets))
	loss, err := x.Loss()
	require.NoError(t, err)
	norm, err := x.Norm()
	require.NoError(t, err)

	p := pipeline(t, []model.Place{place}, deep, staged, 2)
	got := train(t, p, 1, staged.Parts)
	assert.InDelta(t, loss, got[0], 1e-6)
	assert.InDelta(t, norm, got[1], 1e-6)
	for i, a := range p.Parameters() {
		assert.Equal(t, m.Parameters()[i].Name, a.Name)
		assert.InDeltaSlice(t, read(t, m.Parameters()[i].First), read(t, a.First), 1e-7, a.Name)
	}
	usage, err := p.Usage(t.Context())
	require.NoError(t, err)
	require.Len(t, usage, 2)
	for i, u := range usage {
		assert.Equal(t, 2, u.Blocks)
		assert.Equal(t, 2-i, u.Slots)
		assert.Positive(t, u.LiveBytes)
		assert.True(t, u.Idle >= 0 && u.Idle <= 1)
	}
	require.NoError(t, x.Close())
	require.NoError(t, m.Close())
	require.NoError(t, p.Close())
}

// A training that another number of stages continues has the losses that it would have had.
func TestStagesResume(t *testing.T) {
	places := several(t, 1)
	path := filepath.Join(t.TempDir(), "checkpoint")
	config := deepWith(3)
	before := pipeline(t, places, config, staged, config.Layers)
	train(t, before, 1, staged.Parts)
	require.NoError(t, before.Save(path))
	want := train(t, before, 1, staged.Parts)
	require.NoError(t, before.Close())

	f, err := safetensors.OpenFile(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	after, err := model.NewPipeline(t.Context(), places, config, staged, 99, 1, 2)
	require.NoError(t, err)
	require.NoError(t, after.Resume(t.Context(), f))
	assert.Equal(t, 1, after.Steps())
	assert.Equal(t, want, train(t, after, 1, staged.Parts))

	m, err := after.Whole(places[0])
	require.NoError(t, err)
	for i, p := range after.Parameters() {
		assert.Equal(t, read(t, p.Param), read(t, m.Parameters()[i].Param), p.Name)
	}
	require.NoError(t, m.Close())
	require.NoError(t, after.Close())
}

func TestPipelineMistakes(t *testing.T) {
	places := several(t, 1)
	var config *model.ConfigError
	for _, stages := range []int{0, 5} {
		_, err := model.NewPipeline(t.Context(), places, deep, staged, 1, 1, stages)
		require.ErrorAs(t, err, &config)
	}
	_, err := model.NewPipeline(t.Context(), nil, deep, staged, 1, 1, 1)
	require.ErrorAs(t, err, &config)
	_, err = model.NewPipeline(t.Context(), places, deep, model.Training{}, 1, 1, 1)
	require.ErrorAs(t, err, &config)
	p := pipeline(t, places, deep, staged, 2)
	require.ErrorAs(t, p.Step(t.Context(), make([]int64, 1), make([]int64, 6)), &config)

	// A step that ends early ends the pipeline, and nothing is lost.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.Step(ctx, make([]int64, 6), make([]int64, 6)), context.Canceled)
	require.ErrorIs(t, p.Step(t.Context(), make([]int64, 6), make([]int64, 6)), context.Canceled)
	require.NoError(t, p.Close())
}

// A parcel whose wait or copy the driver refuses is lost on no link: its memory and its event are given back.
func TestAParcelThatIsRefusedIsGivenBack(t *testing.T) {
	for devices, functions := range map[int][]string{1: {"cuStreamWaitEvent", "cuMemcpyDtoDAsync"}, 2: {"cuStreamWaitEvent", "cuMemcpyPeerAsync"}} {
		faults := fault.Wrap(cpu.New(cpu.Config{Devices: devices}))
		places := severalOn(t, faults, devices)
		p := pipeline(t, places, deep, staged, 2)
		live := func() (bytes int64) {
			for _, at := range places {
				bytes += at.Context.Device().Stats().LiveBytes
			}
			return bytes
		}
		events := func() uint64 { return faults.Calls("cuEventCreate") - faults.Calls("cuEventDestroy") }
		for link := range p.LinkCount() {
			for _, function := range append([]string{""}, functions...) { // "": none fails
				bytes, count := live(), events()
				err := p.Carry(t.Context(), link, func() {
					require.Greater(t, live(), bytes)
					require.Greater(t, events(), count)
					if function != "" {
						require.NoError(t, faults.Add(fault.Rule{Func: function, Result: cudadrv.Unknown}))
					}
				}, faults.Clear)
				if function == "" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, cudadrv.Unknown)
				}
				assert.Equal(t, bytes, live(), "link %d, %s", link, function)
				assert.Equal(t, count, events(), "link %d, %s", link, function)
			}
		}
		require.NoError(t, p.Close())
	}
}
