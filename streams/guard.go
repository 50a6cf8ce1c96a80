package streams

import (
	"fmt"

	"github.com/go-vram/vram/internal/recovered"
)

// guard turns a panic of the driver into an error, and reports it.
func guard(panics *recovered.Log, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			panics.Here("driver", value)
			err = fmt.Errorf("streams: the driver panicked: %v", value)
		}
	}()
	return call()
}
