package site_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/together"
)

// Functions of a file that has called Generated are left out where they are the innermost, inlined or not, with helpers and without.
// Other files of the package stay.
func TestGeneratedFilesAreLeftOut(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(load)
	}
	all.Wait()
	const test = here1 + "TestGeneratedFilesAreLeftOut"
	for _, h := range []*site.Helpers{nil, site.NewHelpers([]string{"example.com/other"})} {
		assert.Equal(t, test, functions(inlinedMethod(h))[0])
		assert.Equal(t, test+".func1", functions(method(func() site.Stack { return h.Here(0) }))[0], "the method is the caller")
		s := with(func() site.Stack { return method(func() site.Stack { return inlinedMethod(h) }) })
		assert.Equal(t, []string{test + ".func2.1", here1 + "method", test + ".func2", here1 + "with", test}, functions(s)[:5])
	}
}

// Files that are marked at the same time are all marked.
func TestManyGoroutinesMarkFiles(t *testing.T) {
	for range 600 {
		restore := site.ForgetMarks()
		const goroutines, each = 4, 8
		together.Run(goroutines, func(g int) {
			for i := range each {
				site.Mark(strconv.Itoa(g*each + i))
			}
		})
		for i := range goroutines * each {
			require.True(t, site.Marked(strconv.Itoa(i)), i)
		}
		require.False(t, site.Marked(strconv.Itoa(goroutines*each)))
		restore()
	}
}
