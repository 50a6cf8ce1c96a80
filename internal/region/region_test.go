package region_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/region"
)

// The function that was set last begins and ends each region; nil ends that.
func TestBegin(t *testing.T) {
	t.Cleanup(func() { region.Set(nil) })
	region.Begin(region.Wait)()
	var seen []string
	region.Set(func(name string) func() {
		seen = append(seen, "begin "+name)
		return func() { seen = append(seen, "end "+name) }
	})
	end := region.Begin(region.Growth)
	region.Set(nil)
	region.Begin(region.Wait)()
	end()
	assert.Equal(t, []string{"begin vram growth", "end vram growth"}, seen)
}
