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
)

// text is for the model to learn: each byte is a token. The last tenth is for the test.
type text struct{ lessons, tests []byte }

// load reads files, or Go's own source tree if none is named, up to a number of bytes.
func load(most int64, paths []string) (t text, err error) {
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
	lessons := len(all) - len(all)/10
	return text{lessons: all[:lessons], tests: all[lessons:]}, nil
}

// batch draws sequences from a text, and returns their tokens and for each the next one. The same seed and step draw the
// same batch, so that training can be resumed.
func batch(from []byte, seed uint64, step, sequences, length int) (tokens, targets []int64) {
	random := rand.New(rand.NewPCG(seed, uint64(step))) //nolint:gosec // not negative, and no secret
	for range sequences {
		at := random.IntN(len(from) - length)
		for i := range length {
			tokens = append(tokens, int64(from[at+i]))
			targets = append(targets, int64(from[at+i+1]))
		}
	}
	return tokens, targets
}
