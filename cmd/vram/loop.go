package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
)

// roundPause is between two rounds of a trace, so that the end of one is seen.
const roundPause = 500 * time.Millisecond

// lagLimit is the largest lag that a loop catches up. After a longer one it continues from the current time.
const lagLimit = time.Second

// playTrace plays a trace over and over at its recorded times divided by speed. It skips an allocation that finds no memory;
// the figures show it.
func playTrace(ctx context.Context, dev *vram.Device, tr *trace.Trace, speed float64) error {
	var streams []*vram.Stream
	for range max(1, tr.Info.StreamCount) {
		s, err := dev.NewStream() //nolint:contextcheck // a stream outlives the call
		if err != nil {
			return err
		}
		streams = append(streams, s)
	}
	live := map[uint32]vram.Buffer{}
	for {
		if err := playRound(ctx, tr, speed, streams, live); err != nil {
			return err
		}
		for _, b := range live {
			if err := b.Free(); err != nil {
				return fmt.Errorf("free: %w", err)
			}
		}
		clear(live)
		if !sleep(ctx, roundPause) {
			return nil
		}
	}
}

// playRound plays a trace once.
func playRound(ctx context.Context, tr *trace.Trace, speed float64, streams []*vram.Stream, live map[uint32]vram.Buffer) error {
	begin := time.Now()
	for i := range tr.Events {
		due := begin.Add(time.Duration(float64(tr.Micros[i]) / speed * float64(time.Microsecond)))
		wait := time.Until(due)
		if wait < -lagLimit {
			begin = begin.Add(-wait)
		}
		if wait > time.Millisecond && !sleep(ctx, wait) || ctx.Err() != nil {
			return nil //nolint:nilerr // that ends the loop
		}
		if err := playEvent(&tr.Events[i], streams, live); err != nil {
			return fmt.Errorf("event %d of %s: %w", i, tr.Name, err)
		}
	}
	return nil
}

func playEvent(e *trace.Event, streams []*vram.Stream, live map[uint32]vram.Buffer) error {
	s := streams[e.Stream]
	if e.Op == trace.Alloc {
		b, err := s.Alloc(e.Bytes)
		if err == nil {
			live[e.ID] = b
		}
		if errors.Is(err, vram.ErrOutOfMemory) {
			return nil // it is left out
		}
		return err
	}
	b, ok := live[e.ID]
	if !ok {
		return nil
	}
	delete(live, e.ID)
	if err := b.RecordStream(s); err != nil { // of another stream's: its work may use the buffer
		return err
	}
	return b.Free()
}
