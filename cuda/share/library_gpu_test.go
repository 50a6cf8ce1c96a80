//go:build linux && (amd64 || arm64) && gpu

package share

import "testing"

// libraryUnderTest is the driver of this machine.
func libraryUnderTest(t *testing.T) string {
	t.Helper()
	return ""
}

func removeLibrary() {}
