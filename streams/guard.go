package streams

import (
	"fmt"

	"github.com/go-vram/vram/internal/recovered"
)

// guard makes a panic of code that is not this package's an error, and reports it.
func guard(panics *recovered.Log, place string, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			panics.Here(place, value)
			err = fmt.Errorf("streams: the %s panicked: %v", place, value)
		}
	}()
	return call()
}
