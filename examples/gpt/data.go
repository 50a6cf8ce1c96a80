package main

import (
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/go-vram/vram/examples/gpt/bpe"
)

// coder makes tokens of texts, and texts of tokens: each byte is a token, or a tokenizer divides the text.
type coder struct{ *bpe.Tokenizer }

// encode returns the tokens of a text.
func (c coder) encode(text []byte) []int64 {
	if c.Tokenizer != nil {
		return c.Encode(string(text))
	}
	tokens := make([]int64, len(text))
	for i, b := range text {
		tokens[i] = int64(b)
	}
	return tokens
}

// decode returns the text of tokens, which a model has drawn. Tokens that have no text are U+FFFD.
func (c coder) decode(tokens []int64) (text []byte) {
	for _, token := range tokens {
		one, known := []byte{byte(token)}, token >= 0 && token < bytesTokens
		if c.Tokenizer != nil {
			var err error
			one, err = c.Decode([]int64{token})
			known = err == nil
		}
		if !known {
			one = []byte("\uFFFD")
		}
		text = append(text, one...)
	}
	return text
}

// bytesTokens is the number of tokens without a tokenizer.
const bytesTokens = 1 << 8

// size returns the least vocabulary of a model.
func (c coder) size() int {
	if c.Tokenizer != nil {
		return c.Size()
	}
	return bytesTokens
}

// text is for the model to learn. The last tenth is for the test.
type text struct {
	lessons, tests []int64
	bytes          int
}

// load reads files, or Go's own source tree if none is named, up to a number of bytes.
func load(most int64, paths []string, c coder) (t text, err error) {
	var all []byte
	add := func(path string) error {
		f, err := os.Open(path) //nolint:gosec // the path is the user's
		if err != nil {
			return err
		}
		b, err := io.ReadAll(io.LimitReader(f, most-int64(len(all))))
		all = append(all, b...)
		return errors.Join(err, f.Close())
	}
	if len(paths) > 0 {
		for _, path := range paths {
			err = errors.Join(err, add(path))
		}
	} else {
		err = filepath.WalkDir(filepath.Join(build.Default.GOROOT, "src"), func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case int64(len(all)) >= most:
				return fs.SkipAll
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case d.IsDir() || filepath.Ext(path) != ".go":
				return nil
			}
			return add(path)
		})
	}
	if err != nil {
		return t, fmt.Errorf("read the text (-data names files): %w", err)
	}
	tokens := c.encode(all)
	lessons := len(tokens) - len(tokens)/10
	return text{lessons: tokens[:lessons], tests: tokens[lessons:], bytes: len(all)}, nil
}

// drawn are the sequences of a batch, and for each token the next one.
type drawn struct{ tokens, targets []int64 }

// draw draws sequences from a text. The same seed and step draw the same batch, so that training can be resumed.
func (d *drawn) draw(from []int64, seed uint64, step, sequences, length int) {
	random := rand.New(rand.NewPCG(seed, uint64(step))) //nolint:gosec // not negative, and no secret
	d.tokens, d.targets = d.tokens[:0], d.targets[:0]
	for range sequences {
		at := random.IntN(len(from) - length)
		d.tokens = append(d.tokens, from[at:at+length]...)
		d.targets = append(d.targets, from[at+1:at+1+length]...)
	}
}
