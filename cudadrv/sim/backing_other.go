//go:build !linux || !(amd64 || arm64 || loong64 || ppc64le || riscv64)

package sim

// newBacking fails: there is no file without a name to map.
func newBacking() (backing, error) { return nil, ErrNoBytes }
