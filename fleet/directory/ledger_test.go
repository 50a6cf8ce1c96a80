//go:build linux

package directory

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/go-vram/vram/fleet"
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

// Transactions compare and change keys, whole or not at all, and two opened ledgers of a folder see the same.
func TestTransactions(t *testing.T) {
	a, b := open(t, t.TempDir()), (*Ledger)(nil)
	b = open(t, a.path)
	ctx := t.Context()
	first, err := a.Commit(ctx, put("k/a", "1", 0, ledger.Compare{Key: "k/a"}))
	require.NoError(t, err)
	_, err = b.Commit(ctx, put("k/a", "2", 0, ledger.Compare{Key: "k/a"}))
	assert.ErrorIs(t, err, ledger.ErrConflict)
	second, err := b.Commit(ctx, put("k/b", "2", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: first}))
	require.NoError(t, err)
	assert.Greater(t, second, first)
	_, err = a.Commit(ctx, put("k/a", "3", 0, ledger.Compare{Key: "k/", Prefix: true, Mod: first}))
	assert.ErrorIs(t, err, ledger.ErrConflict)
	third, err := a.Commit(ctx, ledger.Transaction{If: []ledger.Compare{{Key: "k/a", Mod: first}}, Delete: []string{"k/b", "none"}, Put: []ledger.Put{{Key: "k/a", Value: []byte("3")}}})
	require.NoError(t, err)
	s, err := b.Read(ctx)
	require.NoError(t, err)
	assert.Equal(t, ledger.Snapshot{Revision: third, Pairs: []ledger.Pair{{Key: "k/a", Value: []byte("3"), Create: first, Mod: third}}}, s)
	same, err := b.Commit(ctx, ledger.Transaction{Delete: []string{"none"}})
	require.NoError(t, err)
	assert.Equal(t, third, same, "nothing changed")
}

// The pairs of a lease end with it, and none is put under it later.
func TestLeases(t *testing.T) {
	a := open(t, t.TempDir())
	b := open(t, a.path)
	ctx := t.Context()
	e := newLease(t, a)
	at, err := a.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	s, err := b.Read(ctx)
	require.NoError(t, err)
	assert.Len(t, s.Pairs, 1)
	require.NoError(t, e.Close())
	<-e.Done()
	require.NoError(t, b.Wait(ctx, at))
	s, err = b.Read(ctx)
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	assert.Greater(t, s.Revision, at)
	_, err = a.Commit(ctx, put("k", "1", e.ID()))
	assert.ErrorIs(t, err, ledger.ErrLeaseEnded)
	assert.Empty(t, a.leases)
	files, err := os.ReadDir(filepath.Join(a.path, leasesFolder))
	require.NoError(t, err)
	assert.Empty(t, files)
}

// Close ends the leases and every call.
func TestClose(t *testing.T) {
	a := open(t, t.TempDir())
	b := open(t, a.path)
	ctx := t.Context()
	e := newLease(t, a)
	_, err := a.Commit(ctx, put("k", "1", e.ID()))
	require.NoError(t, err)
	require.NoError(t, a.Close())
	<-e.Done()
	_, err = a.Read(ctx)
	assert.ErrorIs(t, err, ledger.ErrClosed)
	_, err = a.Lease(ctx, 0)
	assert.ErrorIs(t, err, ledger.ErrClosed)
	assert.ErrorIs(t, a.Wait(ctx, 0), ledger.ErrClosed)
	s, err := b.Read(ctx)
	require.NoError(t, err)
	assert.Empty(t, s.Pairs)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	assert.ErrorIs(t, b.Wait(ended, s.Revision), context.Canceled)
}

// Goroutines of several ledgers count one number up: no transaction is lost, and none happens twice. Old files are deleted.
func TestGoroutinesCount(t *testing.T) {
	const each = 100
	path := t.TempDir()
	var group sync.WaitGroup
	for range 4 {
		l := open(t, path)
		group.Go(func() {
			for done := 0; done < each; {
				s, err := l.Read(t.Context())
				if !assert.NoError(t, err) {
					return
				}
				n := 0
				p, _ := s.Find("n")
				_, _ = fmt.Sscan(string(p.Value), &n)
				_, err = l.Commit(t.Context(), put("n", fmt.Sprint(n+1), 0, ledger.Compare{Key: "n", Mod: p.Mod}))
				if err == nil {
					done++
				} else if !assert.ErrorIs(t, err, ledger.ErrConflict) {
					return
				}
			}
		})
	}
	group.Wait()
	l := open(t, path)
	s, err := l.Read(t.Context())
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprint(4*each), string(s.Pairs[0].Value))
	all, err := l.revisions()
	require.NoError(t, err)
	assert.LessOrEqual(t, len(all), keptRevisions+4)
	temporary, err := filepath.Glob(filepath.Join(path, temporaryPrefix+"*"))
	require.NoError(t, err)
	assert.Empty(t, temporary)
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

// Network file systems are known by their numbers.
func TestNetworkFileSystems(t *testing.T) {
	assert.True(t, isNetwork(unix.NFS_SUPER_MAGIC))
	assert.True(t, isNetwork(unix.CIFS_SUPER_MAGIC))
	assert.False(t, isNetwork(unix.EXT4_SUPER_MAGIC))
	assert.False(t, isNetwork(unix.TMPFS_MAGIC))
}
