package tensor_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// prints checks the text of a tensor, and frees it.
func prints(t *testing.T, x *tensor.Tensor, err error, want string) {
	t.Helper()
	require.NoError(t, err)
	assert.Equal(t, want, must(tensor.Sprint(x))(t))
	require.NoError(t, x.Owner().Free())
}

func TestValuesArePrinted(t *testing.T) {
	_, c := newRig(t)
	x, err := tensor.From(c, []int32{1, 2, 3, -40, 5, 6}, 2, 3)
	prints(t, x, err, "[[  1   2   3]\n [-40   5   6]]\nint32[2 3] on GPU 0\n")
	x, err = tensor.From(c, []float32{1, 2.5, -3, 0.125})
	prints(t, x, err, "[ 1.000  2.500 -3.000  0.125]\nfloat32[4] on GPU 0\n")
	x, err = tensor.From(c, []float64{1, 20, float64(math.NaN()), math.Inf(-1), math.Inf(1)})
	prints(t, x, err, "[  1.  20.  NaN -Inf  Inf]\nfloat64[5] on GPU 0\n")
	x, err = tensor.From(c, []float64{0, 0.5, math.NaN(), 0.125, math.Inf(1), 2})
	prints(t, x, err, "[0.000 0.500   NaN 0.125   Inf 2.000]\nfloat64[6] on GPU 0\n")
	x, err = tensor.From(c, []float64{1e-9, 0, 2})
	prints(t, x, err, "[1.0000e-09 0.0000e+00 2.0000e+00]\nfloat64[3] on GPU 0\n")
	x, err = tensor.Scalar(c, float32(math.Pi))
	prints(t, x, err, "3.1416\nfloat32[] on GPU 0\n")
	x, err = tensor.From(c, []half.BFloat16{half.NewBFloat16(0.5), half.NewBFloat16(2)})
	prints(t, x, err, "[0.5 2.0]\nbfloat16[2] on GPU 0\n")
	x, err = tensor.From(c, []half.Float16{half.NewFloat16(-0.1)}, 1, 1, 1)
	prints(t, x, err, "[[[-0.1]]]\nfloat16[1 1 1] on GPU 0\n")
	x, err = tensor.From(c, []bool{true, false})
	prints(t, x, err, "[ true false]\nbool[2] on GPU 0\n")
	x, err = tensor.From(c, []uint8{255, 0})
	prints(t, x, err, "[255   0]\nuint8[2] on GPU 0\n")
	x, err = tensor.From(c, []int8{-1})
	prints(t, x, err, "[-1]\nint8[1] on GPU 0\n")
	x, err = tensor.From(c, []int16{-1})
	prints(t, x, err, "[-1]\nint16[1] on GPU 0\n")
	x, err = tensor.New(c, tensor.Int8, 2, 0)
	prints(t, x, err, "[[]\n []]\nint8[2 0] on GPU 0\n")
	x, err = tensor.From(c, count[int64](8), 2, 2, 2)
	prints(t, x, err, "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]\nint64[2 2 2] on GPU 0\n")
	x, err = tensor.From(c, count[int64](6), 2, 3)
	columns := must(x.Transpose(0, 1))(t)
	prints(t, columns, err, "[[0 3]\n [1 4]\n [2 5]]\nint64[3 2] on GPU 0, a view\n")
	x, err = tensor.From(c, count[int64](30))
	prints(t, x, err, `[ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25
 26 27 28 29]
int64[30] on GPU 0
`)
}

// Of large tensors the corners are printed, and no others are read.
func TestLargeTensorsAreElided(t *testing.T) {
	_, c := newRig(t)
	x, err := tensor.From(c, count[int32](100*200), 100, 200)
	prints(t, x, err, `[[    0     1     2 …   197   198   199]
 [  200   201   202 …   397   398   399]
 [  400   401   402 …   597   598   599]
 …
 [19400 19401 19402 … 19597 19598 19599]
 [19600 19601 19602 … 19797 19798 19799]
 [19800 19801 19802 … 19997 19998 19999]]
int32[100 200] on GPU 0
`)
	x, err = tensor.From(c, count[int32](2*600), 2, 600, 1)
	prints(t, x, err, `[[[   0]
  [   1]
  [   2]
  …
  [ 597]
  [ 598]
  [ 599]]

 [[ 600]
  [ 601]
  [ 602]
  …
  [1197]
  [1198]
  [1199]]]
int32[2 600 1] on GPU 0
`)
	one := must(tensor.Scalar(c, int8(3)))(t)
	huge, err := one.Broadcast(1<<40, 2)
	prints(t, huge, err, "[[3 3]\n [3 3]\n [3 3]\n …\n [3 3]\n [3 3]\n [3 3]]\nint8[1099511627776 2] on GPU 0, a view\n")
}

// Up to a thousand elements are printed whole.
func TestTheLargestTensorThatIsPrintedWhole(t *testing.T) {
	_, c := newRig(t)
	for elements, elided := range map[int]bool{999: false, 1000: false, 1001: true} {
		x := must(tensor.New(c, tensor.Int8, elements))(t)
		require.NoError(t, tensor.Fill(c, x, int8(1)))
		assert.Equal(t, elided, strings.Contains(must(tensor.Sprint(x))(t), "…"), elements)
		require.NoError(t, x.Free())
	}
}

func TestErrorsOfWritersAreReturned(t *testing.T) {
	_, c := newRig(t)
	x := must(tensor.Scalar(c, int8(3)))(t)
	require.ErrorIs(t, tensor.Fprint(broken{}, x), errBroken)
	require.NoError(t, x.Free())
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errBroken }

// No verb of fmt prints the insides of a tensor or a scope.
func TestFormattedTensors(t *testing.T) {
	r, c := newRig(t)
	x, err := tensor.From(c, count[float32](6), 2, 3)
	require.NoError(r, err)
	y, err := x.Narrow(0, 0, 1)
	require.NoError(r, err)
	s, err := tensor.NewScope(c)
	require.NoError(r, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.Equal(t, "float32[2 3] on GPU 0", fmt.Sprintf(verb, x), verb)
		assert.Equal(t, "float32[2 3] on GPU 0", fmt.Sprintf(verb, *x), verb)
		assert.Equal(t, "float32[1 3] on GPU 0, a view", fmt.Sprintf(verb, *y), verb)
		assert.Equal(t, s.String(), fmt.Sprintf(verb, s), verb)
	}
	assert.Equal(t, `"no tensor"`, fmt.Sprintf("%q", tensor.Tensor{}))
	assert.Equal(t, "%!d(string=no tensor)", fmt.Sprintf("%d", tensor.Tensor{}))
	require.NoError(r, s.Close())
	require.NoError(r, x.Free())
}
