package vramtest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/vramtest"
)

// Reports name streams by the number that vram gives them, as its errors and statistics do, not by a handle of the driver.
func TestReportsNumberStreams(t *testing.T) {
	log := &sheet{}
	dev := vramtest.Open(log, vramtest.Expected())
	one, two := dev.Stream(), dev.Stream()
	x := alloc(t, one, 1<<20)
	dev.Launch(one, time.Millisecond, vramtest.Writes(x))
	dev.Launch(two, time.Millisecond, vramtest.Writes(x))
	require.Len(t, dev.Hazards(), 1)
	report := dev.Hazards()[0]
	assert.Equal(t, []uint32{two.ID(), one.ID(), one.ID()}, []uint32{report.Now.StreamID, report.Before.StreamID, report.Buffer.StreamID})
	text := report.String()
	assert.Contains(t, text, fmt.Sprintf("now: kernel writes, on stream %d, at", two.ID()))
	assert.Contains(t, text, fmt.Sprintf("not ordered after: kernel writes, on stream %d, at", one.ID()))
	assert.Contains(t, text, fmt.Sprintf("of stream %d, allocated at", one.ID()))
	assert.NotContains(t, text, "stream 0x")
	assert.Contains(t, report.Now.String(), fmt.Sprintf("on stream %d at", two.ID()))
	log.end()
}
