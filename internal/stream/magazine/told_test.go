package magazine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/fence/line"
)

// clerk watches frees, is paid for them, and counts the refused ones.
type clerk struct {
	wakes
	freed   []History
	paid    []int64
	refused int
	helpers int // how often it was asked for them
}

func (k *clerk) Freed()                 {}
func (k *clerk) Refused()               { k.refused++ }
func (k *clerk) Paid(bytes int64)       { k.paid = append(k.paid, bytes) }
func (k *clerk) PayerName() string      { return "payer" }
func (k *clerk) Helpers() *site.Helpers { k.helpers++; return nil }

// watching is a clerk as a watcher.
type watching struct{ *clerk }

func (w watching) Freed(h *History) { w.freed = append(w.freed, *h) }

// recordedSlot returns a slot and its clerk.
func recordedSlot(t *testing.T, share Share) (take func() (*Slot, uint64), k *clerk) {
	t.Helper()
	c, o, _ := cacheOf(0)
	k = &clerk{wakes: func() {}}
	c.waker = k
	c.SetWatcher(watching{k})
	o.SetShare(share)
	return func() (*Slot, uint64) {
		for s := o.Used(false); s != nil; s = o.Next(s) {
			s.TakeUses(func(int) {}, func(*line.Line, uint64, bool) {})
			o.Collect(s)
		}
		s, handle := c.Take(512)
		require.NotNil(t, s)
		return s, handle
	}, k
}

// A watched handle has its facts until it is freed, also under another handle of its allocation; its free is told once. Where
// everything is sampled the place of the free is known, and the histories of earlier handles are.
func TestAWatchedHandleIsToldOf(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	for _, share := range []Share{Everything, Everything / 2} {
		everything := share == Everything
		take, k := recordedSlot(t, share)
		var handles []uint64
		for i, tag := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			s, handle := take()
			assert.Equal(t, Facts{}, s.Facts(), "facts of an earlier handle")
			assert.Nil(t, s.History())
			for _, old := range handles {
				allocated, freed := s.Places(old)
				assert.Equal(t, freed != nil, everything && allocated != nil, "%s", tag)
			}
			bytes := int64(100 + i)
			h := &History{Bytes: bytes, Tag: tag, At: at, Allocated: site.Stack{uintptr(1 + i)}}
			s.Watch(handle, h)
			s.SetTag(handle, 1, "another", at.Add(1))
			s.SetTag(handle, 1, "another", at.Add(1))
			moved := handle
			if i%2 == 1 {
				var err error
				moved, err = s.Move(handle, nil, 0, nil)
				require.NoError(t, err)
				refused := k.refused
				require.ErrorIs(t, s.Free(handle), ErrTransferred)
				assert.Equal(t, refused+1, k.refused)
			}
			assert.Equal(t, Facts{RequestedBytes: bytes, Tag: tag, At: at, Allocated: h.Allocated}, s.Facts())
			assert.Same(t, h, s.History())
			assert.Equal(t, s.Address(), h.Address)
			assert.Same(t, h, s.Adopt(moved, 512))
			assert.Len(t, k.freed, i)
			require.NoError(t, s.Free(moved))
			require.Len(t, k.freed, i+1)
			assert.Equal(t, tag, k.freed[i].Tag)
			assert.Equal(t, everything, k.freed[i].Freed != nil)
			for _, gone := range []uint64{moved, handle} {
				refused := k.refused
				err := s.Free(gone)
				require.ErrorIs(t, err, ErrDoubleFree)
				var places *FreeError
				require.ErrorAs(t, err, &places)
				assert.Equal(t, h.Allocated, places.Allocated)
				assert.Equal(t, everything, places.Freed != nil)
				assert.Equal(t, refused+1, k.refused)
				allocated, freed := s.Places(gone)
				assert.Equal(t, [2]site.Stack{places.Allocated, places.Freed}, [2]site.Stack{allocated, freed})
			}
			handles = append(handles, handle)
			known := 0
			for _, old := range handles {
				if allocated, _ := s.Places(old); allocated != nil {
					known++
				}
			}
			if everything {
				assert.Equal(t, min(i+1, 1+formerLimit), known)
			} else {
				assert.Equal(t, 1, known, "only the last is kept")
			}
		}
		assert.Len(t, k.freed, len(handles), "a refused free is not told")
		if everything {
			assert.Equal(t, len(handles), k.helpers, "they are left out of the places")
		}
	}
}

// A named handle that is adopted keeps its name, size and time; a charged one is paid for once, in bytes of its block, and the next
// handle of the slot is not.
func TestANamedAndAChargedHandle(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	take, k := recordedSlot(t, Everything/2)
	s, handle := take()
	s.SetTag(handle, 300, "weights", at)
	assert.Equal(t, Facts{RequestedBytes: 300, Tag: "weights", At: at}, s.Facts())
	h := s.Adopt(handle, 512)
	assert.Equal(t, History{Address: s.Address(), Bytes: 300, Tag: "weights", At: at, word: handle}, *h)
	assert.Equal(t, Facts{RequestedBytes: 300, Tag: "weights", At: at}, s.Facts())
	require.NoError(t, s.Free(handle))
	require.Len(t, k.freed, 1)
	assert.Equal(t, *h, k.freed[0])

	s, handle = take()
	assert.EqualValues(t, 512, s.Adopt(handle, 512).Bytes, "it had no name")
	require.NoError(t, s.Free(handle))
	require.Len(t, k.freed, 2)

	for round := range 3 {
		s, handle = take()
		assert.False(t, s.IsCharged())
		s.SetCharge(handle, k, 512, 300, at)
		assert.True(t, s.IsCharged())
		assert.Equal(t, Facts{RequestedBytes: 300, Payer: "payer", At: at}, s.Facts())
		if round == 1 {
			require.NoError(t, s.Record(handle, 0), "it goes to the owner")
		}
		require.NoError(t, s.Free(handle))
		require.ErrorIs(t, s.Free(handle), ErrDoubleFree)
		assert.Len(t, k.paid, round+1)

		s, handle = take()
		assert.False(t, s.IsCharged())
		s.Watch(handle, &History{Bytes: 1})
		require.NoError(t, s.Free(handle))
		assert.Len(t, k.paid, round+1, "the next handle is not charged")
	}
	assert.Equal(t, []int64{512, 512, 512}, k.paid)
	assert.Len(t, k.freed, 5)
	assert.Equal(t, 3, k.refused)
}
