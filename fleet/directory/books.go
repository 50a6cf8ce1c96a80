package directory

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/go-vram/vram/fleet/ledger"
)

const (
	booksFolder  = "books"
	copiesFolder = "copies"
	leasesFolder = "leases"
	// keptRevisions is how many of the newest are kept. Not fewer: a process that is slower than so many transactions does not know the
	// outcome of its own. Not more: each is a file of all pairs.
	keptRevisions = 64
	// mostBytes bounds a file of books.
	mostBytes = 64 << 20
	magic     = "vram fleet books 1 "
)

// CorruptError reports that the newest books and their copy are damaged while a lease lives. Nothing is granted any more. The books begin
// empty once the processes that hold leases have ended.
type CorruptError struct {
	Path string
	Err  error
}

// Error names the file and the remedy.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("directory: %s and its copy are damaged (%v): end the processes that use this ledger", e.Path, e.Err)
}

// Unwrap returns Err.
func (e *CorruptError) Unwrap() error { return e.Err }

// errDamaged reports a file that is no complete file of books.
var errDamaged = errors.New("no complete file of books")

// state is the books of one revision, as they were read.
type state struct {
	ledger.Snapshot
	sum    string  // of the file, "" of revision 0
	oldest []int64 // revisions with files, in order
}

// encode returns the file of a revision. Its nonce makes its checksum differ from all others.
func encode(s ledger.Snapshot) ([]byte, error) {
	text, err := json.Marshal(struct {
		Nonce string `json:"nonce"`
		ledger.Snapshot
	}{rand.Text(), s})
	if err != nil {
		return nil, err
	}
	if len(text) > mostBytes/2 {
		return nil, fmt.Errorf("directory: books of %d bytes: want at most %d", len(text), mostBytes/2)
	}
	return append([]byte(magic+sumOf(text)+"\n"), text...), nil
}

func sumOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// parse reads the file of a revision, and returns its checksum.
func parse(file []byte, revision int64) (s ledger.Snapshot, sum string, err error) {
	head, text, found := bytes.Cut(file, []byte("\n"))
	sum = sumOf(text)
	if !found || string(head) != magic+sum {
		return s, "", errDamaged
	}
	if err := json.Unmarshal(text, &s); err != nil || s.Revision != revision {
		return s, "", errDamaged
	}
	return s, sum, nil
}

// file names a revision in one of the folders. Names sort as their numbers.
func (l *Ledger) file(folder string, revision int64) string {
	return filepath.Join(l.path, folder, fmt.Sprintf("%019d", revision))
}

// load reads a revision, from its copy where the first file is damaged or gone. Errors: of the file system, which says nothing about the
// books; errDamaged where a file is there, and none is whole; and fs.ErrNotExist where both are gone.
func (l *Ledger) load(revision int64) (s ledger.Snapshot, sum string, err error) {
	for _, folder := range []string{booksFolder, copiesFolder} {
		file, failure := readBounded(l.file(folder, revision))
		if failure == nil {
			if s, sum, failure = parse(file, revision); failure == nil {
				return s, sum, nil
			}
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errDamaged) && !errors.Is(failure, fs.ErrNotExist) {
			err = failure
		}
	}
	return ledger.Snapshot{}, "", err
}

func readBounded(name string) ([]byte, error) {
	f, err := os.Open(name) //nolint:gosec // of the ledger's folder
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	file, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if len(file) > mostBytes {
		return nil, errDamaged
	}
	return file, err
}

// revisions lists the numbers that have a file, in order.
func (l *Ledger) revisions() (all []int64, err error) {
	for _, folder := range []string{booksFolder, copiesFolder} {
		entries, err := os.ReadDir(filepath.Join(l.path, folder))
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if n, err := strconv.ParseInt(e.Name(), 10, 64); err == nil && n > 0 {
				all = append(all, n)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// newest reads the newest revision. It searches again while files are deleted before they are read, which takes keptRevisions
// transactions of others each time.
func (l *Ledger) newest() (state, error) {
	for missing := int64(0); ; {
		all, err := l.revisions()
		if err != nil {
			return state{}, err
		}
		if len(all) == 0 {
			return state{}, nil
		}
		last := all[len(all)-1]
		for l.exists(last + 1) { // linked while the folder was read
			last++
		}
		s, sum, err := l.load(last)
		switch {
		case err == nil:
			return state{s, sum, all}, nil
		case !errors.Is(err, errDamaged) && !errors.Is(err, fs.ErrNotExist):
			return state{}, err
		case missing != last: // its copy may be one that was deleted
			missing = last
			continue
		}
		if lives, err := l.anyLease(); err != nil || lives {
			return state{}, errors.Join(&CorruptError{l.file(booksFolder, last), errDamaged}, err)
		}
		return state{ledger.Snapshot{Revision: last}, damagedSum, all}, nil
	}
}

// damagedSum is the sum of every damaged file.
const damagedSum = "damaged"

// exists reports whether a revision has its first file.
func (l *Ledger) exists(revision int64) bool {
	_, err := os.Lstat(l.file(booksFolder, revision))
	return err == nil
}

// advance makes the next revision of a state. Errors: ledger.ErrConflict where another process made it first, errOutcome, and errors
// of the file system, after which nothing has changed.
func (l *Ledger) advance(from state, next ledger.Snapshot) error {
	file, err := encode(next)
	if err != nil {
		return err
	}
	temporary, err := l.temporary(file)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary) }() // a file that stays is removed by the next Open
	l.at("before link")
	switch err := os.Link(temporary, l.file(booksFolder, next.Revision)); {
	case errors.Is(err, fs.ErrExist):
		return ledger.ErrConflict
	case err != nil:
		return err
	}
	l.at("after link")
	if !l.follows(from, next.Revision) {
		return errOutcome
	}
	l.copy(file, next.Revision)
	for _, old := range from.oldest { // the lowest first: see follows
		if old <= next.Revision-keptRevisions {
			_ = os.Remove(l.file(booksFolder, old)) // the next transaction tries again
			_ = os.Remove(l.file(copiesFolder, old))
		}
	}
	return nil
}

// follows reports whether the file before the linked one still is the one that was read. Files are deleted from the lowest up, so the
// linked number was free because it is new, and not because it was deleted.
func (l *Ledger) follows(from state, revision int64) bool {
	if revision == 1 { // no file was deleted as long as there are few
		all, err := l.revisions()
		return err == nil && all[len(all)-1] < keptRevisions
	}
	_, sum, err := l.load(revision - 1)
	if errors.Is(err, errDamaged) {
		sum = damagedSum
	}
	return sum == from.sum
}

// copy writes the second file of a revision. Without it the first one serves.
func (l *Ledger) copy(file []byte, revision int64) {
	temporary, err := l.temporary(file)
	if err != nil {
		return
	}
	_ = os.Link(temporary, l.file(copiesFolder, revision))
	_ = os.Remove(temporary)
}

// temporary writes a file without a number, and removes it again where that fails.
func (l *Ledger) temporary(file []byte) (name string, err error) {
	f, err := os.CreateTemp(l.path, temporaryPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = l.write(f, file)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
