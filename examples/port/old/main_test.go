//go:build gorgonia && cgo && linux && (amd64 || arm64)

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// The program makes its calls in order, also on the fake library, which computes nothing.
func TestOld(t *testing.T) {
	var out bytes.Buffer
	run(&out)
	assert.Equal(t, 4, strings.Count(out.String(), "largest change"), out.String())
}
