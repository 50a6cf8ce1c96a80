package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/bench"
	"github.com/go-vram/vram/lab/compare"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/monitor/page"
)

// The error counts deadlocks and missing memory separately.
func TestFailuresTellDeadlocksFromWantOfMemory(t *testing.T) {
	text := func(failed, deadlocked int) string {
		err := failures([]replay.Result{{Trace: "a", Rounds: []replay.Round{{}, {FailedCount: failed, DeadlockedCount: deadlocked}}}})
		if err == nil {
			return ""
		}
		return err.Error()
	}
	assert.Empty(t, text(0, 0))
	assert.Equal(t, "a: 2 allocations found no memory", text(2, 0))
	assert.Equal(t, "a: 1 allocation refused as deadlocks: every stream with memory waited for more", text(1, 1))
	assert.Equal(t, "a: 2 allocations refused as deadlocks: every stream with memory waited for more\na: 1 allocation found no memory", text(3, 2))
}

// A ratio to 0 is empty, also 0 to 0.
func TestQuotient(t *testing.T) {
	assert.Empty(t, quotient(0, 0))
	assert.Empty(t, quotient(0, 3))
	assert.Equal(t, "1", quotient(2, 2))
	assert.Equal(t, "1.500", quotient(2, 3))
	assert.Equal(t, "0.000", quotient(2, 0))
}

// The command marks times of the simulated device's calls wherever it prints times.
func TestModelledTimesAreTold(t *testing.T) {
	n := 1.5
	for _, modelled := range []bool{false, true} {
		var out bytes.Buffer
		p := &program{stdout: &out, stderr: &out}
		printed := func(err error) string {
			require.NoError(t, err)
			text := out.String()
			out.Reset()
			return strings.Join(strings.Fields(text), " ")
		}
		driver := "dynamic"
		if modelled {
			driver = "sim"
		}
		result := replay.Result{Trace: "a", DriverModelled: modelled, Rounds: make([]replay.Round, 1), PeakLiveBytes: 1}
		for _, text := range []string{
			printed((&replayCmd{Rounds: 1}).print(p, 0, []replay.Result{result})),
			printed(printComparison(p, &compare.Result{Trace: "a", DriverModelled: modelled})),
			printed(printRows(p, []bench.Row{{Scenario: "warmup", Impl: "vram", DriverNsPerOp: &n}, {Scenario: "calibration", Impl: "atomics", NsPerOp: 1}}, modelled)),
		} {
			if modelled {
				assert.Contains(t, text, "modelled driver ns")
				assert.Contains(t, text, "Modelled times are what the driver calls take on an H200")
			} else {
				assert.NotContains(t, text, "odelled")
			}
		}
		var fact string
		for _, f := range (&frame{device: &page.Device{Driver: driver, DriverCalls: 7, DriverSeconds: 1}}).facts() {
			if f.name == "driver" {
				fact = f.text
			}
		}
		if modelled {
			assert.Equal(t, "7 calls of the allocator, modelled 1s", fact)
		} else {
			assert.Equal(t, "7 calls of the allocator, 1s", fact)
		}
	}
}
