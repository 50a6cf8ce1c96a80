package half_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor/half"
)

// Each number's text is read as that number, and none with fewer digits is.
func TestTextsAreTheShortest(t *testing.T) {
	texts := map[string]func(uint16) string{
		"float16":  func(b uint16) string { return half.Float16(b).String() },
		"bfloat16": func(b uint16) string { return half.BFloat16(b).String() },
	}
	for name, f := range formats() {
		for i := range 1 << 16 {
			bits := uint16(i)
			x, text := f.to(bits), texts[name](bits)
			if x != x {
				require.Equal(t, "NaN", text)
				continue
			}
			y, err := strconv.ParseFloat(text, 32)
			require.NoError(t, err, text)
			if f.of(float32(y)) != bits {
				require.FailNow(t, "another number", "%s %#x: %s", name, bits, text)
			}
			digits := len(strings.Trim(strings.SplitN(strings.TrimLeft(text, "-0."), "e", 2)[0], "."))
			digits -= strings.Count(strings.SplitN(strings.TrimLeft(text, "-0."), "e", 2)[0], ".")
			if digits < 2 || math.IsInf(float64(x), 0) {
				continue
			}
			fewer := strconv.FormatFloat(float64(x), 'g', digits-1, 32)
			if y, err := strconv.ParseFloat(fewer, 32); err == nil && f.of(float32(y)) == bits && len(fewer) < len(text) {
				require.FailNow(t, "not the shortest", "%s %#x: %s, and %s", name, bits, text, fewer)
			}
		}
	}
}

// A NaN keeps its sign and the upper bits of its payload, and is quiet.
func TestPayloadsOfNaN(t *testing.T) {
	for _, bits := range []uint32{0x7f800001, 0xff800001, 0x7fc00000, 0x7fffffff, 0xffa50000, 0x7f810000} {
		got := half.NewBFloat16(math.Float32frombits(bits))
		require.Equal(t, fmt.Sprintf("%#x", bits>>16|0x40), fmt.Sprintf("%#x", uint16(got)))
	}
}
