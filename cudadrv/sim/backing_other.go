//go:build !linux

package sim

// newBacking fails: there is no file without a name to map.
func newBacking() (backing, error) { return nil, ErrNoBytes }
