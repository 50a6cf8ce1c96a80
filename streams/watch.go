package streams

import (
	"context"
	"errors"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/streams/core"
)

// Reconfigure replaces the settings of the cache, and gives back what is over its new budget, which the pool has then. It waits for the turn
// at hand. Its error is ErrClosed, or why the stream has ended.
func (s *Stream) Reconfigure(ctx context.Context, settings core.Settings) error {
	_, err := s.order(ctx, &order{verb: orderSettings, settings: settings})
	return err
}

// Coalesce merges all that the stream has free, and keeps it: magazines of large blocks end, and so do spans that nobody uses.
// Lanes follow at their next calls. It waits for the turn at hand. Its error is ErrClosed, or why the stream has ended.
func (s *Stream) Coalesce(ctx context.Context) error {
	_, err := s.order(ctx, &order{verb: orderCoalesce})
	return err
}

// Failure says why the stream has ended by itself: its books did not balance, or somebody stopped its actor. Nil
// while it serves and after Close.
func (s *Stream) Failure() error {
	if s == nil {
		return nil
	}
	if cause := s.failure.Load(); cause != nil && !errors.Is(*cause, ErrClosed) {
		return *cause
	}
	return nil
}

// UsedBytes are those of the stream's pages that are in buffers or cached by magazines, if nobody is in its turn. It
// does not wait.
func (s *Stream) UsedBytes() (usedBytes int64, ok bool) {
	if !s.opened() || !s.ref.TryEnter() {
		return 0, false
	}
	var left actors.Effects
	s.readUsed(&usedBytes, &left)
	if left != nil {
		s.ref.Perform(left)
	}
	return usedBytes, true
}

// LastUsedBytes are those that the last tick found. It takes no turn.
func (s *Stream) LastUsedBytes() int64 {
	if s == nil {
		return 0
	}
	return s.usedBytes.Load()
}

func (s *Stream) readUsed(usedBytes *int64, left *actors.Effects) {
	defer s.ref.Exit(left, nil)
	s.core.Drain()
	*usedBytes = s.core.GivenBytes()
}

// audit holds the books against themselves, where that was asked for.
func (s *Stream) audit() {
	if !s.debug {
		return
	}
	if err := s.core.Check(); err != nil {
		panic(err) // ends the turn by an audit, which quarantines
	}
}
