package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
)

// Multiplications of matrices are held against sums in double precision. The places of elements are written out from the PTX
// manual: groupID is the thread by 4, threadID_in_group the rest, and i the number of the element in the thread.
func TestMatrixInstructions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		form        string
		element     string
		depth, a, b int // registers of A and B
		half        bool
	}{
		{"m16n8k16.row.col.f32.f16.f16.f32", "f16", 16, 4, 2, false},
		{"m16n8k16.row.col.f16.f16.f16.f16", "f16", 16, 4, 2, true},
		{"m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", 16, 4, 2, false},
		{"m16n8k8.row.col.f32.bf16.bf16.f32", "bf16", 8, 2, 1, false},
		{"m16n8k8.row.col.f32.f16.f16.f32", "f16", 8, 2, 1, false},
		{"m16n8k8.row.col.f16.f16.f16.f16", "f16", 8, 2, 1, true},
		{"m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", 8, 4, 2, false},
		{"m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", 4, 2, 1, false},
	} {
		t.Run(c.form, func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(11, 12))
			f := formats[c.element]
			var a [16][16]float64
			var b [16][8]float64
			in := make([]byte, 32*32)
			perRegister := 2 - btoi(c.element == "tf32")
			small := func() (uint64, float64) {
				v := uint64(math.Float32bits(float32(rnd.IntN(64)-32) / 16))
				switch c.element {
				case "bf16":
					v >>= 16
				case "f16":
					v = formats["f16"].encodeFloat(float64(math.Float32frombits(uint32(v))))
				}
				return v, f.float(v)
			}
			for thread := range 32 {
				group, member := thread/4, thread%4
				put := func(register, part int, v uint64) {
					at := in[32*thread+4*register:]
					binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)|uint32(v<<(16*part)))
				}
				for i := range c.a * perRegister {
					v, x := small()
					row, column := group, member*2+i&1
					switch perRegister {
					case 1:
						row, column = group+8*(i&1), member+4*(i>>1)
					default:
						row += 8 * (i >> 1 & 1)
						column += 8 * (i >> 2)
					}
					a[row][column] = x
					put(i/perRegister, i%perRegister, v)
				}
				for i := range c.b * perRegister {
					v, x := small()
					row := member*2 + i&1 + 8*(i>>1)
					if perRegister == 1 {
						row = member + 4*i
					}
					b[row][group] = x
					put(c.a+i/perRegister, i%perRegister, v)
				}
			}
			out := make([]byte, 16*32)
			require.NoError(t, compile(t, mmaText(c.form, c.a, c.b, c.half)).Run(launch(1, 32, interp.Bytes{4096: in, 65536: out},
				uint64(4096), uint64(65536))))
			for thread := range 32 {
				for i := range 4 {
					row, column := thread/4+8*(i>>1), thread%4*2+i&1
					want := 1.0
					for k := range c.depth {
						want += a[row][k] * b[k][column]
					}
					got := float64(floatAt(out, 4*thread+i))
					if c.half {
						got = formats["f16"].float(uint64(binary.LittleEndian.Uint16(out[16*thread+2*i:])))
					}
					assert.InDelta(t, want, got, 0.01*float64(btoi(c.half))*math.Abs(want)+1e-5, "row %d, column %d", row, column)
				}
			}
		})
	}
}

// encodeFloat is encode for numbers that may be zero.
func (f number) encodeFloat(x float64) uint64 {
	if x == 0 {
		return 0
	}
	return f.encode(big.NewFloat(x), "rn")
}

func mmaText(form string, a, b int, half bool) string {
	var text strings.Builder
	text.WriteString(header + ".visible .entry k(.param .u64 in, .param .u64 out) {\n.reg .b32 %t, %a<4>, %b<2>, %h<2>; .reg .f32 %c<4>; .reg .b64 %in, %out, %o;\n")
	text.WriteString("ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 32; add.u64 %in, %in, %o;\n")
	text.WriteString("mul.wide.u32 %o, %t, 16; add.u64 %out, %out, %o;\n")
	var as, bs []string
	for n := range a {
		as = append(as, fmt.Sprintf("%%a%d", n))
		fmt.Fprintf(&text, "ld.global.u32 %%a%d, [%%in+%d];\n", n, 4*n)
	}
	for n := range b {
		bs = append(bs, fmt.Sprintf("%%b%d", n))
		fmt.Fprintf(&text, "ld.global.u32 %%b%d, [%%in+%d];\n", n, 4*(a+n))
	}
	c := "{%c0, %c1, %c2, %c3}"
	if half {
		c = "{%h0, %h1}"
	}
	text.WriteString("mov.f32 %c0, 1.0; mov.f32 %c1, 1.0; mov.f32 %c2, 1.0; mov.f32 %c3, 1.0; mov.b32 %h0, 0x3c003c00; mov.b32 %h1, 0x3c003c00;\n")
	fmt.Fprintf(&text, "mma.sync.aligned.%s %s, {%s}, {%s}, %s;\n", form, c, strings.Join(as, ", "), strings.Join(bs, ", "), c)
	if half {
		text.WriteString("st.global.v2.u32 [%out], {%h0, %h1};\n")
	} else {
		text.WriteString("st.global.v4.f32 [%out], {%c0, %c1, %c2, %c3};\n")
	}
	text.WriteString("ret;\n}\n")
	return text.String()
}
