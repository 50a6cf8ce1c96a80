package directory

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

// errOutcome reports that the process was stopped while it committed, for so long that the files around are gone.
var errOutcome = errors.New("directory: the transaction may have been carried out: the process was stopped in it")

// ErrFileSystem reports a folder on a file system whose locks do not end with their holder, and only then.
var ErrFileSystem = errors.New("directory: want a local file system")

// ErrUnsupported reports a platform without this ledger.
var ErrUnsupported = errors.New("directory: the ledger of one host needs Linux")

const (
	// lookInterval is how often a wait looks for the next revision: one system call.
	lookInterval = 10 * time.Millisecond
	// busyTime is how long after a revision a wait looks that often. In a quiet ledger it looks when it probes: a process that wakes a hundred
	// times a second takes a percent of a processor.
	busyTime = time.Second
	// probeInterval is how often a wait looks for leases that have ended: three system calls for each lease; in a quiet ledger up to half as
	// rarely.
	probeInterval = 100 * time.Millisecond
	// waitAtMost is when a wait returns at the latest.
	waitAtMost = time.Second
	// oldAfter is the age of a temporary file whose writer has died. A writer that still lives tries again.
	oldAfter        = time.Hour
	temporaryPrefix = "tmp-"
)

// Ledger is a folder of one host. Open makes one; a nil or zero one refuses each call with fleet.ErrNotOpen.
type Ledger struct {
	path  string
	write func(f *os.File, file []byte) (int, error)
	at    func(place string) // tests stop here

	lock   sync.Mutex // of the fields below
	closed chan struct{}
	over   bool
	leases map[*lease]bool
	last   ledger.Snapshot // that was read
	moved  time.Time       // when a new revision was last read
}

var _ fleet.Ledger = (*Ledger)(nil)

// Open opens the ledger in a folder, which is made where it is missing, for this user alone. Processes of several users share one that
// was made for them. Errors: ErrUnsupported, ErrFileSystem, and errors of the file system.
func Open(path string) (*Ledger, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	for _, folder := range []string{"", booksFolder, copiesFolder, leasesFolder} {
		if err := os.MkdirAll(filepath.Join(path, folder), folderMode(path)); err != nil {
			return nil, err
		}
	}
	if err := checkFileSystem(path); err != nil {
		return nil, err
	}
	l := &Ledger{
		path: path, write: (*os.File).Write, at: func(string) {},
		closed: make(chan struct{}), leases: map[*lease]bool{},
	}
	return l, l.clean()
}

// folderMode returns the mode of the folder where there is one, so that those inside have it, too.
func folderMode(path string) os.FileMode {
	if info, err := os.Stat(path); err == nil {
		return info.Mode().Perm()
	}
	return 0o700
}

// clean removes files of dead processes.
func (l *Ledger) clean() error {
	entries, err := os.ReadDir(l.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasPrefix(e.Name(), temporaryPrefix) && time.Since(info.ModTime()) > oldAfter {
			_ = os.Remove(filepath.Join(l.path, e.Name())) // the next Open tries again
		}
	}
	_, err = l.anyLease()
	return err
}

// made reports whether Open has made the ledger.
func (l *Ledger) made() bool { return l != nil && l.closed != nil }

// ended returns the error of a call that cannot be made: fleet.ErrNotOpen, fleet.ErrNilContext, ErrClosed after Close, or the context's.
func (l *Ledger) ended(ctx context.Context) error {
	if !l.made() {
		return fleet.ErrNotOpen
	}
	if ctx == nil {
		return fleet.ErrNilContext
	}
	select {
	case <-l.closed:
		return ledger.ErrClosed
	default:
		return ctx.Err()
	}
}

// Read implements fleet.Ledger. It commits the end of leases; where the disk is full it only leaves their pairs out.
func (l *Ledger) Read(ctx context.Context, keys ...string) (ledger.Snapshot, error) {
	s, err := l.read(ctx)
	return s.Of(keys...), err
}

func (l *Ledger) read(ctx context.Context) (s ledger.Snapshot, err error) {
	defer func() {
		if err == nil {
			l.lock.Lock()
			defer l.lock.Unlock()
			if s.Revision != l.last.Revision {
				l.moved = time.Now()
			}
			l.last = s
		}
	}()
	for {
		if err := l.ended(ctx); err != nil {
			return ledger.Snapshot{}, err
		}
		now, err := l.newest()
		if err != nil {
			return ledger.Snapshot{}, failed(err)
		}
		left := now.Expire(l.lives)
		if left.Revision == now.Revision {
			return left, nil
		}
		switch err := l.advance(now, left); {
		case err == nil:
			return left, nil
		case errors.Is(err, ledger.ErrConflict), errors.Is(err, errOutcome):
		default:
			left.Revision = now.Revision
			return left, nil // the pairs are gone for this caller; the next one commits that
		}
	}
}

// Commit implements fleet.Ledger.
func (l *Ledger) Commit(ctx context.Context, t ledger.Transaction) (revision int64, err error) {
	for {
		if err := l.ended(ctx); err != nil {
			return 0, err
		}
		now, err := l.newest()
		if err != nil {
			return 0, failed(err)
		}
		left := now.Expire(l.lives)
		left.Revision = now.Revision // one revision for both
		next, err := left.Apply(t, l.lives)
		if err != nil {
			return 0, err
		}
		if next.Revision == now.Revision {
			return now.Revision, nil
		}
		switch err := l.advance(now, next); {
		case err == nil:
			return next.Revision, nil
		case !errors.Is(err, ledger.ErrConflict): // another transaction came first, and the compares are looked at again
			return 0, failed(err)
		}
	}
}

// failed names the package in an error of the file system.
func failed(err error) error {
	if err == nil || strings.HasPrefix(err.Error(), "directory: ") {
		return err
	}
	return fmt.Errorf("directory: %w", err)
}

// Wait implements fleet.Ledger. It returns after each revision, also one that has changed other keys.
func (l *Ledger) Wait(ctx context.Context, after int64, _ ...string) error {
	looks := time.NewTimer(0)
	defer looks.Stop()
	begin := time.Now()
	for probed := begin; ; {
		if err := l.ended(ctx); err != nil {
			return err
		}
		l.at("look")
		now := time.Now()
		if l.exists(after+1) || now.Sub(begin) >= waitAtMost {
			return nil
		}
		last, quiet := l.known()
		if now.Sub(probed) >= probeInterval {
			probed = now
			if last.Revision != after || l.suspects(last) {
				if s, err := l.read(ctx); err != nil || s.Revision > after {
					return err
				}
			}
		}
		next := lookInterval/2 + rand.N(lookInterval) //nolint:gosec // so that processes do not look at the same time
		if quiet {
			next = probeInterval + rand.N(probeInterval/2) //nolint:gosec // likewise
		}
		looks.Reset(next)
		select {
		case <-looks.C:
		case <-ctx.Done():
		case <-l.closed:
		}
	}
}

// known returns the last snapshot that was read, and whether no new revision was read for busyTime.
func (l *Ledger) known() (last ledger.Snapshot, quiet bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.last, time.Since(l.moved) > busyTime
}

// suspects reports whether there may be a revision after a snapshot's that has no file yet, or none any more: where a lease has ended, and
// where so many transactions came that the file of this one is gone.
func (l *Ledger) suspects(s ledger.Snapshot) bool {
	return s.Revision > 0 && !l.exists(s.Revision) || slices.ContainsFunc(s.Leases(), func(id int64) bool { return !l.lives(id) })
}

// Close implements fleet.Ledger.
func (l *Ledger) Close() error {
	if !l.made() {
		return fleet.ErrNotOpen
	}
	l.lock.Lock()
	if !l.over {
		l.over = true
		close(l.closed)
	}
	all := l.leases
	l.leases = map[*lease]bool{}
	l.lock.Unlock()
	var errs []error
	for lease := range all {
		errs = append(errs, lease.Close())
	}
	return errors.Join(errs...)
}
