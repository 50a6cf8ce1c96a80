package vram

import (
	"context"
	"errors"
)

// CheckStreams holds the books of each stream against their invariants.
func CheckStreams(ctx context.Context, d *Device) error {
	var errs []error
	for _, s := range d.streams.Load().open {
		errs = append(errs, s.Check(ctx))
	}
	return errors.Join(errs...)
}
