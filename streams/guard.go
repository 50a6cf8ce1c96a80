package streams

import (
	"fmt"

	"github.com/go-vram/vram/internal/recovered"
)

// guard turns a panic of the driver into an error, and reports it.
func guard(panics *recovered.Log, call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = panicked(panics, value)
		}
	}()
	return call()
}

// guardTo is guard for a goroutine that others wait for: answer gets the error, also where the driver ends the goroutine.
func guardTo(panics *recovered.Log, answer func(error), call func() error) {
	err, returned := error(nil), false
	defer func() {
		if !returned {
			err = panicked(panics, recover())
		}
		answer(err)
	}()
	err = call()
	returned = true
}

// panicked reports a panic of the driver, or with nil the end of the goroutine, and returns its error.
func panicked(panics *recovered.Log, value any) error {
	return fmt.Errorf("streams: the driver panicked: %v", panics.Here("driver", value))
}
