package vramtest_test

import (
	"fmt"
	"time"

	"github.com/go-vram/vram/vramtest"
)

// page stands for the *testing.T of a test: it prints failures.
type page struct{ cleanups []func() }

func (p *page) Helper()                           {}
func (p *page) Cleanup(f func())                  { p.cleanups = append(p.cleanups, f) }
func (p *page) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (p *page) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// end ends the test.
func (p *page) end() {
	for _, f := range p.cleanups {
		f()
	}
}

// A loader fills a batch on its own stream, and a step reads it on another one. A missing wait is found, also
// though the loader is long done when the step begins; so is a buffer that is read after its free.
func Example() {
	t := &page{}
	dev := vramtest.Open(t, vramtest.Expected())
	load, step := dev.Stream(), dev.Stream()
	batch, err := load.Alloc(1 << 20)
	if err != nil {
		t.Fatalf("%v", err)
	}

	dev.Launch(load, time.Millisecond, vramtest.Writes(batch))
	filled := dev.Record(load)
	dev.Advance(time.Second)
	dev.Launch(step, time.Millisecond, vramtest.Reads(batch)) // no wait
	dev.Wait(step, filled)
	dev.Launch(step, time.Millisecond, vramtest.Reads(batch)) // as it should be
	dev.Synchronize(step)
	if err := batch.Free(); err != nil {
		t.Fatalf("%v", err)
	}
	dev.Launch(step, time.Millisecond, vramtest.Reads(batch))

	for _, r := range dev.Hazards() {
		fmt.Printf("%v: %s, %d bytes", r.Kind, r.Now.What, r.Bytes)
		if r.Before.What != "" {
			fmt.Printf(", not ordered after: %s", r.Before.What)
		}
		fmt.Println()
	}
	t.end()
	// Output:
	// race: kernel reads, 1048576 bytes, not ordered after: kernel writes
	// use after free: kernel, 1048576 bytes
}
