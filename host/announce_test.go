package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// endingPlace lets another goroutine free a block between the two looks of a Use.
type endingPlace struct{ free func() }

func (p endingPlace) usable(cudadrv.Stream) (keep bool, err error) {
	p.free()
	return true, nil
}

// A use that is noted after a free has looked for uses is refused, also where the memory is in use again: nothing waits for it.
func TestAUseThatAFreeDidNotSeeIsRefused(t *testing.T) {
	for name, others := range map[string]func(s *slot){
		"freed":            func(s *slot) { assert.NoError(t, s.end(0)) },
		"freed and reused": func(s *slot) { assert.NoError(t, s.end(0)); assert.NoError(t, s.end(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &slot{}
			s.where = endingPlace{func() {
				others(s)
				assert.False(t, s.noted(), "the free has nothing to wait for")
			}}
			b := Block{slot: s, bytes: 1}
			var refused *vram.NotLiveError
			require.ErrorAs(t, b.Use(7), &refused)
			for word := uint64(1); word < 4; word++ {
				assert.Empty(t, s.streams(nil, word), "a later block waits for no stream of an earlier one")
			}
		})
	}
}

// Late uses of blocks of earlier lives change no list of a later one: each life has the streams that it announced.
func TestLateUsesOfEarlierBlocks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		stream := rapid.Map(rapid.Uint64Range(0, 3), func(n uint64) cudadrv.Stream { return cudadrv.Stream(n) })
		s := &slot{}
		for word := range uint64(4) {
			want := map[cudadrv.Stream]bool{}
			for range rapid.IntRange(0, 5).Draw(t, "uses") {
				if one := stream.Draw(t, "stream"); word > 0 && rapid.Bool().Draw(t, "late") {
					s.note(one, rapid.Uint64Range(0, word-1).Draw(t, "word"))
				} else {
					s.note(one, word)
					want[one] = true
				}
			}
			all := s.streams(nil, word)
			got := map[cudadrv.Stream]bool{}
			for _, one := range all {
				got[one] = true
			}
			assert.Equal(t, want, got)
			assert.Len(t, all, len(want), "each once")
			assert.True(t, s.noted() || len(all) == 0)
			if len(all) > 0 || rapid.Bool().Draw(t, "forget") {
				s.forget()
				assert.False(t, s.noted())
			}
		}
	})
}

// A use that comes too late names a stream which may be gone. The next holder of the memory frees it all the same.
func TestALateUseOfAStreamThatEnds(t *testing.T) {
	for name, next := range map[string]bool{"announced by the next holder": true, "not announced": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			p := r.cache(1 << 20)
			s, other := r.stream(), r.stream()
			late := alloc(t, p, 4096, 0)
			own := late.slot.where
			late.slot.where = endingPlace{func() {
				late.slot.where = own
				free(t, late)
			}}
			require.ErrorIs(t, late.Use(s), ErrNotLive)
			require.NoError(t, r.device.StreamDestroy(s))

			for range 3 {
				b := alloc(t, p, 4096, 0)
				require.Same(t, late.slot, b.slot)
				if next {
					require.NoError(t, b.Use(other))
				}
				free(t, b)
				p.look()
			}
			r.end(p)
		})
	}
}

// A use may come so late that the memory is released: there is no source to ask.
func TestAUseOfReleasedMemory(t *testing.T) {
	p := must[*Pool](t)(Pooled(must[*StreamMemory](t)(OfStream(vramStream(t))), PoolConfig{}))
	b := alloc(t, p, 4096, 0)
	own := b.slot.where
	free(t, b)
	_, err := p.Trim(t.Context())
	require.NoError(t, err)
	_, err = own.usable(7)
	require.ErrorIs(t, err, ErrNotLive)
	require.NoError(t, p.Close(t.Context()))
}
