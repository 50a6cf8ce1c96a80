package cublaslt

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// The numbers stand in cublasLt.h and library_types.h.
func TestNumbersOfTheLibrary(t *testing.T) {
	for of, want := range map[gemm.Type]uint64{gemm.Float32: 0, gemm.Float64: 1, gemm.Float16: 2, gemm.BFloat16: 14} {
		assert.Equal(t, want, dataType(of), "%v", of)
	}
	for _, test := range []struct {
		epilogue    gemm.Epilogue
		plain, bias uint64
	}{{gemm.None, 1, 4}, {gemm.GELU, 32, 36}, {gemm.GELUAux, 160, 164}, {gemm.GELUGradient, 192, 196}} {
		assert.Equal(t, test.plain, epilogueOf(gemm.Problem{Epilogue: test.epilogue}), "%v", test.epilogue)
		assert.Equal(t, test.bias, epilogueOf(gemm.Problem{Epilogue: test.epilogue, Bias: true}), "%v with a bias", test.epilogue)
	}
	for _, test := range []struct {
		in        gemm.Type
		precision gemm.Precision
		want      uint64
		ok        bool
	}{
		{gemm.Float32, gemm.IEEE, 68, true},
		{gemm.Float16, gemm.IEEE, 68, true},
		{gemm.Float32, gemm.TF32, 77, true},
		{gemm.Float64, gemm.IEEE, 70, true},
		{gemm.Float32, gemm.TF32x3, 0, false},
	} {
		got, ok := computes(gemm.Problem{In: test.in, Precision: test.precision})
		assert.Equal(t, test.want, got, "%+v", test)
		assert.Equal(t, test.ok, ok, "%+v", test)
	}
	assert.Equal(t, [2]int64{3, 5}, [2]int64{rowsOf(false, 3, 5), columnsOf(false, 3, 5)})
	assert.Equal(t, [2]int64{5, 3}, [2]int64{rowsOf(true, 3, 5), columnsOf(true, 3, 5)})
}

// An address is aligned to its lowest bit, up to 256; an operand that a problem does not have asks for nothing.
func TestAlignments(t *testing.T) {
	at := func(offset int64) cuda.Range { return cuda.Range{Offset: offset} }
	o := gemm.Operands{A: at(6), B: at(768), C: at(0), Bias: at(4), Aux: at(1)}
	for want, p := range map[Alignment]gemm.Problem{
		{2, 256, 256, 256, 256}: {},
		{2, 256, 256, 4, 256}:   {Bias: true},
		{2, 256, 256, 256, 1}:   {Epilogue: gemm.GELUAux},
		{2, 256, 256, 4, 1}:     {Bias: true, Epilogue: gemm.GELUGradient},
	} {
		assert.Equal(t, want, AlignmentOf(p, o))
	}
}

// A driver of CUDA 12 has no library of 13; a driver that says nothing may have either.
func TestCandidatesByTheDriversVersion(t *testing.T) {
	none := func(string) ([]string, error) { return nil, nil }
	for version, want := range map[int]string{0: "libcublasLt.so.13", 1: "libcublasLt.so.12", 12999: "libcublasLt.so.12", 13000: "libcublasLt.so.13", 13010: "libcublasLt.so.13"} {
		all := candidates(version, func(string) string { return "" }, none)
		require.NotEmpty(t, all)
		assert.Equal(t, want, all[0], version)
		assert.Equal(t, "libcublasLt.so.12", all[len(all)-1], version)
	}
}

// The texts of statuses are the library's names, and errors have all that is known.
func TestTextsOfErrors(t *testing.T) {
	known := map[Status]string{
		0: "SUCCESS", 1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR", 13: "EXECUTION_FAILED",
		14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED", 16: "LICENSE_ERROR",
	}
	for s := range Status(18) {
		want := fmt.Sprintf("cublasStatus_t %d", s)
		if name, ok := known[s]; ok {
			want = "CUBLAS_STATUS_" + name
		}
		text, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	one, two := errors.New("one"), errors.New("two")
	for want, err := range map[string]error{
		"cublaslt: no library: tried a, b: one":                    &AbsentError{[]string{"a", "b"}, []error{one, two}},
		"cublaslt: no library: tried a: two":                       &AbsentError{[]string{"a"}, []error{two}},
		"cublaslt: no library: VRAM_CUBLASLT is off":               &AbsentError{nil, []error{ErrForbidden}},
		"cublaslt: cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED": &StatusError{"cublasLtMatmul", 13},
	} {
		require.EqualError(t, err, want)
	}
	absent := &AbsentError{[]string{"a", "b"}, []error{one, two}}
	require.ErrorIs(t, absent, one)
	require.ErrorIs(t, absent, two)
	require.NotErrorIs(t, &UnsupportedError{}, ErrForbidden)
	require.ErrorIs(t, &UnsupportedError{}, ErrUnsupported)
}
