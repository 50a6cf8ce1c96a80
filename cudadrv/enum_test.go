package cudadrv_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

func TestEnumsAsText(t *testing.T) {
	for want, e := range map[string]any{
		"global": cudadrv.CaptureGlobal, "relaxed": cudadrv.CaptureRelaxed, "CaptureMode(9)": cudadrv.CaptureMode(9),
		"invalidated": cudadrv.CaptureInvalidated, "CaptureStatus(9)": cudadrv.CaptureStatus(9),
		"event record": cudadrv.EventRecordNode, "NodeKind(9)": cudadrv.NodeKind(9), "none": cudadrv.Capability(0),
		"9.0": cudadrv.ComputeCapability{Major: 9}, cudadrv.OutOfMemory.String(): cudadrv.OutOfMemory,
	} {
		text, err := json.Marshal(e)
		require.NoError(t, err)
		assert.Equal(t, `"`+want+`"`, string(text))
	}
}
