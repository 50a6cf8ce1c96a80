package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/go-vram/vram/fleet/ledger"
)

// ErrInsecure refuses a configuration with which others could read or write the books.
var ErrInsecure = errors.New("etcd: want mutual TLS, or Config.Insecure")

// ConfigError refuses a configuration.
type ConfigError struct{ Err error }

// Error names the package and the reason.
func (e *ConfigError) Error() string { return "etcd: Open: " + e.Err.Error() }

// Unwrap returns Err.
func (e *ConfigError) Unwrap() error { return e.Err }

// TooLargeError reports a transaction or a snapshot beyond a limit of the cluster or of this package. Nothing was changed.
type TooLargeError struct{ Err error }

// Error names the limit.
func (e *TooLargeError) Error() string { return "etcd: beyond a limit: " + e.Err.Error() }

// Unwrap returns Err.
func (e *TooLargeError) Unwrap() error { return e.Err }

// FullError reports that a server's database has reached its quota, --quota-backend-bytes. Nothing was changed. Until an operator compacts the
// history, defragments and disarms the alarm, the cluster refuses new leases and all that puts keys; reads, deletions, renewals and ends of
// leases go through, so grants live and can be released.
type FullError struct{ Err error }

// Error names the remedy.
func (e *FullError) Error() string {
	return "etcd: the database is full: compact its history, defragment, and disarm the alarm: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FullError) Unwrap() error { return e.Err }

// UnreachableError reports that no server answered in time, or that the cluster has no quorum. A transaction may have been carried out.
type UnreachableError struct{ Err error }

// Error has the reason of the last attempt.
func (e *UnreachableError) Error() string {
	return "etcd: the cluster does not answer: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *UnreachableError) Unwrap() error { return e.Err }

// failed returns the error of this package for one of the client. Others, as refused permissions, keep their types of package rpctypes.
func failed(err error) error {
	err = rpctypes.Error(err) // as the client's own calls have it
	var known rpctypes.EtcdError
	ofCluster := errors.As(err, &known)
	code := status.Code(err)
	if ofCluster {
		code = known.Code()
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return ledger.ErrLeaseEnded
	case errors.Is(err, rpctypes.ErrNoSpace):
		return &FullError{err}
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge), !ofCluster && code == codes.ResourceExhausted:
		return &TooLargeError{err}
	case code == codes.Unavailable, code == codes.Internal, code == codes.DeadlineExceeded, code == codes.Canceled,
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &UnreachableError{err}
	}
	return fmt.Errorf("etcd: %w", err)
}
