package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// FullError reports that a server's database has reached its quota, --quota-backend-bytes. The change that reached it may have been carried out,
// since etcd carries out a change that its check had let pass before others filled the database, and refuses it all the same; later ones are not.
// Until an operator compacts the history, defragments and disarms the alarm, the cluster refuses new leases and all that puts keys; reads,
// deletions, renewals and ends of leases go through, so grants live and can be released.
type FullError struct{ Err error }

// Error names the remedy.
func (e *FullError) Error() string {
	return "etcd: the database is full: compact its history, defragment, and disarm the alarm: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *FullError) Unwrap() error { return e.Err }

// UnreachableError reports that no server answered in time, that the cluster has no quorum, or that it has too much to do. A transaction may
// have been carried out.
type UnreachableError struct{ Err error }

// Error has the reason of the last attempt.
func (e *UnreachableError) Error() string {
	return "etcd: the cluster does not answer: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *UnreachableError) Unwrap() error { return e.Err }

// The texts of failures that have no type.
const (
	// tooLarge is in gRPC's refusals of a message. Its other errors of codes.ResourceExhausted are a server's that has too much to do.
	tooLarge = "larger than max"
	// dropped refuses a transaction while the leader hands over to another server, and stopped while the server ends.
	dropped = "raft proposal dropped"
	stopped = "raft: stopped"
)

// transient are failures of a server that another one, or the same a little later, does not have. Their codes do not say so.
var transient = []error{ //nolint:gochecknoglobals // A constant.
	rpctypes.ErrTooManyRequests, // its changes are not carried out as fast as they come
	rpctypes.ErrNotCapable,      // it has just started
	rpctypes.ErrNotLeader,
	rpctypes.ErrAuthOldRevision, // users or roles have changed
	rpctypes.Error(rpctypes.ErrGRPCNotSupportedForLearner),
}

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
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge),
		!ofCluster && code == codes.ResourceExhausted && strings.Contains(err.Error(), tooLarge):
		return &TooLargeError{err}
	case slices.ContainsFunc(transient, func(of error) bool { return errors.Is(err, of) }),
		!ofCluster && (code == codes.ResourceExhausted || says(err, dropped) || says(err, stopped)),
		code == codes.Unavailable, code == codes.Internal, code == codes.DeadlineExceeded, code == codes.Canceled,
		errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return &UnreachableError{err}
	}
	return fmt.Errorf("etcd: %w", err)
}

// says reports whether a server has failed with a text.
func says(err error, text string) bool { return rpctypes.ErrorDesc(err) == text }

// unreachable reports whether an error is an *UnreachableError.
func unreachable(err error) bool {
	_, is := errors.AsType[*UnreachableError](err)
	return is
}

// refused reports whether a transaction with that error was surely not carried out, and may be if it is sent again.
func refused(err error) bool {
	u, is := errors.AsType[*UnreachableError](err)
	return is && (errors.Is(err, rpctypes.ErrNoLeader) || errors.Is(err, rpctypes.ErrTooManyRequests) ||
		errors.Is(err, rpctypes.ErrAuthOldRevision) || says(u.Err, dropped))
}
