package fault_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

func TestParse(t *testing.T) {
	for script, want := range map[string][]fault.Rule{
		"": nil,
		"cuMemCreate:5:2=CUDA_ERROR_OUT_OF_MEMORY": {
			{Func: "cuMemCreate", First: 5, Count: 2, Result: cudadrv.OutOfMemory},
		},
		"cuMemMap=CUDA_ERROR_MAP_FAILED": {{Func: "cuMemMap", Result: cudadrv.MapFailed}},
		"cuMemMap:3:*=CUDA_ERROR_MAP_FAILED, *~0.25@9=CUDA_ERROR_UNKNOWN\n": {
			{Func: "cuMemMap", First: 3, Count: fault.Forever, Result: cudadrv.MapFailed},
			{Func: "*", Probability: 0.25, Seed: 9, Result: cudadrv.Unknown},
		},
		"cuMemAlloc:2~0.5=CUDA_ERROR_UNKNOWN": {{Func: "cuMemAlloc", First: 2, Probability: 0.5, Result: cudadrv.Unknown}},
	} {
		rules, err := fault.Parse(script)
		require.NoError(t, err, script)
		assert.Equal(t, want, rules, script)
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for script, says := range map[string]string{
		"cuMemCreate":                              "has no =RESULT",
		"cuMemCreate=OUT_OF_MEMORY":                `no result "OUT_OF_MEMORY"`,
		"cuMemCreate=CUDA_SUCCESS":                 "no result to fail with",
		"cuMemCreat=CUDA_ERROR_UNKNOWN":            `no function "cuMemCreat"`,
		"=CUDA_ERROR_UNKNOWN":                      "want FUNCTION",
		"cuMemCreate:1:2:3=CUDA_ERROR_UNKNOWN":     "want FUNCTION",
		"cuMemCreate:0=CUDA_ERROR_UNKNOWN":         `"0" is no number from 1 on`,
		"cuMemCreate:-1=CUDA_ERROR_UNKNOWN":        `"-1" is no number`,
		"cuMemCreate:*=CUDA_ERROR_UNKNOWN":         `"*" is no number`,
		"cuMemCreate:1:x=CUDA_ERROR_UNKNOWN":       `"x" is no number`,
		"cuMemCreate~0=CUDA_ERROR_UNKNOWN":         "no probability above 0",
		"cuMemCreate~1.5=CUDA_ERROR_UNKNOWN":       "not between 0 and 1",
		"cuMemCreate~NaN=CUDA_ERROR_UNKNOWN":       "not between 0 and 1",
		"cuMemCreate~0.5@x=CUDA_ERROR_UNKNOWN":     `"x" is no seed`,
		"cuMemMap=CUDA_ERROR_UNKNOWN cuMemMap:1=2": `"cuMemMap:1=2"`,
	} {
		rules, err := fault.Parse(script)
		require.ErrorIs(t, err, fault.ErrBadRule, script)
		assert.ErrorContains(t, err, says, script)
		assert.Nil(t, rules)
	}
}

func TestBadRulesAreNotAdded(t *testing.T) {
	drv := fault.Wrap(sim.New(sim.Config{}), fault.WithScript("cuMemCreat=CUDA_ERROR_UNKNOWN"))
	_, err := drv.DeviceCount()
	require.ErrorIs(t, err, fault.ErrBadRule)
	_, err = drv.Open(0)
	require.ErrorIs(t, err, fault.ErrBadRule)

	drv, dev := open(t)
	require.ErrorIs(t, drv.Add(
		fault.Rule{Func: "cuEventCreate", Result: cudadrv.Unknown},
		fault.Rule{Func: "cuEventCreate", Probability: math.NaN(), Result: cudadrv.Unknown},
	), fault.ErrBadRule)
	require.ErrorIs(t, drv.Add(fault.Rule{Func: "cuEventCreate"}), fault.ErrBadRule)
	_, err = dev.EventCreate()
	require.NoError(t, err)
}

func TestRulesPrintAsParseReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := fault.Rule{
			Func:   rapid.SampledFrom([]string{"*", "cuMemCreate", "cuEventQuery"}).Draw(t, "func"),
			First:  rapid.Uint64().Draw(t, "first"),
			Result: rapid.SampledFrom([]cudadrv.Result{cudadrv.Unknown, cudadrv.OutOfMemory}).Draw(t, "result"),
		}
		if rule.First > 0 {
			rule.Count = rapid.Uint64().Draw(t, "count")
		}
		if rapid.Bool().Draw(t, "random") {
			rule.Probability = rapid.Float64Range(1e-9, 1).Draw(t, "probability")
			rule.Seed = rapid.Uint64().Draw(t, "seed")
		}
		back, err := fault.Parse(rule.String())
		require.NoError(t, err)
		assert.Equal(t, []fault.Rule{rule}, back)
	})
}

func FuzzParse(f *testing.F) {
	f.Add("cuMemCreate:5:2=CUDA_ERROR_OUT_OF_MEMORY")
	f.Add("cuMemMap:3:*~0.5@7=CUDA_ERROR_UNKNOWN, *=CUDA_ERROR_LAUNCH_FAILED")
	f.Fuzz(func(t *testing.T, script string) {
		rules, err := fault.Parse(script)
		if err != nil {
			require.ErrorIs(t, err, fault.ErrBadRule)
			return
		}
		for _, r := range rules {
			back, err := fault.Parse(r.String())
			require.NoError(t, err, "%v", r)
			assert.Equal(t, []fault.Rule{r}, back)
		}
	})
}
