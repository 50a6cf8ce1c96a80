//go:build !gpu

package attention_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/vramtest"
)

// order matches the instructions that order copies and accesses to shared memory.
var order = regexp.MustCompile(`(?m)^(cp\.async\.wait_group \d+|bar\.sync 0|bar\.warp\.sync -1);$`)

// Each wait for copies and each barrier of the kernels is needed: without it the interpreter reports a fault.
func TestEveryWaitAndBarrierIsNeeded(t *testing.T) {
	problem := func(queries, keys int64) attention.Problem {
		return attention.Problem{Batch: 1, Heads: 1, Queries: queries, Keys: keys, Dim: 64, Type: gemm.BFloat16}
	}
	long := problem(65, 130)
	long.Dim = 128
	for name, problems := range map[string][]attention.Problem{
		"forward_bf16_64": {problem(65, 130), problem(65, 0)}, "forward_bf16_128": {long}, "decoding_bf16_64": {problem(1, 130)},
		"queries_bf16_64": {problem(65, 130), problem(65, 0)}, "keys_bf16_64": {problem(65, 65), problem(0, 65)},
	} {
		everyOneIsNeeded(t, name, order, nil, func(string) string { return "" }, func(t *testing.T, edit func(of, text string) string) error {
			t.Helper()
			return firstFault(t, false, true, true, edit, problems)
		})
	}
}

// groupOrder matches the instructions that order copies, products and accesses of warpgroups. Waits for
// turns are not needed for results.
var groupOrder = regexp.MustCompile(`(?m)^(mbarrier\.try_wait\S+ p,.*|wgmma\.wait_group\S+ \d+|wgmma\.fence\S+|bar\.sync 0);$`)

// So are those of warpgroups: a missing wait for bytes or products, a slot or queries that are filled again while somebody reads them.
func TestEveryWaitOfWarpgroupsIsNeeded(t *testing.T) {
	always := func(removed string) string {
		if strings.HasPrefix(removed, "mbarrier") {
			return "setp.eq.u32 p, 0, 0;" // the phase has ended
		}
		return ""
	}
	problem := func(queries, keys int64) attention.Problem {
		return attention.Problem{Batch: 1, Heads: 1, Queries: queries, Keys: keys, Dim: 64, Type: gemm.BFloat16}
	}
	for name, x := range map[string]struct {
		problems []attention.Problem
		spared   []int // waits that the results do not need
	}{
		"group_forward_bf16_64": {[]attention.Problem{problem(130, 70), problem(65, 900)}, nil},
		"group_queries_bf16_64": {[]attention.Problem{problem(130, 70), problem(65, 600)}, nil},
		"group_keys_bf16_64":    {[]attention.Problem{problem(70, 130), problem(270, 65)}, []int{4}}, // for the sake of ptxas
	} {
		everyOneIsNeeded(t, name, groupOrder, x.spared, always, func(t *testing.T, edit func(of, text string) string) error {
			t.Helper()
			forward := name == "group_forward_bf16_64"
			return firstFault(t, true, forward, !forward, edit, x.problems)
		})
	}
}

// everyOneIsNeeded requires a fault of a run without each of the instructions of a text that match, but for those spared, by
// number, and none with all. The short form tries one of six: nightly tries all.
func everyOneIsNeeded(t *testing.T, name string, order *regexp.Regexp, spared []int, instead func(string) string,
	run func(t *testing.T, edit func(of, text string) string) error,
) {
	t.Helper()
	found := 0
	for without := 0; ; without++ {
		if slices.Contains(spared, without) || testing.Short() && without%6 != 1 {
			continue
		}
		removed := ""
		edit := func(of, text string) string {
			places := order.FindAllStringIndex(text, -1)
			if of != name || without >= len(places) {
				return text
			}
			at := places[without]
			removed = text[at[0]:at[1]]
			return text[:at[0]] + instead(removed) + text[at[1]:]
		}
		var fault error
		t.Run(fmt.Sprint(name, without), func(t *testing.T) { fault = run(t, edit) }) // whose devices are closed then
		if removed == "" {
			require.NoError(t, fault, "%s as it is", name)
			break
		}
		found++
		f, ok := errors.AsType[*interp.Fault](fault)
		if assert.True(t, ok, "%s without number %d, %s: %v", name, without, removed, fault) {
			kinds := []interp.Kind{interp.AsyncInFlight, interp.SharedRace, interp.WgmmaInFlight, interp.WgmmaFence, interp.DivergentBarrier}
			assert.Contains(t, kinds, f.Kind, fmt.Sprint(f))
		}
	}
	assert.Positive(t, found, name)
}

// firstFault runs passes of problems with edited texts, by warpgroups alone or by other kernels alone.
func firstFault(t *testing.T, groups, forward, backward bool, edit func(name, text string) string, problems []attention.Problem) error {
	t.Helper()
	for _, p := range problems {
		dev := vramtest.Open(t, vramtest.Kernels(), vramtest.Expected())
		r := newRigOn(quiet{t}, dev.Device)
		attention.EditTexts(r.a, edit)
		attention.UseGroups(r.a, groups)
		attention.SetMultiprocessors(r.a, 1)
		b := r.backward(r.forward(p, false), false)
		var err error
		if forward { // else the log-sum-exps are NaN
			err = r.a.Forward(r.c, b.Problem, b.Operands)
		}
		if err == nil && backward {
			err = r.a.Backward(r.c, b.Problem, b.Operands, b.Gradients)
		}
		_ = r.c.Synchronize(t.Context()) // the fault is asked for below
		if faults := dev.Faults(); len(faults) > 0 {
			return faults[0]
		}
		require.NoError(t, err)
	}
	return nil
}

// quiet is a test that reports nothing: after a fault the device's context is lost, and so are its buffers.
type quiet struct{ testing.TB }

func (quiet) Errorf(string, ...any) {}

// Offsets, lengths and pages that are out of range end the launch by a trap, before any access with them.
func TestNumbersOutOfRange(t *testing.T) {
	for name, change := range map[string]func(r *rig, b *backward){
		"an offset that is less than the one before": func(r *rig, b *backward) { b.QueryOffsets = r.numbers(0, 5, 4) },
		"an offset above all rows":                   func(r *rig, b *backward) { b.QueryOffsets = r.numbers(0, 2, 11) },
		"a sequence longer than the bound":           func(r *rig, b *backward) { b.QueryOffsets = r.numbers(0, 6, 10) },
		"a negative offset":                          func(r *rig, b *backward) { b.QueryOffsets = r.numbers(-1, 2, 3) },
		"a length above the keys":                    func(r *rig, b *backward) { b.KeyLengths = r.numbers(1, 5) },
		"a page out of range": func(r *rig, b *backward) {
			b.PageRows, b.Pages, b.PagesPerSequence = 4, 2, 1
			b.KeyLengths, b.Table = r.numbers(4, 4), r.numbers(1, 2)
		},
	} {
		dev := vramtest.Open(t, vramtest.Kernels(), vramtest.Expected())
		r := newRigOn(quiet{t}, dev.Device)
		p := attention.Problem{Batch: 2, Heads: 1, Queries: 5, Keys: 4, Dim: 64, Type: gemm.BFloat16, AllQueries: 10}
		b := r.backward(r.forward(p, false), false)
		change(r, b)
		require.NoError(t, r.a.Forward(r.c, b.Problem, b.Operands), name)
		_ = r.c.Synchronize(t.Context()) // the fault is asked for below
		if assert.NotEmpty(t, dev.Faults(), name) {
			assert.ErrorIs(t, dev.Faults()[0], interp.Trap, name)
		}
	}
}
