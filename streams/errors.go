package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/streams/magazine"
)

// The errors of frees; see the package magazine.
var (
	ErrBadFree    = magazine.ErrBadFree
	ErrDoubleFree = magazine.ErrDoubleFree
	ErrStale      = magazine.ErrStale
	ErrClosed     = magazine.ErrClosed
)

var (
	// ErrTooLarge is the kind of every *SizeError: no waiting would help.
	ErrTooLarge = errors.New("vram: request larger than the limit")
	// ErrNegative refuses a negative size.
	ErrNegative = errors.New("vram: negative size")
	// ErrQuarantined says that the stream's books did not balance after a panic.
	ErrQuarantined = errors.New("vram: stream quarantined")
)

// SizeError refuses a request that could not be served even if nothing else lived.
type SizeError struct {
	RequestedBytes int64
	LimitBytes     int64
}

// Error names both sizes.
func (e *SizeError) Error() string {
	return fmt.Sprintf("vram: requested %d bytes, the limit is %d", e.RequestedBytes, e.LimitBytes)
}

// Is makes errors.Is(err, ErrTooLarge) hold.
func (e *SizeError) Is(target error) bool { return target == ErrTooLarge }
