package futures

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The heap allocations of the package comment's table. A pending source is one of them: the
// promise.
func TestTheCostTableCountsItsAllocations(t *testing.T) {
	ctx := context.Background()
	const partCount = 64
	promises := make([]*Promise[block], partCount)
	parts := make([]Future[block], partCount)
	pending := func() {
		for i := range promises {
			promises[i] = new(Promise[block])
			parts[i] = promises[i].Future()
		}
	}
	complete := make([]Future[block], partCount)
	for i := range complete {
		complete[i] = Done(block{1, 2, 3})
	}
	for name, c := range map[string]struct {
		allocs float64
		do     func()
	}{
		"done of a value":   {0, func() { <-Done(1).Done() }},
		"poll of a promise": {1, func() { _, _, _ = new(Promise[block]).Future().Poll() }},
		"cancel":            {1, func() { new(Promise[block]).Future().Cancel() }},
		"all, complete":     {1, func() { All(nil, complete...) }},
		"first, complete":   {0, func() { First(nil, complete...) }},
		"all, pending":      {partCount + 3, func() { pending(); f := All(nil, parts...); finish(promises); _, _ = f.Await(ctx) }},
		"first, pending":    {partCount + 2, func() { pending(); f := First(nil, parts...); finish(promises); _, _ = f.Await(ctx) }},
		"then, pending":     {2, func() { p := new(Promise[block]); Then(p.Future(), length); p.Complete(block{}, errTest) }},
		"await, already sealed": {1, func() {
			p := new(Promise[block])
			p.Complete(block{}, nil)
			_, _ = p.Future().Await(ctx)
		}},
	} {
		assert.InDelta(t, c.allocs, testing.AllocsPerRun(100, c.do), 0, name)
	}
}

func finish(promises []*Promise[block]) {
	for _, p := range promises {
		p.Complete(block{1, 2, 3}, nil)
	}
}

func length(b block) (uint64, error) { return b.bytes, nil }
