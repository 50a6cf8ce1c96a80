package model

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
)

// Source returns the elements of a model's parameter, in row-major order. A Decoder asks for all parameters, in the order of the
// checkpoint, and keeps no slice.
type Source func(name string, shape []int) ([]float32, error)

// Random returns the parameters that New makes of the seed.
func Random(config Config, seed uint64) Source {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // no secret
	all := config.parameters()
	return func(name string, shape []int) ([]float32, error) {
		if len(all) == 0 || all[0].name != name || !slices.Equal(all[0].shape, shape) {
			return nil, &ConfigError{fmt.Sprintf("%q of %v is not the next random parameter", name, shape)}
		}
		p := all[0]
		all = all[1:]
		values := make([]float32, count(shape))
		for i := range values {
			values[i] = p.mean
			if p.deviation > 0 {
				values[i] += float32(p.deviation * random.NormFloat64())
			}
		}
		return values, nil
	}
}

// Stored returns the parameters in a file, as Model.Load reads them. The file stays open until the last call.
func Stored(f *safetensors.File) Source {
	prefix := ""
	if _, err := f.Entry("transformer.wte.weight"); err == nil {
		prefix = "transformer."
	}
	return func(name string, shape []int) ([]float32, error) {
		e, err := f.Entry(prefix + name)
		if err != nil {
			return nil, &CheckpointError{err.Error()}
		}
		if !slices.EqualFunc(e.Shape, shape, func(a int64, b int) bool { return a == int64(b) }) {
			return nil, &CheckpointError{fmt.Sprintf("%q has the shape %v, and the model %v", name, e.Shape, shape)}
		}
		if e.Type != safetensors.Float32 && e.Type != safetensors.Float16 && e.Type != safetensors.BFloat16 {
			return nil, &CheckpointError{fmt.Sprintf("%q is of %v", name, e.Type)}
		}
		return read(f, prefix+name)
	}
}

// shaped describes a parameter.
type shaped struct {
	name      string
	shape     []int
	deviation float64 // of random elements; 0: all are the mean
	mean      float32
}

// parameters lists the parameters in the order of the checkpoint.
func (c Config) parameters() []shaped {
	last := deviation / math.Sqrt(2*float64(c.Layers))
	norm := func(name string) []shaped {
		return []shaped{{name + ".weight", []int{c.Width}, 0, 1}, {name + ".bias", []int{c.Width}, 0, 0}}
	}
	linear := func(name string, deviation float64, in, out int) []shaped {
		return []shaped{{name + ".weight", []int{in, out}, deviation, 0}, {name + ".bias", []int{out}, 0, 0}}
	}
	all := []shaped{{"wte.weight", []int{c.Vocabulary, c.Width}, deviation, 0}, {"wpe.weight", []int{c.Context, c.Width}, deviation, 0}}
	for i := range c.Layers {
		name := "h." + strconv.Itoa(i)
		all = append(all, slices.Concat(
			norm(name+".ln_1"), linear(name+".attn.c_attn", deviation, c.Width, 3*c.Width), linear(name+".attn.c_proj", last, c.Width, c.Width),
			norm(name+".ln_2"), linear(name+".mlp.c_fc", deviation, c.Width, 4*c.Width), linear(name+".mlp.c_proj", last, 4*c.Width, c.Width),
		)...)
	}
	return append(all, norm("ln_f")...)
}

func count(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// WeightBytes returns the size of a Decoder's parameters in device memory.
func (c Config) WeightBytes() int64 {
	var bytes int64
	for _, p := range c.parameters() {
		bytes += c.bytesOf(p)
	}
	return bytes
}

// weightAlignment is the alignment of each parameter in bytes: as of an allocation.
const weightAlignment = 512

// bytesOf returns the bytes of a parameter, with its padding.
func (c Config) bytesOf(p shaped) int64 {
	rows := p.shape[0]
	if p.name == "wte.weight" {
		rows = c.padded()
	}
	bytes := int64(rows) * int64(count(p.shape[1:])) * int64(c.Type.Size())
	return (bytes + weightAlignment - 1) / weightAlignment * weightAlignment
}

// affine is a weight and a bias.
type affine struct{ weight, bias *tensor.Tensor }

// decoderBlock has the parameters of a layer.
type decoderBlock struct{ norm1, attend, project, norm2, expand, contract affine }

// weights are the parameters of a decoder: one buffer of an arena, which is frozen.
type weights struct {
	arena  *sleep.Arena
	buffer cuda.Buffer

	table, positions *tensor.Tensor // the table without padding
	head             *tensor.Tensor // the table with padding, transposed
	blocks           []decoderBlock
	last             affine
}

// load fills the weights from a source. After an error close frees the part that is there.
func (w *weights) load(c *cuda.Context, config Config, from Source) (err error) {
	if w.arena, err = sleep.New(c, sleep.Options{}); err != nil {
		return err
	}
	if w.buffer, err = w.arena.Alloc(config.WeightBytes()); err != nil {
		return err
	}
	if err := c.Fill8(cuda.Whole(w.buffer), 0); err != nil { // the padding
		return err
	}
	byName := map[string]*tensor.Tensor{}
	at := int64(0)
	for _, p := range config.parameters() {
		values, err := from(p.name, slices.Clone(p.shape))
		if err != nil {
			return err
		}
		if len(values) != count(p.shape) {
			return &ConfigError{fmt.Sprintf("%d elements of %q: want %d", len(values), p.name, count(p.shape))}
		}
		x, err := over(c, w.buffer, config.Type, at, p.shape)
		if err != nil {
			return err
		}
		if err := write(x, values); err != nil {
			return err
		}
		byName[p.name] = x
		at += config.bytesOf(p)
	}
	if err := w.name(c, config, byName); err != nil {
		return err
	}
	return c.Freeze(w.buffer)
}

// name sets the fields.
func (w *weights) name(c *cuda.Context, config Config, of map[string]*tensor.Tensor) error {
	pair := func(name string) affine { return affine{of[name+".weight"], of[name+".bias"]} }
	w.table, w.positions, w.last = of["wte.weight"], of["wpe.weight"], pair("ln_f")
	for i := range config.Layers {
		name := "h." + strconv.Itoa(i)
		w.blocks = append(w.blocks, decoderBlock{
			norm1: pair(name + ".ln_1"), attend: pair(name + ".attn.c_attn"), project: pair(name + ".attn.c_proj"),
			norm2: pair(name + ".ln_2"), expand: pair(name + ".mlp.c_fc"), contract: pair(name + ".mlp.c_proj"),
		})
	}
	table, err := over(c, w.buffer, config.Type, 0, []int{config.padded(), config.Width})
	if err != nil {
		return err
	}
	w.head, err = table.Transpose(0, 1)
	return err
}

// over returns a contiguous view of a part of a buffer.
func over(c *cuda.Context, b cuda.Buffer, of tensor.Type, offsetBytes int64, shape []int) (*tensor.Tensor, error) {
	whole, err := layout.Of(shape...)
	if err != nil {
		return nil, err
	}
	l, err := layout.New(whole.Shape(), whole.Strides(), int(offsetBytes)/of.Size())
	if err != nil {
		return nil, err
	}
	return tensor.Over(c, b, of, l)
}

// write writes float32 to a tensor of float32 or bfloat16.
func write(x *tensor.Tensor, values []float32) error {
	if x.Type() == tensor.Float32 {
		return tensor.Write(x, values)
	}
	rounded := make([]half.BFloat16, len(values))
	for i, v := range values {
		rounded[i] = half.NewBFloat16(v)
	}
	return tensor.Write(x, rounded)
}

// close frees the weights.
func (w *weights) close() (err error) {
	if w.buffer != (cuda.Buffer{}) {
		err = w.buffer.Free()
		w.buffer = cuda.Buffer{}
	}
	if w.arena != nil {
		if closed := w.arena.Close(); closed != nil {
			return errors.Join(err, closed)
		}
		w.arena = nil
	}
	return err
}
