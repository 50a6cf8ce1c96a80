package host

import (
	"testing"

	"github.com/go-vram/vram/internal/eachcall"
)

func TestEachOperationIsTried(t *testing.T) {
	eachcall.Operations(t, "../api/vram.txt", "host", "eachcall_test.go", map[string]string{})
}
