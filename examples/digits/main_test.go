package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// The program trains, and prints the same losses, bit for bit, where the steps are launches of a graph.
func TestProgram(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	var epochs [2][]string
	for i, graph := range []string{"-graph=false", "-graph"} {
		var stdout, stderr bytes.Buffer
		args := []string{"-driver", "sim", "-hidden", "4", "-batch", "8", "-images", "32", "-epochs", "1", graph}
		require.Equal(t, command.OK, run(t.Context(), args, &stdout, &stderr), "%s%s", &stdout, &stderr)
		epochs[i] = regexp.MustCompile(`epoch 1: loss \d\.\d+, accuracy \S+ %`).FindAllString(stdout.String(), -1)
		assert.Contains(t, stdout.String(), "784-4-10: 3190 parameters\n")
		assert.Contains(t, stdout.String(), "\nread wrongly: ")
		assert.Regexp(t, `(?m)^device memory: \S+ [KM]iB live, \S+ MiB held, at most \S+ MiB$`, stdout.String())
	}
	assert.Len(t, epochs[0], 1)
	assert.Equal(t, epochs[0], epochs[1])
}

func TestMistakesAndInterrupts(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, c := range map[string]struct {
		args []string
		code int
		text string
	}{
		"help":              {[]string{"-h"}, command.OK, "-hidden"},
		"no such flag":      {[]string{"-nothing"}, command.Misused, "-nothing"},
		"less than a batch": {[]string{"-images", "100"}, command.Misused, "-images from four batches"},
		"no batch":          {[]string{"-batch", "0"}, command.Misused, "-batch"},
		"too little memory": {[]string{"-driver", "sim", "-limit", "4MB", "-hidden", "1000"}, command.Failed, "memory"},
		"an interrupt":      {[]string{"-driver", "sim", "-hidden", "4"}, command.Interrupted, "all memory is given back"},
	} {
		var stdout, stderr bytes.Buffer
		assert.Equal(t, c.code, run(ctx, c.args, &stdout, &stderr), name)
		assert.Contains(t, stderr.String(), c.text, name)
	}
}

// rig is a network on a device.
type rig struct {
	*network

	c      *cuda.Context
	maker  maker
	random *rand.Rand
}

func newRig(t *testing.T, seed uint64, stream *vram.Stream, batch int, widths ...int) rig {
	t.Helper()
	c, err := cuda.NewContext(stream)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	operations, err := ops.New(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, operations.Close()) })
	s, err := tensor.NewScope(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	random := rand.New(rand.NewPCG(seed, 1))
	n, err := newNetwork(s, operations, widths, batch, 4e-2, random)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, n.close()) })
	return rig{n, c, maker{s: s}, random}
}

// shrunk trains on images with 4x4 pixels merged into one, which is quicker. It returns the losses, and the parameters after
// the first epoch.
func shrunk(t *testing.T, epochs int, graphs bool) (losses, parameters []float64, accuracy float64) {
	t.Helper()
	const size, batches, width = 64, 11, side / 4
	dev := vramtest.Open(t, vramtest.Kernels())
	r := newRig(t, 3, dev.Stream(), size, width*width, 16, classes)
	images, digits := draw(r.random, size*batches)
	var all []batch
	for i := range batches {
		small := make([]float32, size*width*width)
		for p, v := range images[i*size*pixels:][:size*pixels] {
			small[p/pixels*width*width+p%pixels/side/4*width+p%side/4] += v / 4
		}
		of := digits[i*size:][:size]
		all = append(all, batch{r.maker.made(tensor.From(r.maker.s, small, size, width*width)), r.maker.made(tensor.From(r.maker.s, of)), of})
	}
	require.NoError(t, r.maker.err)
	lessons, tests := all[3:], all[:3]
	for epoch := range epochs {
		require.NoError(t, r.submit(t.Context(), r.c, lessons, graphs))
		losses = append(losses, read(t, r.total)[0]/float64(len(lessons)))
		for _, l := range r.layers {
			if epoch == 0 {
				parameters = append(append(parameters, read(t, l.weight.Param)...), read(t, l.bias.Param)...)
			}
		}
	}
	_, accuracy, err := r.test(r.maker.s, tests)
	require.NoError(t, err)
	return losses, parameters, accuracy
}

// The network learns. One seed has one result, bit for bit, also where the steps are launches of a graph.
// The device finds no mistake of a kernel, no race, and no leak.
func TestTraining(t *testing.T) {
	losses, parameters, accuracy := shrunk(t, 3, false)
	assert.IsDecreasing(t, losses)
	assert.Greater(t, accuracy, 0.5, "chance is a tenth")
	for _, graphs := range []bool{false, true} {
		again, same, _ := shrunk(t, 1, graphs)
		assert.Equal(t, losses[:1], again)
		assert.Equal(t, parameters, same)
	}
}

// The gradient of each parameter is the slope of the loss, which a reference computes in float64. The device finds no mistake
// of a kernel, no race, and no leak.
func TestGradients(t *testing.T) {
	const batch = 9
	widths := []int{12, 8, 6, 5}
	dev := vramtest.Open(t, vramtest.Kernels())
	r := newRig(t, 5, dev.Stream(), batch, widths...)
	images, targets := make([]float32, batch*widths[0]), make([]int64, batch)
	for i := range images {
		images[i] = float32(r.random.NormFloat64())
	}
	for i := range targets {
		targets[i] = r.random.Int64N(5)
	}
	require.NoError(t, tensor.Write(r.images, images))
	require.NoError(t, tensor.Write(r.targets, targets))
	require.NoError(t, r.forward(r.c))
	require.NoError(t, r.backward(r.c))

	var parameters, gradients [][]float64
	for _, l := range r.layers {
		for _, p := range []ops.AdamWState{l.weight, l.bias} {
			parameters, gradients = append(parameters, read(t, p.Param)), append(gradients, read(t, p.Grad))
		}
	}
	assert.InDelta(t, lossOf(parameters, widths, images, targets), read(t, r.loss)[0], 1e-6)
	const d = 1e-5
	for p, values := range parameters {
		for i, value := range values {
			values[i] = value + d
			above := lossOf(parameters, widths, images, targets)
			values[i] = value - d
			below := lossOf(parameters, widths, images, targets)
			values[i] = value
			require.InDelta(t, (above-below)/(2*d), gradients[p][i], 1e-6, "parameter %d, element %d", p, i)
		}
	}
}

func read(t *testing.T, x *tensor.Tensor) (values []float64) {
	t.Helper()
	singles, err := tensor.Read[float32](x)
	require.NoError(t, err)
	for _, v := range singles {
		values = append(values, float64(v))
	}
	return values
}

// lossOf returns the loss of a network in float64: parameters are the weight and the bias of each layer.
func lossOf(parameters [][]float64, widths []int, images []float32, targets []int64) (loss float64) {
	for image, target := range targets {
		var in []float64
		for _, v := range images[image*widths[0]:][:widths[0]] {
			in = append(in, float64(v))
		}
		for l, width := range widths[1:] {
			out := append([]float64{}, parameters[2*l+1]...)
			for i, v := range in {
				for o := range out {
					out[o] += v * parameters[2*l][i*width+o]
				}
			}
			for o := range out {
				if l < len(widths)-2 {
					out[o] = math.Max(0, out[o])
				}
			}
			in = out
		}
		total := 0.0
		for _, v := range in {
			total += math.Exp(v)
		}
		loss += (math.Log(total) - in[target]) / float64(len(targets))
	}
	return loss
}

// A warm step allocates nothing: as a launch of a graph neither on the heap nor from vram, otherwise nothing from the driver.
func TestAWarmStepAllocatesNothing(t *testing.T) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{Bytes: true, TimedKernels: true})}) // kernels do nothing
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	stream, err := dev.NewStream()
	require.NoError(t, err)
	r := newRig(t, 5, stream, 64, pixels, 32, classes)
	lessons := r.maker.load(r.random, 64, 64)
	require.NoError(t, r.maker.err)
	const runs = 50
	allocs := func(f func() error) float64 {
		return testing.AllocsPerRun(runs, func() { require.NoError(t, errors.Join(f(), r.c.Synchronize(context.Background()))) })
	}
	device := allocs(func() error { // records of the simulated device about copies and fills
		return errors.Join(tensor.Copy(r.c, r.images, lessons[0].images), tensor.Copy(r.c, r.targets, lessons[0].targets), tensor.Fill(r.c, r.total, float32(0)))
	})
	for _, graphs := range []bool{false, true} {
		step := func() error { return r.submit(t.Context(), r.c, lessons, graphs) }
		for range 3 {
			require.NoError(t, step())
		}
		before := costsOf(dev)
		count := allocs(step) - device
		after := costsOf(dev)
		assert.Equal(t, before.driver+runs+1, after.driver, "each wait for the stream asks whether it is being captured, and a step asks nothing")
		if graphs {
			assert.Equal(t, before.vram, after.vram)
			assert.LessOrEqual(t, count, 0.0)
		}
	}
}
