// Command vram replays recorded allocation traces, measures the allocator, shows its memory live, describes its device, and writes Go for
// kernels.
//
//	vram replay [flags] TRACE...   play traces and print their costs
//	vram analyze [flags] TRACE...  describe traces, and recommend a configuration
//	vram compare [flags] TRACE...  play traces with two configurations, side by side
//	vram bench [flags]             measure the scenarios
//	vram serve [flags]             serve a live page of a device under load
//	vram top [flags] [URL]         show the same figures in the terminal
//	vram kernels [flags] FILE...   write Go functions for the kernels of PTX or CUDA C++ files
//	vram sim [flags]               play the allocator from seeds and check its promises
//	vram lease [flags] -- COMMAND  run a command with memory of a GPU from the host's queue
//	vram fleet [flags]             show the devices, and the gangs that hold memory or wait
//	vram info                      print the device, the processes on all GPUs, and the configuration
//	vram wait -free SIZE           wait until a device has so much free memory
//	vram version
//	vram help [COMMAND]
//
// A TRACE is a file or the name of an embedded trace. Flags may have one dash or two. The variables VRAM_* (vram.ConfigFromEnv)
// configure the device of info, wait, replay, bench, serve and top; flags override them. Exit codes: 0; 1 if a run fails, also by an
// allocation of a replay that finds no memory; 2 for invalid flags or variables and for traces and kernels that cannot be read; 3 if
// wait's time is over. lease has the exit code of its command, 128 and the number of the signal that ended it, or 125 without a lease, 126
// for a command that cannot be run and 127 for one that is not found.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/go-vram/vram/internal/recovered"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if count := recovered.UnplantedCount(); count > 0 {
		fmt.Fprintf(os.Stderr, "vram: %d panics were recovered on the way, which is a defect of vram\n", count)
		code = max(code, exitFailed)
	}
	os.Exit(code)
}
