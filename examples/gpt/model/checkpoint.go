package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
	"github.com/go-vram/vram/compute/tensor/safetensors"
)

// The keys of a checkpoint's texts.
const (
	configKey = "config" // Config, as JSON
	stepKey   = "step"   // steps that were made
)

// The names of the moments in a checkpoint begin with these.
const (
	firstPrefix  = "adamw.first."
	secondPrefix = "adamw.second."
)

// CheckpointError refuses a file that is no checkpoint of the model.
type CheckpointError struct{ Reason string }

// Error returns the reason.
func (e *CheckpointError) Error() string { return "model: checkpoint: " + e.Reason }

// Save writes parameters, moments and the number of steps to a file, as package safetensors has it. It waits for the
// device. The file has the old checkpoint until the new one is whole.
func (t *Trainer) Save(path string) error { return save(path, t.config, t.step, t.all) }

// save writes a checkpoint.
func save(path string, c Config, step int, parameters []*Parameter) error {
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var all []safetensors.Source
	for _, p := range parameters {
		all = append(all, source(p.Name, p.Param), source(firstPrefix+p.Name, p.First), source(secondPrefix+p.Name, p.Second))
	}
	return safetensors.WriteFile(path, map[string]string{"format": "pt", configKey: string(config), stepKey: strconv.Itoa(step)}, all)
}

// source is a tensor of float32 that is read when its turn comes: the host has one at a time.
func source(name string, x *tensor.Tensor) safetensors.Source {
	shape := make([]int64, x.Rank())
	for i, n := range x.Shape() {
		shape[i] = int64(n)
	}
	return safetensors.Source{Name: name, Type: safetensors.Float32, Shape: shape, Data: &lazily{x: x}}
}

// lazily reads the bytes of a tensor at the first Read.
type lazily struct {
	x    *tensor.Tensor
	from *bytes.Reader
}

// Read implements io.Reader.
func (l *lazily) Read(p []byte) (int, error) {
	if l.from == nil {
		values, err := tensor.Read[float32](l.x)
		if err != nil {
			return 0, err
		}
		b := make([]byte, 0, 4*len(values))
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		l.from = bytes.NewReader(b)
	}
	n, err := l.from.Read(p)
	if err == io.EOF {
		l.from = bytes.NewReader(nil) // the bytes are garbage now
	}
	return n, err
}

// ConfigOf returns the sizes of the model in a checkpoint that Save has written.
func ConfigOf(f *safetensors.File) (c Config, err error) {
	text, ok := f.Metadata()[configKey]
	if !ok {
		return c, &CheckpointError{"it does not say the model's sizes"}
	}
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return c, &CheckpointError{"the model's sizes: " + err.Error()}
	}
	c.Type = tensor.Float32
	return c, c.check()
}

// Load replaces the parameters by the tensors of a file, of float32, float16 or bfloat16: a checkpoint, or weights that others
// have published, whose names may begin with "transformer.". A tensor that is missing or has another shape is a
// *CheckpointError, and changes nothing; others are left alone.
func (m *Model) Load(f *safetensors.File) error {
	if err := load(f, m.all); err != nil {
		return err
	}
	return m.refresh()
}

// load reads parameters.
func load(f *safetensors.File, parameters []*Parameter) error {
	prefix := ""
	if _, err := f.Entry("transformer.wte.weight"); err == nil {
		prefix = "transformer."
	}
	into := map[string]*tensor.Tensor{}
	for _, p := range parameters {
		into[prefix+p.Name] = p.Param
	}
	return loadAll(f, into)
}

// Resume continues the training of a checkpoint: it replaces parameters, moments and the number of steps.
func (t *Trainer) Resume(f *safetensors.File) error {
	step, err := restore(f, t.all)
	if err != nil {
		return err
	}
	t.step = step
	return t.refresh()
}

// restore reads the parameters and moments of a checkpoint, and returns its number of steps.
func restore(f *safetensors.File, parameters []*Parameter) (step int, err error) {
	step, err = strconv.Atoi(f.Metadata()[stepKey])
	if err != nil || step < 0 {
		return 0, &CheckpointError{fmt.Sprintf("%q is not a number of steps", f.Metadata()[stepKey])}
	}
	into := map[string]*tensor.Tensor{}
	for _, p := range parameters {
		into[p.Name], into[firstPrefix+p.Name], into[secondPrefix+p.Name] = p.Param, p.First, p.Second
	}
	return step, loadAll(f, into)
}

// loadAll reads tensors of a file, after it has looked that all are there.
func loadAll(f *safetensors.File, into map[string]*tensor.Tensor) error {
	for name, x := range into {
		e, err := f.Entry(name)
		if err != nil {
			return &CheckpointError{err.Error()}
		}
		shape := make([]int, len(e.Shape))
		for i, n := range e.Shape {
			shape[i] = int(n)
		}
		if !slices.Equal(shape, x.Shape()) {
			return &CheckpointError{fmt.Sprintf("%q has the shape %v, and the model %v", name, e.Shape, x.Shape())}
		}
		if e.Type != safetensors.Float32 && e.Type != safetensors.Float16 && e.Type != safetensors.BFloat16 {
			return &CheckpointError{fmt.Sprintf("%q is of %v", name, e.Type)}
		}
	}
	for name, x := range into {
		values, err := read(f, name)
		if err == nil {
			err = tensor.Write(x, values)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read returns the elements of a tensor of a file as float32.
func read(f *safetensors.File, name string) ([]float32, error) {
	e, err := f.Entry(name)
	if err != nil {
		return nil, err
	}
	b := make([]byte, e.Bytes())
	if err := f.ReadInto(b, name); err != nil {
		return nil, err
	}
	values := make([]float32, e.Elements())
	for i := range values {
		if e.Type == safetensors.Float32 {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
			continue
		}
		bits := binary.LittleEndian.Uint16(b[2*i:])
		if values[i] = half.BFloat16(bits).Float32(); e.Type == safetensors.Float16 {
			values[i] = half.Float16(bits).Float32()
		}
	}
	return values, nil
}
