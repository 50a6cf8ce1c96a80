package interp_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// edgesOf returns the values of a type at which conversions change: the limits of all integer types and of the precision of all
// floating-point types, with their neighbours, halves between integers, the limits of the type itself, and special values.
func edgesOf(typ string) (all []uint64) {
	width := bits(typ)
	low := ^uint64(0) >> (64 - width)
	f, isFloat := formats[typ]
	powers := []int{0, 1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64}
	if !isFloat {
		for _, power := range powers {
			edge := uint64(1) << power // 0 from 64 on
			for _, near := range []uint64{edge - 2, edge - 1, edge, edge + 1} {
				all = append(all, near&low, -near&low)
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	for _, x := range []float64{0, math.Inf(1), math.NaN()} {
		all = append(all, f.special(x), f.special(math.Copysign(x, -1)))
	}
	sign := uint64(1) << (width - 1)
	least, most := uint64(1), f.special(math.Inf(1))-1
	for _, power := range powers {
		for _, more := range []float64{-1.5, -1, -0.5, 0, 0.5, 1, 1.5} {
			x := new(big.Float).SetPrec(100).Add(big.NewFloat(math.Ldexp(1, power)), big.NewFloat(more))
			if x.Sign() == 0 || power > f.maxExp {
				continue
			}
			v := f.encode(x, "rn")
			all = append(all, v, v-1, v+1)
		}
	}
	all = append(all, least, most)
	for _, v := range all {
		all = append(all, v^sign)
	}
	for n := range all {
		all[n] &= low
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Each conversion in all its forms gives the exact result for each value at which a limit of a type is. The short form leaves out
// the ones to floating-point numbers, which random operands reach.
func TestConversionsOfEdges(t *testing.T) {
	t.Parallel()
	count := 0
	for _, row := range table(t) {
		if row.op() != "cvt" || strings.Contains(row.name, "x2") {
			continue
		}
		for _, name := range row.names(rand.New(rand.NewPCG(1, 2)), allForms) {
			types := typesOfOperands(row, name)
			if _, toFloat := formats[types[0]]; toFloat && testing.Short() {
				continue
			}
			var values [][3]uint64
			for _, v := range edgesOf(types[1]) {
				values = append(values, [3]uint64{v})
			}
			require.Less(t, len(values), 1024, "threads of a block")
			checkOperands(t, row, name, values)
			count++
		}
	}
	require.Greater(t, count, 100)
}
