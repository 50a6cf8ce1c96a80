package kernel

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/futures"
)

// here runs functions that a completion starts on the goroutine that completes.
type here struct{}

func (here) Go(_ string, f func()) { f() }

func (here) Wait(closed ...<-chan struct{}) { <-closed[0] }

// A failure is not remembered: a call that begins once a caller has it loads the module again, and gets that answer. The part
// that All cancels sees the failure first.
func TestAFailureIsForgottenBeforeItIsSeen(t *testing.T) {
	broken := errors.New("the text has a mistake")
	for _, failure := range []error{broken, ErrNotPrepared} {
		c := &Compiler{modules: map[string]*futures.Promise[*code]{}, threads: 1}
		c.idle = sync.NewCond(&c.mu)
		good := &code{}
		var again futures.Future[*code]
		var known bool
		seen := make(chan struct{})
		first := futures.NewPromise[*code](func() {
			defer close(seen)
			again, known = c.once("text", func() (*code, error) { return good, nil })
		})
		loading := make(chan struct{})
		loaded, _ := c.once("text", func() (*code, error) {
			<-loading
			return nil, failure
		})
		c.mu.Lock()
		c.modules["text"].On(here{})
		c.mu.Unlock()
		both := futures.All(func(*code) {}, loaded, first.Future())
		close(loading)
		<-seen
		_, err := both.Await(t.Context())
		require.ErrorIs(t, err, failure)
		assert.False(t, known)
		got, err := again.Await(t.Context())
		require.NoError(t, err)
		assert.Same(t, good, got)
		kept, known := c.once("text", func() (*code, error) { return nil, broken })
		assert.True(t, known, "a success is remembered")
		got, err = kept.Await(t.Context())
		require.NoError(t, err)
		assert.Same(t, good, got)
		failed := int64(1)
		if errors.Is(failure, ErrNotPrepared) {
			failed = 0
		}
		assert.Equal(t, [3]int64{1, 2, failed}, [3]int64{c.counts.hits.Load(), c.counts.misses.Load(), c.counts.failed.Load()})
	}
}
