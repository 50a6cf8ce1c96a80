//go:build !linux

package directory

import (
	"context"
	"os"
	"time"

	"github.com/go-vram/vram/fleet"
)

type lease struct{}

func (*lease) Close() error { return nil }

// Lease implements fleet.Ledger.
func (*Ledger) Lease(context.Context, time.Duration) (fleet.Lease, error) { return nil, ErrUnsupported }

// LeaseFiles returns none.
func (*Ledger) LeaseFiles() []*os.File { return nil }

func (*Ledger) lives(int64) bool { return true }

func (*Ledger) anyLease() (bool, error) { return false, ErrUnsupported }

func checkFileSystem(string) error { return ErrUnsupported }
