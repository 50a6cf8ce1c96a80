// Command compile compiles the kernels of package attention to PTX: make kernels. It runs in the module's root and needs
// clang-19.
package main

import (
	"fmt"
	"os"

	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/compute/kernel/internal/ptxtext"
)

func main() {
	total, err := ptxtext.Write("compute/kernel/attention", "compute/kernel", variant.Files(), variant.Sources())
	if err != nil {
		fmt.Fprintln(os.Stderr, "compile:", err)
		os.Exit(1)
	}
	fmt.Printf("%d variants, %d bytes\n", len(variant.All()), total)
}
