package host

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Texts name the facts.
func TestTexts(t *testing.T) {
	t.Parallel()
	a := NewAligned()
	b := alloc(t, a, 2048, 0)
	assert.Equal(t, "block of 2 KiB of pageable memory", b.String())
	free(t, b)
	assert.Equal(t, "block of 2 KiB, freed", b.String())
	assert.Equal(t, "block of 0 B", Block{}.String())
	assert.Equal(t, NoMemory, Block{}.Kind())
	_, ok := Block{}.Buffer()
	assert.False(t, ok)
	for text, err := range map[string]error{
		"host: requested -1 bytes, want 0 to 1 TiB":                                &SizeError{-1, maxBytes},
		"host: alignment of 3 bytes, want 0 or a power of two up to 2 MiB":         &AlignError{3, MaxAlign},
		"host: 2 blocks of page-locked memory not freed, 8 KiB":                    &LeakError{PageLocked, 2, 8192},
		"host: no 1 KiB of page-locked memory: no":                                 &MemoryError{1024, errors.New("no")},
		"host: use of device memory on stream 0x7: why":                            &UseError{7, Device, "why"},
		"host: stream 0x7 is being captured: a free cannot wait for its work: no":  &CaptureError{7, errors.New("no")},
		"host: X has no page-locked memory (capability pinned host memory)":        &CapabilityError{"X", 2},
		`host: allocator "gpu": unknown device, want cpu, cuda:N or cuda:N/pinned`: &NameError{"gpu", "unknown device"},
		"host: KeepBytes is -1, want 0 or more":                                    &ConfigError{"KeepBytes", -1, "0 or more"},
		"host: the allocator of pageable memory: vram: closed":                     closed(Pageable),
	} {
		assert.Equal(t, text, err.Error())
	}
	kinds := []string{"no memory", "pageable", "page-locked", "device", "unknown kind"}
	for i, text := range kinds {
		assert.Equal(t, text, Kind(i).String())
	}
}
