package cudadrv_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/jsonform/jsonformtest"
)

// Every error of the package has the JSON conventions of the statistics.
func TestJSON(t *testing.T) {
	all := []any{&cudadrv.CallError{}, &cudadrv.NotOpenError{}}
	jsonformtest.Check(t, all...)
	jsonformtest.All(t, []string{"."}, []string{"Error"}, all)
}

// A failed call has its result by CUDA's name.
func TestTheJSONOfACall(t *testing.T) {
	text, err := json.Marshal(&cudadrv.CallError{Func: "cuMemCreate", Result: cudadrv.OutOfMemory, Place: "a.go:1"})
	require.NoError(t, err)
	assert.JSONEq(t, `{"func":"cuMemCreate","result":"CUDA_ERROR_OUT_OF_MEMORY","name":"","detail":"","place":"a.go:1"}`, string(text))
}
