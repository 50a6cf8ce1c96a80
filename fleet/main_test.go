package fleet_test

import (
	"os"
	"testing"

	"github.com/go-vram/vram/internal/recoveredtest"
)

// TestMain runs the tests, or in a child process of one the part that the variable names.
func TestMain(m *testing.M) {
	if part := os.Getenv("VRAM_FLEET_PART"); part != "" {
		child(part, os.Getenv("VRAM_FLEET_FOLDER"))
		return
	}
	recoveredtest.Main(m)
}
