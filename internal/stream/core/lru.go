package core

import "github.com/go-vram/vram/internal/stream/magazine"

// lru orders the open magazines of large blocks by when they last got a slot.
type lru struct {
	oldest, newest *magazine.Exact
}

// has reports whether a magazine is in the list.
func (l *lru) has(m *magazine.Exact) bool { return m.Older != nil || l.oldest == m }

func (l *lru) touch(m *magazine.Exact) {
	if l.newest == m {
		return
	}
	l.remove(m)
	m.Older, m.Newer = l.newest, nil
	if l.newest != nil {
		l.newest.Newer = m
	} else {
		l.oldest = m
	}
	l.newest = m
}

func (l *lru) remove(m *magazine.Exact) {
	if m.Older != nil {
		m.Older.Newer = m.Newer
	} else if l.oldest == m {
		l.oldest = m.Newer
	} else {
		return // not in the list
	}
	if m.Newer != nil {
		m.Newer.Older = m.Older
	} else {
		l.newest = m.Older
	}
	m.Older, m.Newer = nil, nil
}
