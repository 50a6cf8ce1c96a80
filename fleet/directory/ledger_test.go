//go:build linux

package directory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/go-vram/vram/fleet"
	"github.com/go-vram/vram/fleet/internal/ledgertest"
	"github.com/go-vram/vram/fleet/ledger"
)

func open(t *testing.T, path string) *Ledger {
	t.Helper()
	l, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

func newLease(t *testing.T, l *Ledger) fleet.Lease {
	t.Helper()
	e, err := l.Lease(t.Context(), time.Second)
	require.NoError(t, err)
	return e
}

func put(key, text string, lease int64, compares ...ledger.Compare) ledger.Transaction {
	return ledger.Transaction{If: compares, Put: []ledger.Put{{Key: key, Value: []byte(text), Lease: lease}}}
}

// A nil or zero ledger refuses each call, and an open one a nil context.
func TestANilOrZeroLedger(t *testing.T) {
	var noContext context.Context
	opened := open(t, t.TempDir())
	for name, l := range map[string]*Ledger{"nil": nil, "zero": {}, "open": opened} {
		for _, ctx := range []context.Context{noContext, t.Context()} {
			want := fleet.ErrNotOpen
			if l == opened {
				want = fleet.ErrNilContext
			}
			if l == opened && ctx != nil {
				continue
			}
			_, err := l.Lease(ctx, 0)
			require.ErrorIs(t, err, want, name)
			_, err = l.Read(ctx)
			require.ErrorIs(t, err, want, name)
			_, err = l.Commit(ctx, ledger.Transaction{})
			require.ErrorIs(t, err, want, name)
			require.ErrorIs(t, l.Wait(ctx, 0), want, name)
		}
		assert.Empty(t, l.LeaseFiles(), name)
		if l != opened {
			require.ErrorIs(t, l.Close(), fleet.ErrNotOpen, name)
		}
	}
}

// The ledger keeps the promises of every ledger.
func TestPromises(t *testing.T) {
	ledgertest.Run(t, func(t *testing.T) ledgertest.Books {
		t.Helper()
		path := t.TempDir()
		return func() fleet.Ledger {
			l, err := Open(path)
			require.NoError(t, err)
			return l
		}
	})
}

// Another process that looks at the files while leases are made ends none of them.
func TestALeaseLivesFromItsName(t *testing.T) {
	const leases = 1000
	path := t.TempDir()
	l, other := open(t, path), open(t, path)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			_, err := other.anyLease()
			assert.NoError(t, err)
		}
	}()
	for range leases {
		e := newLease(t, l)
		assert.True(t, other.lives(e.ID()))
		require.NoError(t, e.Close())
	}
	close(stop)
	<-stopped
}

// A closed lease leaves no file, and is not kept.
func TestAClosedLeaseLeavesNothing(t *testing.T) {
	l := open(t, t.TempDir())
	require.NoError(t, newLease(t, l).Close())
	assert.Empty(t, l.leases)
	files, err := os.ReadDir(filepath.Join(l.path, leasesFolder))
	require.NoError(t, err)
	assert.Empty(t, files)
}

// Old files are deleted, and no temporary file stays.
func TestOldFilesAreDeleted(t *testing.T) {
	l := open(t, t.TempDir())
	for i := range 2 * keptRevisions {
		_, err := l.Commit(t.Context(), put("n", fmt.Sprint(i), 0))
		require.NoError(t, err)
	}
	all, err := l.revisions()
	require.NoError(t, err)
	assert.Len(t, all, keptRevisions)
	temporary, err := filepath.Glob(filepath.Join(l.path, temporaryPrefix+"*"))
	require.NoError(t, err)
	assert.Empty(t, temporary)
}

// Open deletes temporary files that are old, and no others: a young one has a writer.
func TestOpenDeletesOldTemporaryFiles(t *testing.T) {
	path := t.TempDir()
	open(t, path)
	old, young := time.Now().Add(-oldAfter-time.Minute), time.Now().Add(-oldAfter+time.Minute)
	kept := []string{temporaryPrefix + "young", "old"}
	for name, at := range map[string]time.Time{temporaryPrefix + "old": old, kept[0]: young, kept[1]: old} {
		name = filepath.Join(path, name)
		require.NoError(t, os.WriteFile(name, nil, 0o600))
		require.NoError(t, os.Chtimes(name, at, at))
	}
	open(t, path)
	assert.NoFileExists(t, filepath.Join(path, temporaryPrefix+"old"))
	for _, name := range kept {
		assert.FileExists(t, filepath.Join(path, name))
	}
}

// Files that are no revision's are not read, and a revision without its files is missing.
func TestFilesThatAreNoRevision(t *testing.T) {
	l := open(t, t.TempDir())
	for _, folder := range []string{booksFolder, copiesFolder} {
		for _, name := range []string{filepath.Base(l.file(folder, 0)), "-1", "x", "1x"} {
			require.NoError(t, os.WriteFile(filepath.Join(l.path, folder, name), nil, 0o600))
		}
	}
	all, err := l.revisions()
	require.NoError(t, err)
	assert.Empty(t, all)
	_, _, err = l.load(7)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = l.Commit(t.Context(), put("k", "1", 0))
	require.NoError(t, err)
}

// A wait returns for a later revision, not for one before.
func TestAWaitIsForALaterRevision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, t.TempDir())
		var at int64
		for range 3 {
			var err error
			at, err = l.Commit(t.Context(), put("k", "1", 0))
			require.NoError(t, err)
		}
		begin := time.Now()
		require.NoError(t, l.Wait(t.Context(), at))
		assert.GreaterOrEqual(t, time.Since(begin), waitAtMost)
		begin = time.Now()
		require.NoError(t, l.Wait(t.Context(), at-1))
		assert.Zero(t, time.Since(begin))
	})
}

// A folder of leases that cannot be read is an error: nobody knows which ones live.
func TestLeasesThatCannotBeListed(t *testing.T) {
	l := open(t, t.TempDir())
	require.NoError(t, os.Remove(filepath.Join(l.path, leasesFolder)))
	_, err := l.anyLease()
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, l.clean(), fs.ErrNotExist)
}

// A folder of books that cannot be read is an error, not an empty ledger.
func TestBooksThatCannotBeListed(t *testing.T) {
	for _, folder := range []string{booksFolder, copiesFolder} {
		l := open(t, t.TempDir())
		require.NoError(t, os.Remove(filepath.Join(l.path, folder)))
		_, err := l.Read(t.Context())
		require.ErrorIs(t, err, fs.ErrNotExist, folder)
		_, err = l.Commit(t.Context(), put("k", "1", 0))
		require.ErrorIs(t, err, fs.ErrNotExist, folder)
	}
}

// Books that are deleted while they are read, as others make later ones, are looked for again.
func TestBooksThatAreDeletedWhileTheyAreRead(t *testing.T) {
	l := open(t, t.TempDir())
	e := newLease(t, l) // else they would begin empty
	var last int64
	for i := range 2 {
		var err error
		last, err = l.Commit(t.Context(), put("k", fmt.Sprint(i), e.ID()))
		require.NoError(t, err)
	}
	later := map[string]string{}
	for _, folder := range []string{booksFolder, copiesFolder} {
		name := l.file(folder, last)
		later[name] = filepath.Join(l.path, folder+" of the last")
		require.NoError(t, os.Rename(name, later[name]))
		require.NoError(t, os.Remove(l.file(folder, last-1)))
	}
	pipe := l.file(booksFolder, last-1)
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	deleted := make(chan error, 1)
	go func() {
		f, err := os.OpenFile(pipe, os.O_WRONLY, 0) // once it is being read
		if err == nil {
			err = os.Remove(pipe)
		}
		for name, kept := range later {
			err = errors.Join(err, os.Rename(kept, name))
		}
		deleted <- errors.Join(err, f.Close())
	}()
	s, err := l.Read(t.Context())
	require.NoError(t, err)
	require.NoError(t, <-deleted)
	assert.Equal(t, last, s.Revision)
	assert.Len(t, s.Pairs, 1)
}

// There may be a later revision where the file of a known one is gone, from the first on.
func TestARevisionWithoutItsFileIsSuspect(t *testing.T) {
	l := open(t, t.TempDir())
	assert.False(t, l.suspects(ledger.Snapshot{}), "no file yet")
	for range 2 {
		_, err := l.Commit(t.Context(), put("k", "1", 0))
		require.NoError(t, err)
		s, err := l.Read(t.Context())
		require.NoError(t, err)
		assert.False(t, l.suspects(s))
		name := l.file(booksFolder, s.Revision)
		require.NoError(t, os.Rename(name, name+"x"))
		assert.True(t, l.suspects(s), "revision %d", s.Revision)
		require.NoError(t, os.Rename(name+"x", name))
	}
}

// The files of leases are listed from their beginning to their end.
func TestTheFilesOfLeases(t *testing.T) {
	l := open(t, t.TempDir())
	var all []fleet.Lease
	for range 3 {
		all = append(all, newLease(t, l))
	}
	for {
		var want []*os.File
		for _, e := range all {
			want = append(want, e.(*lease).file)
		}
		assert.ElementsMatch(t, want, l.LeaseFiles())
		if len(all) == 0 {
			return
		}
		require.NoError(t, all[0].Close())
		all = all[1:]
	}
}

// The folders inside have the mode of the ledger's, so that the users who share it can write to all; a new ledger is its user's alone.
func TestTheModesOfFolders(t *testing.T) {
	defer unix.Umask(unix.Umask(0)) // of the test, which is not parallel
	for _, mode := range []os.FileMode{0o700, 0o770, 0o777} {
		path := t.TempDir()
		require.NoError(t, os.Chmod(path, mode))
		open(t, path)
		for _, folder := range []string{booksFolder, copiesFolder, leasesFolder} {
			info, err := os.Stat(filepath.Join(path, folder))
			require.NoError(t, err)
			assert.Equal(t, mode, info.Mode().Perm(), folder)
		}
	}
	path := filepath.Join(t.TempDir(), "new")
	open(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, info.Mode().Perm())
}

// A path that depends on a folder which is gone is refused.
func TestAPathFromAFolderThatIsGone(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(gone, 0o700))
	t.Chdir(gone)
	require.NoError(t, os.Remove(gone))
	_, err := Open("ledger")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// The end of a lease and the next transaction are one revision.
func TestTheEndOfALeaseIsNoRevision(t *testing.T) {
	l := open(t, t.TempDir())
	e := newLease(t, l)
	before, err := l.Commit(t.Context(), put("k", "1", e.ID()))
	require.NoError(t, err)
	require.NoError(t, e.Close())
	after, err := l.Commit(t.Context(), put("l", "2", 0))
	require.NoError(t, err)
	assert.Equal(t, before+1, after)
	s, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, after, s.Revision)
	require.Len(t, s.Pairs, 1)
	assert.Equal(t, "l", s.Pairs[0].Key)
}

// A lease whose file cannot be read counts as living.
func TestALeaseThatCannotBeReadLives(t *testing.T) {
	l := open(t, t.TempDir())
	e := newLease(t, l)
	_, err := l.Commit(t.Context(), put("k", "1", e.ID()))
	require.NoError(t, err)
	name := l.leaseFile(e.ID())
	require.NoError(t, os.Remove(name))
	require.NoError(t, os.Symlink(name, name)) // leads to itself
	s, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Len(t, s.Pairs, 1)
	require.NoError(t, os.Remove(name))
	s, err = l.Read(t.Context())
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
}

// A books file that is cut at any byte loses nothing: its copy serves. Where both are cut, a living lease makes it an error, and without
// one the books begin empty at a later number.
func TestBooksAreCutAtEveryByte(t *testing.T) {
	l := open(t, t.TempDir())
	ctx := t.Context()
	e := newLease(t, l)
	_, err := l.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	want, err := l.Read(ctx)
	require.NoError(t, err)
	books, copies := l.file(booksFolder, want.Revision), l.file(copiesFolder, want.Revision)
	whole, err := os.ReadFile(books)
	require.NoError(t, err)
	for at := range whole {
		for _, name := range []string{books, copies} {
			require.NoError(t, os.WriteFile(name, whole[:at], 0o600))
			s, err := l.Read(ctx)
			require.NoError(t, err, "%s is cut at %d", name, at)
			require.Equal(t, want, s)
			require.NoError(t, os.WriteFile(name, whole, 0o600))
		}
		require.NoError(t, os.WriteFile(books, whole[:at], 0o600))
		require.NoError(t, os.WriteFile(copies, whole[:at], 0o600))
		_, err := l.Read(ctx)
		var corrupt *CorruptError
		require.True(t, errors.As(err, &corrupt), "both are cut at %d: %v", at, err)
		require.NoError(t, os.WriteFile(books, whole, 0o600))
		require.NoError(t, os.WriteFile(copies, whole, 0o600))
	}
	require.NoError(t, os.WriteFile(books, whole[:9], 0o600))
	next, err := l.Commit(ctx, put("l", "2", e.ID()))
	require.NoError(t, err, "on the copy")
	assert.Equal(t, want.Revision+1, next)
	for _, folder := range []string{booksFolder, copiesFolder} {
		require.NoError(t, os.Truncate(l.file(folder, next), 9))
	}
	require.NoError(t, e.Close())
	s, err := l.Read(ctx)
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	last, err := l.Commit(ctx, put("m", "3", 0))
	require.NoError(t, err)
	assert.Equal(t, next+1, last, "numbers rise: a fence does not come back")
}

// Books whose files are damaged or gone begin empty where no lease lives, at their number: the next transaction is carried out, with its
// copy, and deletes old files. A file that cannot be read is no damaged one.
func TestBooksWithoutAWholeFile(t *testing.T) {
	damaged := func(name string) error { return os.Truncate(name, 9) }
	unreadable := func(name string) error { return errors.Join(os.Remove(name), os.Mkdir(name, 0o700)) }
	for name, x := range map[string]struct {
		first, second func(name string) error
		err           error
	}{
		"both are damaged":                        {damaged, damaged, nil},
		"one is damaged, and its copy gone":       {damaged, os.Remove, nil},
		"one is gone, and its copy damaged":       {os.Remove, damaged, nil},
		"one cannot be read, and its copy gone":   {unreadable, os.Remove, unix.EISDIR},
		"one is gone, and its copy cannot be":     {os.Remove, unreadable, unix.EISDIR},
		"one cannot be read, the copy damaged":    {unreadable, damaged, unix.EISDIR},
		"one is damaged, its copy cannot be read": {damaged, unreadable, unix.EISDIR},
	} {
		for _, before := range []int64{1, keptRevisions + 5} {
			l := open(t, t.TempDir())
			ctx := t.Context()
			for range before {
				_, err := l.Commit(ctx, put("k", "1", 0))
				require.NoError(t, err)
			}
			require.NoError(t, x.first(l.file(booksFolder, before)), name)
			require.NoError(t, x.second(l.file(copiesFolder, before)), name)
			next, err := l.Commit(ctx, put("m", "3", 0))
			require.ErrorIs(t, err, x.err, name)
			if err != nil {
				_, err = l.Read(ctx)
				require.ErrorIs(t, err, x.err, name)
				continue
			}
			assert.Equal(t, before+1, next, name)
			assert.FileExists(t, l.file(copiesFolder, next), name)
			assert.NoFileExists(t, l.file(booksFolder, next-keptRevisions), name)
			s, err := l.Read(ctx)
			require.NoError(t, err, name)
			require.Len(t, s.Pairs, 1, name)
			assert.Equal(t, "m", s.Pairs[0].Key, name)
		}
	}
}

// A disk that is full at any byte fails the transaction and changes nothing; a dead holder's pairs are gone nevertheless.
func TestAFullDisk(t *testing.T) {
	l := open(t, t.TempDir())
	ctx := t.Context()
	e := newLease(t, l)
	at, err := l.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	want, err := l.Read(ctx)
	require.NoError(t, err)
	for room := range 300 {
		l.write = func(f *os.File, file []byte) (int, error) {
			n, err := f.Write(file[:min(room, len(file))])
			return n, errors.Join(err, unix.ENOSPC)
		}
		_, err = l.Commit(ctx, put("l", "2", 0))
		require.ErrorIs(t, err, unix.ENOSPC)
		s, err := l.Read(ctx)
		require.NoError(t, err)
		require.Equal(t, want, s)
	}
	require.NoError(t, e.Close())
	s, err := l.Read(ctx)
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	assert.Equal(t, at, s.Revision)
	files, err := os.ReadDir(l.path)
	require.NoError(t, err)
	assert.Len(t, files, 3, "no temporary file is left")
	l.write = (*os.File).Write
	s, err = l.Read(ctx)
	require.NoError(t, err)
	assert.Greater(t, s.Revision, at)
}

// A process that is stopped in a transaction stops nobody, and learns that it came too late.
func TestAStoppedTransaction(t *testing.T) {
	for _, others := range []int{0, 1, keptRevisions + 10} {
		for _, first := range []int{0, 3} { // revisions before
			for _, place := range []string{"before link", "after link"} {
				slow := open(t, t.TempDir())
				fast := open(t, slow.path)
				ctx := t.Context()
				for range first {
					_, err := fast.Commit(ctx, put("f", "x", 0))
					require.NoError(t, err)
				}
				slow.at = func(at string) {
					if at == place {
						slow.at = func(string) {}
						for i := range others {
							_, err := fast.Commit(ctx, put("f", fmt.Sprint(i), 0))
							require.NoError(t, err, "the stopped process stops another")
						}
					}
				}
				_, err := slow.Commit(ctx, put("s", "1", 0, ledger.Compare{Key: "s"}))
				s, readErr := fast.Read(ctx)
				require.NoError(t, readErr)
				_, there := s.Find("s")
				what := fmt.Sprint(others, first, place)
				switch {
				case err == nil:
					assert.True(t, there, what)
				case others > keptRevisions:
					assert.ErrorIs(t, err, errOutcome, what)
				default:
					assert.NoError(t, err, what)
				}
				assert.Len(t, s.Pairs, min(first+others, 1)+map[bool]int{true: 1}[there], what)
			}
		}
	}
}

// A wait looks often for a second after a revision, then rarely, and finds the end of a lease and many revisions nevertheless.
func TestAQuietLedgerIsLookedAtRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := t.TempDir()
		l, other := open(t, path), open(t, path)
		e := newLease(t, other)
		at, err := l.Commit(t.Context(), put("k", "1", e.ID()))
		require.NoError(t, err)
		_, err = l.Read(t.Context())
		require.NoError(t, err)
		looks := 0
		l.at = func(string) { looks++ }
		wait := func(most time.Duration) (took time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), most)
			defer cancel()
			begin := time.Now()
			for err := error(nil); ctx.Err() == nil && !l.exists(at+1); {
				if err = l.Wait(ctx, at); ctx.Err() == nil {
					require.NoError(t, err)
				}
			}
			return time.Since(begin)
		}
		wait(time.Second)
		assert.Greater(t, looks, 50)
		looks = 0
		wait(10 * time.Second)
		assert.LessOrEqual(t, looks, 10*(int(time.Second/probeInterval)+1))
		require.NoError(t, e.Close())
		assert.LessOrEqual(t, wait(time.Minute), 200*time.Millisecond)
		s, err := l.Read(t.Context())
		require.NoError(t, err)
		for i := range 2 * keptRevisions {
			_, err = other.Commit(t.Context(), put("n", fmt.Sprint(i), 0))
			require.NoError(t, err)
		}
		begin := time.Now()
		require.NoError(t, l.Wait(t.Context(), s.Revision))
		assert.LessOrEqual(t, time.Since(begin), 200*time.Millisecond, "its file is gone")
	})
}

// Network file systems are known by their numbers.
func TestNetworkFileSystems(t *testing.T) {
	assert.True(t, isNetwork(unix.NFS_SUPER_MAGIC))
	assert.True(t, isNetwork(unix.CIFS_SUPER_MAGIC))
	assert.False(t, isNetwork(unix.EXT4_SUPER_MAGIC))
	assert.False(t, isNetwork(unix.TMPFS_MAGIC))
}

// A process that was forked, and that has the descriptors of its parent, keeps no lease that the parent has closed, in each way in
// which it can end.
func TestAForkedProcessKeepsNoLease(t *testing.T) {
	for name, end := range map[string]func(l *Ledger, e fleet.Lease) error{
		"the lease is closed":  func(_ *Ledger, e fleet.Lease) error { return e.Close() },
		"the ledger is closed": func(l *Ledger, _ fleet.Lease) error { return l.Close() },
	} {
		l, err := Open(t.TempDir())
		require.NoError(t, err, name)
		e := newLease(t, l)
		forked, err := unix.Dup(int(e.(*lease).file.Fd()))
		require.NoError(t, err)
		other, err := os.Open(l.leaseFile(e.ID()))
		require.NoError(t, err)
		require.ErrorIs(t, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
		require.NoError(t, end(l, e))
		require.NoError(t, unix.Flock(int(other.Fd()), unix.LOCK_EX|unix.LOCK_NB), name)
		require.NoError(t, other.Close())
		require.NoError(t, unix.Close(forked))
		require.NoError(t, l.Close())
	}
}
