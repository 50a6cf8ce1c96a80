// Command soak allocates and frees on eight streams of the simulated device, ten million times by default, in a mix that changes all the
// time, under a hard limit of 1.10 times what lives at most. It prints how things stand as time goes by. An allocation that
// fails, or memory that is not given back at the end, is an error.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

func main() {
	p := plan{}
	flag.IntVar(&p.ops, "ops", 10_000_000, "allocations and frees")
	flag.Int64Var(&p.liveBytes, "live", 4<<30, "the most that lives, in bytes")
	flag.Float64Var(&p.limit, "limit", 1.10, "the limit, over what lives at most")
	flag.Uint64Var(&p.seed, "seed", 1, "of the random numbers")
	flag.IntVar(&p.rows, "rows", 20, "lines of the table")
	flag.Parse()
	if err := run(p); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(p plan) error {
	s, err := open(p, vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		return err
	}
	fmt.Println("| operations | live / most live | reserved / most live | free of reserved | ns/op | driver calls / op |")
	fmt.Println("|---|---|---|---|---|---|")
	for range p.rows {
		r, err := s.stretch(p.ops / p.rows)
		if err != nil {
			return err
		}
		fmt.Printf("| %d | %.3f | %.3f | %.1f %% | %.0f | %.1f |\n", r.ops, r.live, r.reserved, 100*r.free, r.nsPerOp, r.callsPerOp)
	}
	return s.close()
}
