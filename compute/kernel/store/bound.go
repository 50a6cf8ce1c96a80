package store

import (
	"cmp"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// countAgain is the share of the bound that a process writes before it counts the folder again, for the entries of others.
	countAgain = 16
	// leave is the share of the bound that an eviction frees, so that not each Put that follows evicts.
	leave = 8
	// abandonedAfter is the age of a file that is being written by no process: one that died left it.
	abandonedAfter = time.Hour
)

// bound is the count of a folder's bytes.
type bound struct {
	limitBytes int64

	mu             sync.Mutex // of Put: serializes the count
	counted        bool
	heldBytes      atomic.Int64 // written under mu
	uncountedBytes int64        // written since the folder was counted
}

// keepBound counts an entry that was written, and evicts others where the bound is exceeded.
func (s *Store) keepBound(written string, bytes int64) {
	b := &s.bound
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uncountedBytes += bytes
	if b.heldBytes.Add(bytes) <= b.limitBytes && b.counted && b.uncountedBytes <= b.limitBytes/countAgain {
		return
	}
	all, err := s.files.list(s.path)
	if err != nil {
		s.counts.failed.Add(1) // the next Put counts
		return
	}
	b.counted, b.uncountedBytes = true, 0
	b.heldBytes.Store(s.evict(all, written))
}

// evict removes entries, the least recently used ones first, and files that dead processes left. It is how many bytes are left.
func (s *Store) evict(all []fs.FileInfo, written string) (held int64) {
	var entries []fs.FileInfo
	for _, info := range all {
		switch {
		case isEntry(info.Name()):
			held += info.Size()
			if info.Name() != written {
				entries = append(entries, info)
			}
		case strings.HasSuffix(info.Name(), temporary) && time.Since(info.ModTime()) > abandonedAfter:
			_ = s.remove(filepath.Join(s.path, info.Name())) // counted
		}
	}
	if held <= s.bound.limitBytes {
		return held
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, info := range entries {
		if held <= s.bound.limitBytes-s.bound.limitBytes/leave {
			break
		}
		err := s.remove(filepath.Join(s.path, info.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // it is there still
		}
		if err == nil { // else another process removed it
			s.counts.evicted.Add(1)
			s.counts.evictedBytes.Add(info.Size())
		}
		held -= info.Size()
	}
	return held
}
