package streams

import (
	"math"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
)

// Looked implements pool.Client. A stream in whose turn somebody is has nothing to say: it is at work, and nobody waits
// for it.
func (s *Stream) Looked() {
	live := int64(math.MaxInt64)
	if s.ref.TryEnter() {
		var left actors.Effects
		s.readLive(&live, &left)
		s.ref.Perform(left)
	}
	s.pool.Return(poolcore.Return{Client: s.id, LiveBytes: live, Report: true}, fence.Mark{})
}

func (s *Stream) readLive(live *int64, left *actors.Effects) {
	defer s.ref.Exit(left, nil)
	s.core.Drain()
	*live = s.core.LiveBytes()
}
