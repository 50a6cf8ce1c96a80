//go:build linux && (amd64 || arm64)

package bytecheck

import "testing"

func TestSteady(t *testing.T) {
	t.Run("threaded", func(t *testing.T) { steadily(t, onFake(t, threaded), smallScale()) })
	t.Run("queued", func(t *testing.T) { steadily(t, onFake(t, queued), smallScale()) })
}

func TestRecycled(t *testing.T) { recycled(t, onFake(t, threaded), smallScale()) }

func TestHoles(t *testing.T) { holes(t, onFake(t, threaded), smallScale()) }

func TestMemoryReturns(t *testing.T) {
	for _, fill := range []bool{false, true} {
		of := smallScale()
		of.fill = fill
		returned(t, onFake(t, threaded), of)
	}
}
