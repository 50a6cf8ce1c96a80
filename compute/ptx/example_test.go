package ptx_test

import (
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/ptx"
)

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
