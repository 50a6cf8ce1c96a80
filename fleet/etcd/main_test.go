//go:build linux

package etcd

import (
	"os"
	"testing"

	"github.com/go-vram/vram/internal/recoveredtest"
)

// TestMain runs the tests, or a server of theirs in a process of its own.
func TestMain(m *testing.M) {
	if config := os.Getenv(serverVariable); config != "" {
		serve(config)
		return
	}
	recoveredtest.Main(m)
}
