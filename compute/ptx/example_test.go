package ptx_test

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/ptx"
)

// A kernel that doubles numbers: one element a thread, with a check of the bounds.
func ExampleNewKernel() {
	k := ptx.NewKernel("double")
	data, count := k.Buffer("data"), k.Value("count", ptx.U32)
	i := k.Thread()
	k.If(k.Let("setp.lt.u32", i, count), func() {
		at := k.Element(data, i, 4)
		x := k.Let("ld.global.f32", at)
		k.Do("st.global.f32", at, k.Let("add.f32", x, x))
	})
	m, err := k.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(m)
	// Output:
	// .version 7.0
	// .target sm_70
	// .address_size 64
	//
	// .visible .entry double(
	// 	.param .u64 data,
	// 	.param .u32 count
	// )
	// {
	// 	.reg .pred %p<1>;
	// 	.reg .b32 %r<5>;
	// 	.reg .b64 %rd<4>;
	// 	.reg .f32 %f<2>;
	// 	ld.param.u64 %rd0, [data];
	// 	cvta.to.global.u64 %rd1, %rd0;
	// 	ld.param.u32 %r0, [count];
	// 	mov.u32 %r1, %ctaid.x;
	// 	mov.u32 %r2, %ntid.x;
	// 	mov.u32 %r3, %tid.x;
	// 	mad.lo.u32 %r4, %r1, %r2, %r3;
	// 	setp.lt.u32 %p0, %r4, %r0;
	// 	@!%p0 bra $L1;
	// 	mul.wide.u32 %rd2, %r4, 4;
	// 	add.u64 %rd3, %rd1, %rd2;
	// 	ld.global.f32 %f0, [%rd3];
	// 	add.f32 %f1, %f0, %f0;
	// 	st.global.f32 [%rd3], %f1;
	// $L1:
	// 	ret;
	// }
}

// Check names the line, the kernel and the instruction of each mistake.
func ExampleCheck() {
	m, err := ptx.Parse(`.version 7.0
.target sm_70
.visible .entry k()
{
	.reg .f32 %f<2>;
	.reg .f64 %d<1>;
	add.f32 %f0, %f1, %d0;
	fma.rn.bf16 %f0, %f1, %f1, %f1;
	ret;
}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(strings.ReplaceAll(ptx.Check(m).Error(), ": ", ":\n  "))
	// Output:
	// ptx:
	//   7:2:
	//   k:
	//   add.f32 %f0, %f1, %d0:
	//   operand 3, %d0, is a register of .f64, which is no .f32
	// ptx:
	//   8:2:
	//   k:
	//   fma.rn.bf16 %f0, %f1, %f1, %f1:
	//   operand 1, %f0, is a register of .f32, which is no .bf16
}

// Uses says which memory a kernel reads and writes.
func ExampleUses() {
	m, err := ptx.Parse(`.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 from, .param .u64 to, .param .u32 n) {
	.reg .b32 %r<2>; .reg .b64 %d<4>;
	ld.param.u64 %d1, [from]; ld.param.u64 %d2, [to];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d3, %r1, 4;
	add.u64 %d1, %d1, %d3;
	add.u64 %d2, %d2, %d3;
	ld.global.u32 %r1, [%d1];
	red.global.add.u32 [%d2], %r1;
	ret;
}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	f := m.Function("scale")
	for _, u := range ptx.Uses(m, f) {
		fmt.Println(f.Params[u.Param].Name, "reads", u.Reads, "writes", u.Writes)
	}
	// Output:
	// from reads true writes false
	// to reads true writes true
}
