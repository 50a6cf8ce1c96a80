package model

import (
	"fmt"

	"github.com/go-vram/vram/compute/tensor"
)

// Config has the sizes of a model.
type Config struct {
	Layers     int         `json:"layers"`
	Width      int         `json:"width"` // of an activation; a multiple of Heads
	Heads      int         `json:"heads"`
	Context    int         `json:"context"`    // most positions in a sequence
	Vocabulary int         `json:"vocabulary"` // number of tokens
	Type       tensor.Type `json:"-"`          // of activations and of parameters in products: Float32 or BFloat16
}

// The sizes that programs name.
var (
	Tiny = Config{Layers: 2, Width: 32, Heads: 2, Context: 16, Vocabulary: 256, Type: tensor.Float32}        //nolint:gochecknoglobals // constants
	Char = Config{Layers: 6, Width: 384, Heads: 6, Context: 256, Vocabulary: 256, Type: tensor.Float32}      //nolint:gochecknoglobals // constants
	GPT2 = Config{Layers: 12, Width: 768, Heads: 12, Context: 1024, Vocabulary: 50257, Type: tensor.Float32} //nolint:gochecknoglobals // constants
)

// sizes are the named models.
func sizes() map[string]Config { return map[string]Config{"tiny": Tiny, "char": Char, "124m": GPT2} }

// Named returns the sizes with a name: tiny, char, or 124m, the smallest of the published GPT-2.
func Named(name string) (c Config, known bool) {
	c, known = sizes()[name]
	return c, known
}

// Names returns the names of Named in a sentence.
func Names() string { return "tiny, char or 124m" }

// ConfigError refuses sizes that a model cannot have.
type ConfigError struct{ Reason string }

// Error returns the reason.
func (e *ConfigError) Error() string { return "model: " + e.Reason }

// mostOf bounds each size: no product of two overflows, and a checkpoint that lies is refused before memory is asked for.
const mostOf = 1 << 20

// vocabularyStep divides the number of rows of the token table in memory: products of whole tiles are the fastest. The rows
// past the vocabulary are 0, and no file has them.
const vocabularyStep = 64

// padded returns the number of rows of the token table in memory.
func (c Config) padded() int {
	return (c.Vocabulary + vocabularyStep - 1) / vocabularyStep * vocabularyStep
}

// check returns a *ConfigError for sizes that a model cannot have.
func (c Config) check() error {
	sizes := []int{c.Layers, c.Width, c.Heads, c.Context, c.Vocabulary}
	for i, name := range []string{"Layers", "Width", "Heads", "Context", "Vocabulary"} {
		if sizes[i] < 1 || sizes[i] > mostOf {
			return &ConfigError{fmt.Sprintf("%s is %d: want 1 to %d", name, sizes[i], mostOf)}
		}
	}
	if c.Width%c.Heads != 0 {
		return &ConfigError{fmt.Sprintf("Width %d is no multiple of Heads %d", c.Width, c.Heads)}
	}
	if c.Type != tensor.Float32 && c.Type != tensor.BFloat16 {
		return &ConfigError{fmt.Sprintf("Type is %v: want float32 or bfloat16", c.Type)}
	}
	return nil
}
