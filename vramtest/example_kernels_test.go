package vramtest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

const ptxOfScale = `.version 7.0
.target sm_70
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by, .param .u32 n) {
	.reg .pred %p; .reg .f32 %f<3>; .reg .b32 %r<5>; .reg .b64 %d<3>;
	ld.param.u64 %d1, [x]; ld.param.f32 %f1, [by]; ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mul.wide.u32 %d2, %r2, 4;
	add.u64 %d1, %d1, %d2;
	ld.global.f32 %f2, [%d1];
	mul.f32 %f2, %f2, %f1;
	st.global.f32 [%d1], %f2;
	ret;
}`

// A kernel from PTX runs on the bytes of the simulated device. A step over the end of its buffer would fail the test.
func ExampleKernels() {
	t := &page{}
	dev := vramtest.Open(t, vramtest.Kernels())
	c := must(cuda.NewContext(dev.Stream()))
	scale := must(must(c.LoadModule([]byte(ptxOfScale))).Function("scale"))
	values := []float32{1, 2, 3}
	x := must(c.Alloc(int64(4 * len(values))))
	check(cuda.CopyIn(c, x, values))
	check(c.Launch(scale, cuda.Cover(len(values), 256), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(len(values)))))
	check(cuda.CopyOut(c, values, x))
	fmt.Println(values)
	check(x.Free())
	check(c.Close())
	t.end()
	// Output:
	// [2 4 6]
}

const ptxOfReverse = `.version 7.0
.target sm_70
.address_size 64
.visible .entry reverse(.param .u64 x) {
	.reg .b32 %r<6>; .reg .b64 %d<4>;
	.shared .align 4 .b8 tile[256];
	ld.param.u64 %d1, [x];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %d2, %r1, 4;
	add.u64 %d3, %d1, %d2;
	ld.global.u32 %r2, [%d3];
	shl.b32 %r3, %r1, 2;
	mov.u32 %r4, tile;
	add.u32 %r4, %r4, %r3;
	st.shared.u32 [%r4], %r2;
	mov.u32 %r5, tile;
	sub.u32 %r5, %r5, %r3;
	ld.shared.u32 %r2, [%r5+252];
	st.global.u32 [%d3], %r2;
	ret;
}`

// A kernel reverses 64 numbers through shared memory, and forgets the barrier between the stores and the loads.
func ExampleKernels_missingBarrier() {
	t := &page{}
	dev := vramtest.Open(t, vramtest.Kernels(), vramtest.Expected())
	c := must(cuda.NewContext(dev.Stream()))
	reverse := must(must(c.LoadModule([]byte(ptxOfReverse))).Function("reverse"))
	x := must(c.Alloc(256))
	check(cuda.CopyIn(c, x, make([]uint32, 64)))
	check(c.Launch(reverse, cuda.Cover(64, 64), cuda.InOut(x)))
	fmt.Println(c.Synchronize(context.Background()) != nil)

	var fault *interp.Fault
	if errors.As(dev.Faults()[0], &fault) {
		fmt.Printf("%s: line %d, thread %v: %s\n", fault.Kind.String(), fault.Line, fault.Thread, fault.Instruction)
		fmt.Printf("and line %d, thread %v: %s\n", fault.Other.Line, fault.Other.Thread, fault.Other.Instruction)
	}
	t.end()
	// Output:
	// true
	// race in shared memory: line 15, thread (32,0,0): st.shared.u32 [%r4], %r2
	// and line 18, thread (31,0,0): ld.shared.u32 %r2, [%r5+252]
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
