package routine_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/routine"
	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/tensor"
)

// Random123 publishes these as known answers for Philox 4x32-10.
func TestPhiloxKnownAnswers(t *testing.T) {
	const all = 0xffffffff
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{
			[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
			[2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1},
		},
	} {
		assert.Equal(t, c.want, routine.Philox(c.counter, c.key))
	}
}

// The numbers on the host have the mean, the variance and the bounds of their distributions.
func TestDistributions(t *testing.T) {
	for _, of := range []tensor.Type{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		for kind, want := range map[routine.Kind][2]float64{routine.Uniform: {0.5, 1.0 / 12}, routine.Normal: {0, 1}} {
			var sum, squares float64
			const groups = 2000
			for group := range uint64(groups) {
				for _, x := range routine.Standard(kind, of, 1, 2, 3, group) {
					sum += x
					squares += x * x
					if kind == routine.Uniform {
						require.True(t, x >= 0 && x < 1)
					}
					require.Less(t, math.Abs(x), 6.8)
				}
			}
			n := float64(groups * routine.GroupLen)
			mean := sum / n
			require.InDelta(t, want[0], mean, 0.03, "%v %v", kind, of)
			require.InDelta(t, want[1], squares/n-mean*mean, 0.05, "%v %v", kind, of)
		}
	}
}

// kernels are some of each kind.
func kernels() (all []routine.Kernel) {
	for _, wide := range []bool{false, true} {
		for _, rank := range []uint8{0, 2} {
			for _, of := range []tensor.Type{tensor.Int32, tensor.Int64} {
				all = append(all, routine.Kernel{Kind: routine.Keys, Of: [4]tensor.Type{of}, Rank: rank, Wide: wide})
				for _, unit := range []uint8{1, 2, 4, 8, 16} {
					all = append(all, routine.Kernel{Kind: routine.Gather, Of: [4]tensor.Type{of}, Rank: rank, Unit: unit, Wide: wide})
				}
				for _, value := range tensor.Types()[1:] {
					all = append(all, routine.Kernel{Kind: routine.Segments, Of: [4]tensor.Type{value, of}, Rank: rank, Columns: 3 - rank, Wide: wide})
				}
			}
			for _, of := range []tensor.Type{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
				for _, kind := range []routine.Kind{routine.Uniform, routine.Normal} {
					all = append(all, routine.Kernel{Kind: kind, Of: [4]tensor.Type{of}, Rank: rank, Wide: wide, Vector: rank < 2})
				}
			}
			half, single := tensor.BFloat16, tensor.Float32
			all = append(all,
				routine.Kernel{Kind: routine.AdamWStrided, Of: [4]tensor.Type{half, tensor.Float16, single, single}, Rank: rank, Wide: wide})
		}
	}
	for _, of := range []tensor.Type{tensor.Float16, tensor.BFloat16, tensor.Float32} {
		for _, threads := range []uint16{32, 128, 512} {
			for _, shared := range []uint16{0, 4} {
				all = append(all, routine.Kernel{
					Kind: routine.CrossEntropy, Of: [4]tensor.Type{of, tensor.Int32}, Rank: 1, Threads: threads, SharedKiB: shared, Wide: shared > 0,
				})
			}
		}
	}
	for _, of := range []tensor.Type{tensor.Float16, tensor.BFloat16, tensor.Float32} {
		for i, columns := range []int{8, 768, 1000, 1024, 1600, 8192} {
			k, found := routine.NormKernel(of, []tensor.Type{0, of}[i%2], columns, i%3 > 0)
			if found {
				all = append(all, k, k.NormSumsOf(of))
			}
		}
	}
	partial, _ := routine.NormKernel(tensor.BFloat16, tensor.Float32, 1000, true)
	all = append(all, partial)
	for _, wide := range []bool{false, true} {
		all = append(all,
			routine.Kernel{Kind: routine.Counted, Of: [4]tensor.Type{0, tensor.Int64}, Rank: 2, Threads: 1024, Wide: wide},
			routine.Kernel{Kind: routine.Total, Rank: 1, Threads: 1024, Wide: wide})
	}
	for _, kind := range []routine.Kind{routine.Histogram, routine.Scan, routine.Reorder} {
		all = append(all, routine.Kernel{Kind: kind})
	}
	all = append(all, routine.Kernel{Kind: routine.Reorder, Single: true}, routine.Kernel{Kind: routine.ClipScale, Threads: 1024})
	for _, of := range []tensor.Type{tensor.Float16, tensor.BFloat16, tensor.Float32} {
		for _, copied := range []tensor.Type{0, tensor.BFloat16} {
			types := [4]tensor.Type{of, of, tensor.Float32, tensor.Float32}
			all = append(all, routine.Kernel{Kind: routine.AdamW, Of: types, Copy: copied}, routine.Kernel{Kind: routine.AdamWStrided, Of: types, Copy: copied, Rank: 1})
		}
		all = append(all, routine.Kernel{Kind: routine.SquareSums, Of: [4]tensor.Type{of}})
	}
	return all
}

// All texts are PTX, and equal kernels have equal texts.
func TestTextsAreRight(t *testing.T) {
	for _, k := range kernels() {
		text := k.Text()
		m, err := ptx.Parse(text)
		require.NoError(t, err, k)
		require.NoError(t, ptx.Check(m), k)
		require.NotNil(t, m.Function(k.Entry()), k)
		require.Equal(t, text, k.Text())
		bytes := 0
		for _, p := range m.Function(k.Entry()).Params {
			bytes = (bytes+p.Bytes()-1)&^(p.Bytes()-1) + p.Bytes()
		}
		require.LessOrEqual(t, bytes, 4096, k)
	}
}

func TestTypesOfAdamW(t *testing.T) {
	for _, of := range tensor.Types() {
		assert.Equal(t, of == tensor.Float16 || of == tensor.BFloat16 || of == tensor.Float32, routine.AdamWTypes([4]tensor.Type{of, of, of, of}))
	}
}

// An entry has the name of the operation that takes the indices, and of its part of the work.
func TestEntriesHaveTheNameOfTheOperation(t *testing.T) {
	seen := map[string]bool{}
	for kind := routine.Gather; kind <= routine.AdamWStrided; kind++ {
		k := routine.Kernel{Kind: kind}
		assert.Equal(t, kind.String(), k.Entry())
		require.NotEmpty(t, k.Entry())
		seen[k.Entry()] = true
		k.For = "embedding"
		want := "embedding_" + kind.String()
		if kind == routine.Gather {
			want = "embedding"
		}
		assert.Equal(t, want, k.Entry())
	}
	assert.Len(t, seen, int(routine.AdamWStrided), "each has a name of its own")
	assert.Equal(t, "segments float16 int64", routine.Kernel{Kind: routine.Segments, Of: [4]tensor.Type{tensor.Float16, tensor.Int64}}.String())
	assert.Equal(t, "scan", routine.Kernel{Kind: routine.Scan}.String())
}

// A block has the most shared memory that its processor gives, and the usual amount of processors that are not known to have
// more.
func TestSharedMemoryOfBlocks(t *testing.T) {
	for capability, kib := range map[int]int{70: 48, 75: 48, 80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 120: 99, 999: 99} {
		assert.Equal(t, kib<<10, routine.MaxSharedBytes(capability), capability)
	}
	assert.EqualValues(t, 100<<10, routine.Kernel{SharedKiB: 100}.SharedBytes())
	assert.Equal(t, []int{256, 32}, []int{routine.Kernel{}.BlockThreads(), routine.Kernel{Threads: 32}.BlockThreads()})
	assert.Equal(t, []uint16{32, 32, 128, 512}, []uint16{
		routine.CrossEntropyThreads(0), routine.CrossEntropyThreads(2 << 10), routine.CrossEntropyThreads(8 << 10), routine.CrossEntropyThreads(100_608),
	})
}
