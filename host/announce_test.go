package host

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
)

// endingPlace lets another goroutine free a block between the two looks of a Use.
type endingPlace struct{ free func() }

func (p endingPlace) usable(cudadrv.Stream) (keep bool, err error) {
	p.free()
	return true, nil
}

// A use that is noted after a free has looked for uses is refused, also where the memory is in use again: nothing would wait for it.
func TestAUseThatAFreeDidNotSeeIsRefused(t *testing.T) {
	for name, others := range map[string]func(s *slot){
		"freed":            func(s *slot) { assert.NoError(t, s.end(0)) },
		"freed and reused": func(s *slot) { assert.NoError(t, s.end(0)); assert.NoError(t, s.end(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &slot{}
			s.where = endingPlace{func() {
				others(s)
				assert.False(t, s.used(), "the free has nothing to wait for")
			}}
			b := Block{slot: s, bytes: 1}
			var refused *vram.NotLiveError
			require.ErrorAs(t, b.Use(7), &refused)
			assert.Equal(t, []cudadrv.Stream{7}, s.streams(), "the next holder waits for one stream more")
		})
	}
}
