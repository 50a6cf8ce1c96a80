package futures

import (
	"testing"

	"github.com/go-vram/vram/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
