package magazine

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/fence/line"
)

// ways are the ways in which a use by another stream is announced.
func ways(other *line.Line) map[string]func(s *Slot, handle uint64) error {
	return map[string]func(s *Slot, handle uint64) error{
		"a number": func(s *Slot, handle uint64) error { return s.Record(handle, userCount) }, // too high for the word
		"a second number": func(s *Slot, handle uint64) error {
			if err := s.Record(handle, 0); err != nil {
				return err
			}
			return s.Record(handle, 1)
		},
		"a line": func(s *Slot, handle uint64) error { return s.RecordLine(handle, other) },
		"begun": func(s *Slot, handle uint64) error {
			_, err := s.Begin(handle, other)
			return err
		},
		"begun again": func(s *Slot, handle uint64) error {
			u, err := s.Begin(handle, other)
			if err == nil {
				err = u.End(1)
			}
			if err != nil {
				return err
			}
			_, err = s.Begin(handle, other)
			return err
		},
		"moved": func(s *Slot, handle uint64) error {
			_, err := s.Move(handle, other, 1, nil)
			return err
		},
	}
}

// Whenever a block is freed while a use is announced, at each place between the atomic operations: the announcement fails, or the
// owner finds all uses.
func TestAUseIsFoundOrRefusedWheneverTheBlockIsFreed(t *testing.T) {
	t.Parallel()
	var other line.Line
	other.Init(nil)
	for name, announce := range ways(&other) {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				c, _, _ := cacheOf(0)
				s, handle := c.Take(512)
				require.NotNil(t, s)
				freed, found, places := false, 0, 0
				free := func() {
					live := s.Word()
					freed = s.Free(live) == nil
					if freed && s.flags != 0 {
						s.TakeUses(func(int) { found++ }, func(l *line.Line, _ uint64, open bool) {
							if l == &other && open {
								found++
							}
						})
					}
				}
				c.SetReach(func(string) {
					if places++; places == at {
						free()
					}
				})
				err := announce(s, handle)
				last := places < at
				if c.SetReach(nil); last {
					require.NoError(t, err)
					free()
				}
				require.True(t, freed)
				if err == nil {
					want := 1
					if name == "a second number" {
						want = 2
					}
					assert.Equal(t, want, found, "place %d", at)
				}
				if last {
					assert.Greater(t, at, 1, "no place")
					break
				}
			}
		})
	}
}

// Whenever a block is freed and its uses are collected while a use ends, or while its stream hands the block on: the owner finds a
// use that is open, or one whose fence covers what was submitted.
func TestAUseIsOpenUntilItsFenceIsKnown(t *testing.T) {
	t.Parallel()
	const fence = 7
	for name, end := range map[string]func(s *Slot, use Use, handle uint64, next *line.Line) error{
		"ends":                  func(_ *Slot, use Use, _ uint64, _ *line.Line) error { return use.End(fence) },
		"ends after an earlier": func(_ *Slot, use Use, _ uint64, _ *line.Line) error { return errors.Join(use.End(fence), use.End(1)) },
		"moves on": func(s *Slot, _ Use, handle uint64, next *line.Line) error {
			_, err := s.Move(handle, next, fence, nil)
			return err
		},
		"moves back to its owner": func(s *Slot, _ Use, handle uint64, _ *line.Line) error {
			_, err := s.Move(handle, nil, fence, nil)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			for at := 1; ; at++ {
				c, _, _ := cacheOf(0)
				s, handle := c.Take(512)
				require.NotNil(t, s)
				var user, next line.Line
				user.Init(nil)
				next.Init(nil)
				var use Use
				var err error
				if strings.HasPrefix(name, "moves") {
					handle, err = s.Move(handle, &user, 1, &Hand{To: 2})
				} else {
					use, err = s.Begin(handle, &user)
				}
				require.NoError(t, err)
				found, places := 0, 0
				free := func() {
					require.NoError(t, s.Free(s.Word()))
					s.TakeUses(func(int) {}, func(l *line.Line, number uint64, open bool) {
						if l == &user {
							found++
							assert.True(t, open || number >= fence, "place %d: ended, by fence %d", at, number)
						}
					})
				}
				c.SetReach(func(string) {
					if places++; places == at {
						c.SetReach(nil)
						free()
					}
				})
				err = end(s, use, handle, &next)
				if places == at {
					assert.Equal(t, 1, found, "place %d", at)
					continue
				}
				if name == "ends after an earlier" {
					require.ErrorIs(t, err, ErrUseOver)
				} else {
					require.NoError(t, err)
				}
				c.SetReach(nil)
				free()
				assert.Equal(t, 1, found)
				assert.Greater(t, at, 1, "no place")
				break
			}
		})
	}
}

// A use is noted before it is announced, in each way in which it can be, between goroutines: if the flag is in a slot's word, the
// use is in its note.
func TestAUseIsNotedBeforeItIsAnnounced(t *testing.T) {
	t.Parallel()
	var other line.Line
	other.Init(nil)
	all := ways(&other)
	for name, bit := range map[string]uint64{"a number": 1 << userCount, "a line": moreUses, "begun": moreUses, "moved": moreUses} {
		t.Run(name, func(t *testing.T) { meetAnnouncements(t, bit, all[name]) })
	}
}

// meetAnnouncements watches words and notes while uses are announced.
func meetAnnouncements(t *testing.T, bit uint64, announce func(*Slot, uint64) error) {
	t.Helper()
	rounds := 2000
	if testing.Short() {
		rounds = 100
	}
	for range rounds {
		_, _, m := cacheOf(0)
		var handles []uint64
		for i := range m.slots {
			handles = append(handles, m.slots[i].word.Load())
		}
		var at, late atomic.Int64
		var watcher sync.WaitGroup
		watcher.Go(func() {
			for i := range handles {
				s := &m.slots[i]
				at.Store(int64(i + 1))
				for spins := 1; ; spins++ {
					announced := s.word.Load()&uint64(Announced) != 0
					n := s.note.Load()
					if announced && (n == nil || n.bits.Load()&bit == 0) {
						late.Add(1)
					}
					if announced {
						break
					}
					if spins%256 == 0 {
						runtime.Gosched()
					}
				}
			}
		})
		for i := range handles {
			for at.Load() <= int64(i) {
				runtime.Gosched()
			}
			require.NoError(t, announce(&m.slots[i], handles[i]))
		}
		watcher.Wait()
		if !assert.Zero(t, late.Load(), "announced, and not noted") {
			return
		}
	}
}

// A history has its slot's earlier ones, up to a number.
func TestHistoriesAreCut(t *testing.T) {
	t.Parallel()
	var all *History
	for length := range 7 {
		for most := range 6 {
			got := 0
			for h := all.cut(most); h != nil; h = h.former {
				got++
				assert.EqualValues(t, length-got, h.Bytes, "the latest first")
			}
			assert.Equal(t, min(length, most), got)
		}
		all = &History{Bytes: int64(length), former: all}
	}
}
