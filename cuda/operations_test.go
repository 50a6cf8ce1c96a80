package cuda_test

import (
	"testing"

	"github.com/go-vram/vram/internal/eachcall"
)

func TestEachOperationIsTried(t *testing.T) {
	const streams = "package streams has it, and package acceptance tries it"
	eachcall.Operations(t, "../api/vram.txt", "cuda", "eachcall_test.go", map[string]string{
		"Context.Lazily":       "it makes the calls of its caller",
		"Context.WithContext":  "the simulator has no contexts to make current",
		"Queue.Do":             "it makes the calls of its caller",
		"Queue.Err":            "it makes no calls",
		"Stream.AllocBatchFor": streams,
	})
}
