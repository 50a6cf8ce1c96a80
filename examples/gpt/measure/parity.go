package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/safetensors"
	"github.com/go-vram/vram/examples/gpt/model"
)

// hyperparameters are the settings of a training, for another implementation.
type hyperparameters struct {
	Beta1   float64 `json:"beta1"`
	Beta2   float64 `json:"beta2"`
	Epsilon float64 `json:"epsilon"`
	Decay   float64 `json:"decay"` // of parameters with two dimensions
	Clip    float64 `json:"clip"`
}

// parity trains, and writes a file with the weights before ("weights.NAME"), the batches ("tokens" and "targets", with a row for each
// sequence), the learning rates ("rates"), the logits of the first batch, the gradients of the first step before they are clipped
// ("gradients.NAME"), and the losses of all steps.
func (m *measured) parity() error {
	var all []safetensors.Source
	singles := func(name string, values []float32, shape ...int64) {
		b := make([]byte, 4*len(values))
		_, _ = binary.Encode(b, binary.LittleEndian, values)
		all = append(all, safetensors.Source{Name: name, Type: safetensors.Float32, Shape: shape, Data: bytes.NewReader(b)})
	}
	read := func(name string, x *tensor.Tensor) error {
		values, err := tensor.Read[float32](x)
		shape := make([]int64, x.Rank())
		for i, n := range x.Shape() {
			shape[i] = int64(n)
		}
		singles(name, values, shape...)
		return err
	}
	for _, p := range m.Parameters() {
		if err := read("weights."+p.Name, p.Param); err != nil {
			return err
		}
	}
	var tokens, targets []int64
	var losses, rates []float32
	for step := range m.steps {
		m.draw()
		tokens, targets = append(tokens, m.tokens...), append(targets, m.targets...)
		if step == 0 {
			logits, err := m.Logits(m.tokens, len(m.tokens)/m.training.Length)
			if err != nil {
				return err
			}
			singles("logits", logits, int64(len(m.tokens)), int64(m.sizes.Vocabulary))
		}
		if err := m.Step(m.tokens, m.targets); err != nil {
			return err
		}
		loss, err := m.Loss()
		if err != nil {
			return err
		}
		losses, rates = append(losses, loss), append(rates, float32(m.training.Schedule.At(step+1)))
		if step > 0 {
			continue
		}
		for _, p := range m.Parameters() {
			if err := read("gradients."+p.Name, p.Grad); err != nil {
				return err
			}
		}
	}
	singles("losses", losses, int64(len(losses)))
	singles("rates", rates, int64(len(rates)))
	for name, values := range map[string][]int64{"tokens": tokens, "targets": targets} {
		b := make([]byte, 8*len(values))
		_, _ = binary.Encode(b, binary.LittleEndian, values)
		shape := []int64{int64(m.steps), int64(len(m.tokens) / m.training.Length), int64(m.training.Length)}
		all = append(all, safetensors.Source{Name: name, Type: safetensors.Int64, Shape: shape, Data: bytes.NewReader(b)})
	}
	config, err := json.Marshal(m.sizes)
	if err != nil {
		return err
	}
	settings, err := json.Marshal(hyperparameters{model.Beta1, model.Beta2, model.Epsilon, m.training.Decay, m.training.Clip})
	if err != nil {
		return err
	}
	return safetensors.WriteFile(m.file, map[string]string{
		"config": string(config), "training": string(settings), "type": m.sizes.Type.String(), "name": m.name,
	}, all)
}
