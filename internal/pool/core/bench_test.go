package core_test

import (
	"fmt"
	"testing"

	"github.com/go-vram/vram/internal/pool/core"
)

const benchPageBytes = 2 << 20

// settle answers the core's requests until there are none.
func settle(c *core.Core, clients core.Client) {
	for range 4 {
		for id := core.Client(1); id <= clients; id++ {
			c.Step(core.Return{Client: id, Answer: true})
		}
		c.Step(core.Looked{})
		if j := c.InFlight(); j != nil {
			c.Step(core.JobDone{Job: j, Done: len(j.Ops)})
		}
	}
}

// openBench returns a core with clients, of which the first holds every other one of half of the pages, and the rest is free.
func openBench(clients core.Client, pages uint32) *core.Core {
	c := core.New(benchPageBytes, 4*pages, core.Settings{
		Policy: core.Policy{HandlePages: 16, Slack: 8192}, LimitBytes: int64(pages) * benchPageBytes,
	})
	for id := core.Client(1); id <= clients; id++ {
		c.Step(core.Join{Client: id})
	}
	c.Step(core.Refill{Client: 1, Token: 1, Pages: pages, Bytes: int64(pages) * benchPageBytes})
	settle(c, clients)
	for at := uint32(0); at < pages; at += 2 {
		c.Step(core.Return{Client: 1, Runs: []core.Run{{First: at, Pages: 1}}, Final: true})
	}
	settle(c, clients)
	return c
}

// BenchmarkRefill serves a Refill from free memory and takes it back.
func BenchmarkRefill(b *testing.B) {
	for _, clients := range []core.Client{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			c := openBench(clients, 256)
			id := clients
			runs := []core.Run{{First: 254, Pages: 1}}
			b.ReportAllocs()
			for b.Loop() {
				c.Step(core.Refill{Client: id, Token: 2, Pages: 1, Most: 1, Bytes: benchPageBytes})
				c.Step(core.Return{Client: id, Runs: runs, Final: true})
			}
			if err := c.Check(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkDeny refuses a Refill for which no room is left under the limit, after all have answered.
func BenchmarkDeny(b *testing.B) {
	for _, clients := range []core.Client{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			c := openBench(clients, 256)
			b.ReportAllocs()
			for b.Loop() {
				c.Step(core.Refill{Client: clients, Token: 2, Pages: 200, Bytes: 200 * benchPageBytes})
				settle(c, clients)
			}
		})
	}
}

// BenchmarkReturn takes back runs under a fence, which passes.
func BenchmarkReturn(b *testing.B) {
	c := openBench(2, 256)
	runs := []core.Run{{First: 254, Pages: 1}}
	fence := core.Fence(0)
	b.ReportAllocs()
	for b.Loop() {
		fence++
		c.Step(core.Refill{Client: 2, Token: 2, Pages: 1, Most: 1, Bytes: benchPageBytes})
		c.Step(core.Return{Client: 2, Runs: runs, Fence: fence, Final: true})
		c.Step(core.Tick{})
		j := c.InFlight()
		c.Step(core.JobDone{Job: j, Passed: []core.Passed{{Client: 2, Fence: fence}}})
	}
}
