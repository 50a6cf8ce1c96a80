package vram

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

// onWarning is a handler that calls a function for each line.
type onWarning struct {
	slog.Handler
	call func()
}

func (h onWarning) Enabled(context.Context, slog.Level) bool { return true }

func (h onWarning) Handle(context.Context, slog.Record) error {
	h.call()
	return nil
}

// A function that is posted at the very end, when all earlier ones have been called, is called,
// too.
func TestAnEventThatIsPostedAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n *notices
		called := 0
		late := onWarning{slog.DiscardHandler, func() { n.post(func() { called++ }) }}
		n = newNotices(slog.New(late), nil)
		n.post(func() { n.dropped.Add(1) }) // of which the logger hears when nothing else is due
		synctest.Wait()
		assert.Equal(t, 1, called)
		n.post(func() { called++ })
		synctest.Wait()
		assert.Equal(t, 2, called)
		assert.Zero(t, n.due.Load())
	})
}
