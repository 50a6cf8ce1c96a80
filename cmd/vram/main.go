// Command vram replays recorded allocation traces, measures the allocator, shows its memory live, and says what it runs on.
//
//	vram replay [flags] TRACE...   play traces and say what they cost
//	vram analyze [flags] TRACE...  say what traces do, and how to configure the allocator for them
//	vram compare [flags] TRACE...  play traces with two configurations, side by side
//	vram bench [flags]             measure the scenarios
//	vram serve [flags]             serve a live page of a device that works
//	vram top [flags] [URL]         show the same figures in the terminal
//	vram sim [flags]               play the allocator from seeds and check what it promises
//	vram info                      the device and the configuration
//	vram version
//	vram help [COMMAND]
//
// A TRACE is a file or the name of an embedded trace. Flags may have one dash or two. The variables VRAM_* (vram.ConfigFromEnv)
// configure the device of info, replay, bench, serve and top; flags go over them. Exit codes: 0; 1 where a run fails, an allocation of a
// replay that finds no memory included; 2 for flags and variables that cannot be and traces that cannot be read.
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
