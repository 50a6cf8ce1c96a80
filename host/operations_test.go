package host

import (
	"testing"

	"github.com/go-vram/vram/internal/eachcall"
)

func TestEachOperationIsTried(t *testing.T) {
	eachcall.Operations(t, "../api/vram.txt", "host", "eachcall_test.go", map[string]string{
		"Block.Reown":   "it makes no driver call",
		"NewPageLocked": "it is Pooled around PageLockedSource",
		"OfStream":      "it makes no driver call, and its blocks are buffers, which package cuda tries",
		"ParseName":     "it makes no driver call",
	})
}
