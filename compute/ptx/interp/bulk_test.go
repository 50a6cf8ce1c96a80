package interp_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// boxBytes is the size of all boxes of these tests.
const boxBytes = 1024

// copied has the copy of a box, at coordinates.
func copied(at ...int) string {
	place := strings.Trim(strings.ReplaceAll(fmt.Sprint(at), " ", ", "), "[]")
	return fmt.Sprintf("cp.async.bulk.tensor.%dd.shared::cluster.global.mbarrier::complete_tx::bytes [%%r1], [%%rd1, {%s}], [%%r2];", len(at), place)
}

const (
	expected = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 1024;"
	waited   = `
$WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
	@!%p2 bra $WAIT;`
	// boxStored stores the box: four words of each of 64 threads.
	boxStored = `
	shl.b32 %r3, %r0, 4; add.u32 %r4, %r1, %r3; cvt.u64.u32 %rd3, %r3; add.u64 %rd3, %rd2, %rd3;
	ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r4];
	st.global.v4.u32 [%rd3], {%r5, %r6, %r7, %r8};`
)

// inBulk runs a kernel of 64 threads, of which the first one executes statements before all execute the rest, and returns the bytes
// that it stores. Another launch of the kernel has to do the same.
func inBulk(t *testing.T, tensor interp.Tensor, memory []byte, first, rest string) ([]byte, error) {
	t.Helper()
	out := make([]byte, boxBytes)
	k := compile(t, `.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)
{
	.reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;
	.shared .align 1024 .b8 tile[2048]; .shared .align 8 .b64 bar[2];
	mov.b64 %rd1, map; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [out];
	mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mov.u32 %r2, bar;
	setp.ne.u32 %p1, %r0, 0;
	@%p1 bra $READY;
	mbarrier.init.shared::cta.b64 [%r2], 1;
	mbarrier.init.shared::cta.b64 [%r2+8], 64;
	fence.proxy.async.shared::cta;
$READY:
	bar.sync 0;
	@%p1 bra $REST;
	`+first+"\n$REST:\n"+rest+"\n\tret;\n}\n")
	l := interp.Launch{
		Grid: interp.Dim3{X: 1, Y: 1, Z: 1}, Block: interp.Dim3{X: 64, Y: 1, Z: 1}, MaxInstructions: 200_000,
		Params: append(append([]byte("map"), make([]byte, 125)...), params(uint64(0x20000))...),
		Memory: interp.Bytes{0x10000: memory, 0x20000: out},
		Tensors: func(encoded []byte) (interp.Tensor, bool) {
			return tensor, bytes.Equal(encoded[:3], []byte("map"))
		},
	}
	err := k.Run(l)
	was := bytes.Clone(out)
	require.Equal(t, fmt.Sprint(err), fmt.Sprint(k.Run(l)))
	require.Equal(t, was, out)
	return out, err
}

// boxes are tensors at 0x10000, each with a box of 1,024 bytes.
func boxes() map[string]interp.Tensor {
	return map[string]interp.Tensor{
		"one dimension":      {ElementBytes: 4, Rank: 1, Dims: [5]int64{300}, Box: [5]int64{256}},
		"no exchange":        {ElementBytes: 2, Rank: 2, Dims: [5]int64{100, 11}, Strides: [4]int64{208}, Box: [5]int64{64, 8}},
		"32 bytes":           {ElementBytes: 2, Rank: 2, Dims: [5]int64{100, 40}, Strides: [4]int64{208}, Box: [5]int64{16, 32}, Swizzle: 2},
		"64 bytes":           {ElementBytes: 2, Rank: 2, Dims: [5]int64{100, 20}, Strides: [4]int64{224}, Box: [5]int64{32, 16}, Swizzle: 4},
		"128 bytes":          {ElementBytes: 2, Rank: 2, Dims: [5]int64{99, 11}, Strides: [4]int64{208}, Box: [5]int64{64, 8}, Swizzle: 8},
		"a batch":            {ElementBytes: 2, Rank: 3, Dims: [5]int64{70, 5, 3}, Strides: [4]int64{144, 720}, Box: [5]int64{64, 4, 2}, Swizzle: 8},
		"a batch that stays": {ElementBytes: 2, Rank: 3, Dims: [5]int64{70, 5, 3}, Strides: [4]int64{144, 0}, Box: [5]int64{64, 8, 1}, Swizzle: 8},
		"rounded":            {ElementBytes: 4, Rank: 2, Dims: [5]int64{50, 11}, Strides: [4]int64{208}, Box: [5]int64{32, 8}, Swizzle: 8, TF32: true},
		"four dimensions":    {ElementBytes: 4, Rank: 4, Dims: [5]int64{40, 3, 2, 2}, Strides: [4]int64{160, 480, 960}, Box: [5]int64{32, 2, 2, 2}, Swizzle: 8},
		"five dimensions": {
			ElementBytes: 4, Rank: 5, Dims: [5]int64{33, 3, 2, 2, 2}, Strides: [4]int64{144, 432, 864, 1728}, Box: [5]int64{32, 2, 2, 1, 2}, Swizzle: 8,
		},
	}
}

// A bulk copy brings a box in the order of its swizzle, and zeros for elements outside of the tensor.
func TestBulkCopiesOfTensors(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	for name, tensor := range boxes() {
		tensor.Start = 0x10000
		last := tensor.Dims[0] * int64(tensor.ElementBytes)
		for n := 1; n < tensor.Rank; n++ {
			last += (tensor.Dims[n] - 1) * tensor.Strides[n-1]
		}
		memory := make([]byte, last) // a read outside of the tensor's last row is a fault
		for n := range memory {
			memory[n] = byte(random.Uint32())
		}
		for range 6 {
			at := make([]int, tensor.Rank)
			for n := range at {
				at[n] = random.IntN(int(tensor.Dims[n]+2*tensor.Box[n])) - int(tensor.Box[n])
			}
			got, err := inBulk(t, tensor, memory, expected+copied(at...), waited+boxStored)
			require.NoError(t, err, "%s at %v", name, at)
			require.Equal(t, boxOf(&tensor, memory, at), got, "%s at %v", name, at)
		}
	}
}

// boxOf is the box at coordinates as it lies in shared memory.
func boxOf(t *interp.Tensor, memory []byte, at []int) []byte {
	box := make([]byte, boxBytes)
	for n := range boxBytes / t.ElementBytes {
		from, inside, rest := int64(0), true, int64(n)
		for d := range t.Rank {
			index := int64(at[d]) + rest%t.Box[d]
			rest /= t.Box[d]
			inside = inside && index >= 0 && index < t.Dims[d]
			if d == 0 {
				from += index * int64(t.ElementBytes)
			} else {
				from += index * t.Strides[d-1]
			}
		}
		if !inside {
			continue
		}
		to := n * t.ElementBytes
		if t.Swizzle > 0 {
			to ^= to >> 7 % t.Swizzle << 4
		}
		copy(box[to:], memory[from:from+int64(t.ElementBytes)])
		if t.TF32 {
			binary.LittleEndian.PutUint32(box[to:], nearestTF32(binary.LittleEndian.Uint32(box[to:])))
		}
	}
	return box
}

// nearestTF32 is the nearer one of the two numbers without the lower 13 bits that surround a number, from the definition.
func nearestTF32(bits uint32) uint32 {
	v := float64(math.Float32frombits(bits))
	below, above := bits&^0x1fff, bits&^0x1fff+0x2000
	next := float64(math.Float32frombits(above))
	if math.IsInf(next, 0) {
		next = math.Copysign(0x1p128, next)
	}
	low, high := v-float64(math.Float32frombits(below)), next-v
	switch {
	case math.IsNaN(v):
		return below | 1<<22
	case math.IsInf(v, 0), math.Abs(low) < math.Abs(high), math.Abs(low) == math.Abs(high) && below>>13&1 == 0:
		return below
	}
	return above
}

// Mistakes around bulk copies are faults.
func TestMistakesOfBulkCopies(t *testing.T) {
	tensor := boxes()["128 bytes"]
	tensor.Start = 0x10000
	memory := make([]byte, 208*11)
	second := `
	mbarrier.arrive.shared::cta.b64 _, [%r2+8];
	@%p1 bra $END;
`
	for name, x := range map[string]struct {
		first, rest string
		want        interp.Kind
		detail      string
	}{
		"missing wait":         {expected + copied(0, 0), "bar.sync 0;" + boxStored, interp.AsyncInFlight, "no thread has waited at their mbarrier"},
		"wrong phase":          {expected + copied(0, 0), "bar.sync 0;" + strings.Replace(waited, "[%r2], 0", "[%r2], 1", 1) + boxStored, interp.AsyncInFlight, "bulk copy"},
		"store under a copy":   {expected + copied(0, 0) + "st.shared.u32 [%r1], 0;", waited, interp.AsyncInFlight, "bulk copy"},
		"two copies":           {expected + copied(0, 0) + copied(0, 0), waited, interp.AsyncInFlight, "bulk copy"},
		"block that ends":      {expected + copied(0, 0), "", interp.AsyncInFlight, "the block ends before"},
		"early reuse":          {expected + copied(0, 0), waited + boxStored + "@%p1 bra $END;\n" + expected + copied(0, 0) + "\n$END:", interp.SharedRace, "nothing orders"},
		"too many bytes":       {strings.Replace(expected, "1024", "1040", 1) + copied(0, 0), waited, interp.InstructionLimit, ""},
		"address":              {"add.u32 %r1, %r1, 128;" + expected + copied(0, 0), waited, interp.Misaligned, "a multiple of 1024 bytes"},
		"past shared memory":   {"add.u32 %r1, %r1, 4096;" + expected + copied(0, 0), waited, interp.OutOfBounds, "shared memory"},
		"other dimensions":     {expected + copied(0, 0, 0), waited, interp.Unsupported, "no tensor map of 3 dimensions"},
		"no tensor map":        {"add.u64 %rd1, %rd1, 64;" + expected + copied(0, 0), waited, interp.OutOfBounds, "no tensor map is there"},
		"map in global memory": {"mov.u64 %rd1, 0x10000;" + expected + copied(0, 0), waited, interp.Unsupported, "no tensor map"},
		"misplaced map":        {"sub.u64 %rd1, %rd2, 0xffe0;" + expected + copied(0, 0), waited, interp.Misaligned, "64 bytes"},
	} {
		_, err := inBulk(t, tensor, memory, x.first, x.rest)
		kept(t, err, x.first, x.rest)
		var fault *interp.Fault
		require.ErrorAs(t, err, &fault, name)
		assert.Equal(t, x.want, fault.Kind, "%s: %v", name, err)
		assert.Contains(t, err.Error(), x.detail, name)
	}
	tensor.Dims[1]++ // past the end of the memory
	_, err := inBulk(t, tensor, memory, expected+copied(0, 4), waited)
	require.ErrorContains(t, err, "out of bounds")
	tensor.Dims[1]--
	reuse := waited + boxStored + second + `
$EMPTY:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+8], 0;
	@!%p2 bra $EMPTY;
	` + expected + copied(0, 0) + `
$AGAIN:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 1;
	@!%p2 bra $AGAIN;
$END:`
	_, err = inBulk(t, tensor, memory, expected+copied(0, 0), reuse)
	require.NoError(t, err, "all threads arrive before the stage is used again")
}

// Of copies that lie next to each other, each is on its way until its own thread, or one at its mbarrier, has waited for it: an access names one that
// it touches, whichever came first, and how many bytes of it are zeros.
func TestCopiesNextToEachOther(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8)) //nolint:gosec // a test
	faults := 0
	for range shorter(800) {
		box := 16 * (1 + rnd.IntN(8))
		tensor := interp.Tensor{Start: 0x10000, ElementBytes: 4, Rank: 1, Dims: [5]int64{100}, Box: [5]int64{int64(box / 4)}}
		type copyOf struct {
			start, end int
			name       string
		}
		bulk := copyOf{0, box, "cp.async.bulk.tensor"}
		all, text := []copyOf{bulk}, []string{strings.Replace(expected, "1024", fmt.Sprint(box), 1) + copied(0)}
		for at := box; at < 192; at += 16 {
			each := 4 << rnd.IntN(3)
			at := at + each*rnd.IntN(16/each)
			all = append(all, copyOf{at, at + each, fmt.Sprintf("[%%r1+%d]", at)})
			text = append(text, fmt.Sprintf("mov.u32 %%r9, %d; cp.async.ca.shared.global [%%r1+%d], [%%rd2], %d, %%r9;", rnd.IntN(each+1), at, each))
		}
		rnd.Shuffle(len(text), func(a, b int) { text[a], text[b] = text[b], text[a] })
		waits := []string{"", waited, "cp.async.wait_all;"}
		which := rnd.IntN(len(waits))
		switch which {
		case 1:
			all = all[1:]
		case 2: //nolint:mnd // the last
			all = all[:1]
		}
		each := 4 << rnd.IntN(3)
		at := each * rnd.IntN(208/each)
		store := fmt.Sprintf("st.shared%s.u32 [%%r1+%d], %s;", map[int]string{8: ".v2", 16: ".v4"}[each], at, map[int]string{4: "%r0", 8: "{%r0, %r0}", 16: "{%r0, %r0, %r0, %r0}"}[each])
		_, err := inBulk(t, tensor, make([]byte, 400), strings.Join(text, "\n")+waits[which]+store+strings.ReplaceAll(waited, "$WAIT", "$LAST")+"cp.async.wait_all;", "")
		var touched []string
		for _, c := range all {
			if c.start < at+each && at < c.end {
				touched = append(touched, c.name)
			}
		}
		if len(touched) == 0 {
			require.NoError(t, err, "%v: %s", all, store)
			continue
		}
		faults++
		var fault *interp.Fault
		require.ErrorAs(t, err, &fault, "%v: %s", all, store)
		require.Equal(t, interp.AsyncInFlight.String(), fault.Kind.String())
		require.True(t, slices.ContainsFunc(touched, func(name string) bool { return strings.Contains(fault.Other.Instruction, name) }), "%v: %v", touched, fault)
	}
	require.Greater(t, faults, shorter(200))
}
