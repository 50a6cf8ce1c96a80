// Command compile compiles the kernels of package matmul to PTX: make kernels. It runs in the module's root and needs clang-19.
package main

import (
	"fmt"
	"os"

	"github.com/go-vram/vram/compute/kernel/internal/ptxtext"
	"github.com/go-vram/vram/compute/kernel/matmul/internal/variant"
)

func main() {
	const house = "compute/kernel/matmul"
	total, err := ptxtext.Write(house, house+"/source", variant.Files(), variant.Sources())
	if err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
	fmt.Printf("%d variants, %d bytes\n", len(variant.All()), total)
}
