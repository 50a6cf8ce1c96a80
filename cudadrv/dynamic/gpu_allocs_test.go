//go:build gpu && linux && (amd64 || arm64) && !race

package dynamic_test

import "testing"

func TestHardwareCallsAllocateNothing(t *testing.T) { allocateNothing(t, openGPU(t)) }
