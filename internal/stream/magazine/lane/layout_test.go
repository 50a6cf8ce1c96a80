package lane

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/stream/magazine"
)

// A leased magazine has its slots where every magazine has them, and its books between.
func TestLeasedMagazinesHaveTheLayoutOfAll(t *testing.T) {
	assert.EqualValues(t, magazine.SlotsOffset, unsafe.Offsetof(Magazine{}.slots))
	assert.EqualValues(t, magazine.BooksBytes, unsafe.Sizeof(books{}))
	assert.EqualValues(t, unsafe.Sizeof(magazine.Span{}), unsafe.Sizeof(Magazine{}))
	assert.Zero(t, unsafe.Offsetof(Lane{}.Lessee))
}
