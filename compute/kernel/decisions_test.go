package kernel

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
)

// named is a kernel's name.
type named string

func (n named) String() string { return string(n) }

// A driver refuses a text by five results. All others are about something else than the text, and stay as they are.
func TestResultsThatRefuseAText(t *testing.T) {
	about := map[cudadrv.Result]bool{
		cudadrv.InvalidValue: true, cudadrv.InvalidImage: true, cudadrv.NoBinaryForGPU: true, cudadrv.InvalidPTX: true, cudadrv.UnsupportedPTXVersion: true,
	}
	for r := range cudadrv.Result(1000) {
		given := fmt.Errorf("load: %w", r)
		got := refusedText(named("k"), "not PTX", given)
		var e *SourceError
		if !about[r] {
			assert.Equal(t, given, got, "%d", r)
			continue
		}
		require.ErrorAs(t, got, &e, "%d", r)
		assert.Equal(t, "not PTX", e.Source)
		assert.Equal(t, "k", e.Kernel)
		assert.Equal(t, given, e.Err)
		assert.Error(t, e.Findings)
		require.ErrorAs(t, refusedText(nil, "not PTX", given), &e)
		assert.Empty(t, e.Kernel)
	}
}

// An output shares no byte with another output, nor with an input but for one of the same elements at the same address.
func TestOutputsThatShareMemory(t *testing.T) {
	const in, same, out, second = 0, 1, 2, 3
	r := ready{operands: []location{in: {bytes: 64}, same: {bytes: 32}, out: {bytes: 32, out: true, same: 1 << same}, second: {bytes: 16, out: true}}}
	apart := [plan.MaxOperands]uint64{in: 1000, same: 2000, out: 3000, second: 4000}
	for name, row := range map[string]struct {
		move map[int]uint64
		want bool
	}{
		"apart":                                    {nil, false},
		"the same elements":                        {map[int]uint64{out: 2000}, false},
		"the same elements, shifted":               {map[int]uint64{out: 2004}, true},
		"other elements at the same address":       {map[int]uint64{out: 1000}, true},
		"the second at an input":                   {map[int]uint64{second: 2000}, true},
		"the last byte of an input":                {map[int]uint64{out: 1063}, true},
		"after an input":                           {map[int]uint64{out: 1064}, false},
		"the last byte reaches an input":           {map[int]uint64{out: 969}, true},
		"before an input":                          {map[int]uint64{out: 968}, false},
		"two outputs":                              {map[int]uint64{second: 3016}, true},
		"two outputs at one address":               {map[int]uint64{second: 3000}, true},
		"two outputs side by side":                 {map[int]uint64{second: 3032}, false},
		"two inputs":                               {map[int]uint64{same: 1010}, false},
		"the second at the elements of the output": {map[int]uint64{out: 2000, second: 2016}, true},
	} {
		addresses := apart
		for i, address := range row.move {
			addresses[i] = address
		}
		assert.Equal(t, row.want, r.overlap(&addresses), name)
	}
}

// The third run of a kernel finds the launch of an earlier one, also where the output is any of the inputs.
func TestALaunchIsFoundAgain(t *testing.T) {
	const inputCount = 3
	c, _ := compiling(t)
	sum := expr.Input(0, tensor.Float32)
	for i := 1; i < inputCount; i++ {
		sum = sum.Add(expr.Input(i, tensor.Float32))
	}
	k, err := c.Elementwise(sum)
	require.NoError(t, err)
	var all []*tensor.Tensor
	for range inputCount + 1 {
		x, err := tensor.Zeros(c.on, tensor.Float32, 64)
		require.NoError(t, err)
		all = append(all, x)
	}
	for _, out := range all {
		for range 2 {
			require.NoError(t, k.Run(c.on, []*tensor.Tensor{out}, all[:inputCount]...))
		}
		f := new(frame)
		r, err := f.again(k, []*tensor.Tensor{out}, all[:inputCount])
		require.NoError(t, err)
		assert.NotNil(t, r)
	}
	for _, x := range all {
		require.NoError(t, x.Free())
	}
}

// Layouts without tensors are of aligned memory, also in a frame that had other memory before.
func TestAlignmentsOfAFrameAreForgotten(t *testing.T) {
	c, _ := compiling(t)
	k, err := c.Elementwise(expr.Input(0, tensor.Float32).Neg())
	require.NoError(t, err)
	layouts, _ := negating(t, k, 4096)
	fresh, used := new(frame), new(frame)
	used.addresses[0], used.addresses[1] = 4, 8
	require.NoError(t, fresh.fitLayouts(k, layouts))
	require.NoError(t, used.fitLayouts(k, layouts))
	assert.Equal(t, fresh.own, used.own)
	assert.Greater(t, used.own.Vector, uint8(1))
}

// The first set of a measurement has all of -2 to 2, the second numbers between 1/2 and 2; both are the same each time and differ by operand.
func TestNumbersOfAMeasurement(t *testing.T) {
	numbers := func(operand, set int) (all []float64) {
		bytes := sample(tensor.Float32, operand, set, 4000)
		require.Len(t, bytes, 4000)
		for ; len(bytes) > 0; bytes = bytes[4:] {
			all = append(all, float64(math.Float32frombits(binary.LittleEndian.Uint32(bytes))))
		}
		return all
	}
	counts := map[float64]int{}
	for _, x := range numbers(0, 0) {
		counts[x]++
	}
	assert.Len(t, counts, 5)
	for x := -2.0; x <= 2; x++ {
		assert.Greater(t, counts[x], 100, "%v", x)
	}
	for _, x := range numbers(0, 1) {
		require.True(t, x >= 0.5 && x <= 2, "%v", x)
	}
	for set := range 2 {
		assert.Equal(t, numbers(3, set), numbers(3, set))
		assert.NotEqual(t, numbers(3, set), numbers(4, set))
	}
}

// Elements of each type have both truth values, or whole numbers of both signs where the type has them, and in the second set too no
// type has one value alone.
func TestNumbersOfEachType(t *testing.T) {
	values := func(of tensor.Type, set int) map[float64]bool {
		all := map[float64]bool{}
		bytes := sample(of, 0, set, int64(400*of.Size()))
		require.Len(t, bytes, 400*of.Size())
		for ; len(bytes) > 0; bytes = bytes[of.Size():] {
			all[number(bytes, of)] = true
		}
		return all
	}
	for of, want := range map[tensor.Type][]float64{
		tensor.Bool: {0, 1}, tensor.Uint8: {0, 2, 4},
		tensor.Int8: {-4, -2, 0, 2, 4}, tensor.Int16: {-4, -2, 0, 2, 4}, tensor.Int32: {-4, -2, 0, 2, 4}, tensor.Int64: {-4, -2, 0, 2, 4},
		tensor.Float16: {-2, -1, 0, 1, 2}, tensor.BFloat16: {-2, -1, 0, 1, 2}, tensor.Float32: {-2, -1, 0, 1, 2}, tensor.Float64: {-2, -1, 0, 1, 2},
	} {
		assert.ElementsMatch(t, want, slices.Collect(maps.Keys(values(of, 0))), of)
		assert.Greater(t, len(values(of, 1)), 1, of)
	}
}

// Fields of a Tuning that are not set have the documented defaults, and the others stay.
func TestDefaultsOfATuning(t *testing.T) {
	for _, none := range []int64{0, -1} {
		open := Tuning{MemoryBytes: none, RotateBytes: none, Limit: time.Duration(none), Rounds: int(none)}
		require.NoError(t, open.check(nil))
		assert.Equal(t, Tuning{MemoryBytes: 1 << 30, RotateBytes: 128 << 20, Limit: 5 * time.Second, Rounds: 9}, open)
	}
	set := Tuning{MemoryBytes: 1, RotateBytes: 2, Limit: 3, Rounds: 4}
	kept := set
	require.NoError(t, kept.check(nil))
	assert.Equal(t, set, kept)
	aside := Tuning{Mode: TuneAside}
	require.ErrorIs(t, aside.check(nil), ErrTuningStream)
}
