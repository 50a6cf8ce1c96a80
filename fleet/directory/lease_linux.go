package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/ledger"
)

// lease is a locked file.
type lease struct {
	ledger *Ledger
	id     int64
	file   *os.File
	end    sync.Once
	done   chan struct{}
	err    error
}

// Lease implements fleet.Ledger. The lease ends with the process: ttl is not used.
func (l *Ledger) Lease(ctx context.Context, _ time.Duration) (fleet.Lease, error) {
	if err := l.ended(ctx); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(l.path, temporaryPrefix+"*") // closed on exec
	if err != nil {
		return nil, failed(err)
	}
	made := &lease{ledger: l, id: 1 + rand.Int64N(1<<62), file: f, done: make(chan struct{})} //nolint:gosec // a name
	err = lockFile(f, unix.LOCK_EX)
	if err == nil {
		err = os.Link(f.Name(), l.leaseFile(made.id)) // fails where the name is used
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if err != nil {
		return nil, failed(errors.Join(err, made.Close()))
	}
	l.lock.Lock()
	over := l.over
	if !over {
		l.leases[made] = true
	}
	l.lock.Unlock()
	if over {
		return nil, errors.Join(ledger.ErrClosed, made.Close())
	}
	return made, nil
}

// ID implements fleet.Lease.
func (e *lease) ID() int64 { return e.id }

// Done implements fleet.Lease.
func (e *lease) Done() <-chan struct{} { return e.done }

// Close implements fleet.Lease.
func (e *lease) Close() error {
	e.end.Do(func() {
		e.err = failed(errors.Join(lockFile(e.file, unix.LOCK_UN), e.file.Close())) // a forked child may have the descriptor, too
		_ = os.Remove(e.ledger.leaseFile(e.id))                                     // a free lock says the same
		close(e.done)
		e.ledger.lock.Lock()
		delete(e.ledger.leases, e)
		e.ledger.lock.Unlock()
	})
	return e.err
}

// LeaseFiles returns the locked files of the leases that l has made. A process that inherits one keeps the lease, until it has ended, too; Close
// ends it nevertheless. The caller closes none.
func (l *Ledger) LeaseFiles() (all []*os.File) {
	if !l.made() {
		return nil
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	for e := range l.leases {
		all = append(all, e.file)
	}
	return all
}

func (l *Ledger) leaseFile(id int64) string {
	return filepath.Join(l.path, leasesFolder, fmt.Sprintf("%016x", id))
}

// lockFile locks or unlocks an open file, without waiting.
func lockFile(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB) //nolint:gosec // a descriptor fits an int
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// lives reports whether a lease's holder lives. One that cannot be read counts as living: its memory is not granted twice.
func (l *Ledger) lives(id int64) bool {
	f, err := os.Open(l.leaseFile(id))
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	defer func() { _ = f.Close() }() // it was only locked
	return lockFile(f, unix.LOCK_SH) != nil
}

// anyLease reports whether a holder lives, and removes the files of dead ones.
func (l *Ledger) anyLease() (lives bool, err error) {
	entries, err := os.ReadDir(filepath.Join(l.path, leasesFolder))
	for _, e := range entries {
		id, err := strconv.ParseInt(e.Name(), 16, 64)
		if err != nil {
			continue // no lease
		}
		if l.lives(id) {
			lives = true
		} else {
			_ = os.Remove(l.leaseFile(id)) // dead for ever
		}
	}
	return lives, err
}

// checkFileSystem refuses network file systems.
func checkFileSystem(path string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return failed(err)
	}
	if isNetwork(int64(s.Type)) { //nolint:unconvert // its type differs between architectures
		return fmt.Errorf("%w: %s is on a network file system", ErrFileSystem, path)
	}
	return nil
}

// isNetwork reports whether the kernel's number of a file system names one on a network.
func isNetwork(kind int64) bool {
	switch kind {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC,
		unix.CEPH_SUPER_MAGIC, unix.CODA_SUPER_MAGIC, unix.NCP_SUPER_MAGIC, unix.V9FS_MAGIC, lustreMagic, gpfsMagic:
		return true
	}
	return false
}

// Numbers that the package unix does not have.
const (
	lustreMagic = 0x0BD00BD0
	gpfsMagic   = 0x47504653
)
