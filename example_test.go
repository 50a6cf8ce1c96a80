package vram_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// firstProgram is the program of docs/usage.md.
func firstProgram(ctx context.Context) (err error) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }() // an *InUseError lists buffers that nobody freed
	s, err := dev.NewStream()
	if err != nil {
		return err
	}
	x, err := s.Alloc(64 << 20)
	if err != nil {
		return err
	}
	next := s.AllocAsync(ctx, vram.Request{Bytes: 128 << 20}) // arrives while a kernel on s.Handle() uses x.Ptr()
	if err := x.Free(); err != nil {                          // stream-ordered: reusable on s at once
		return err
	}
	y, err := next.Await(ctx)
	if err != nil {
		return err
	}
	fmt.Println(x.Bytes(), y.Bytes())
	return y.Free()
}

func Example() {
	if err := firstProgram(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output: 67108864 134217728
}

// exampleStream opens a simulated device and a stream on it.
func exampleStream() (*vram.Device, *vram.Stream, error) {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		return nil, nil, err
	}
	s, err := dev.NewStream()
	return dev, s, err
}

// ended closes a device and shows the error: an *InUseError lists buffers that were not freed.
func ended(dev *vram.Device) {
	if err := dev.Close(); err != nil {
		fmt.Println(err)
	}
}

// A buffer is allocated, used by kernels on the stream, and freed once the last of them has been
// submitted.
func ExampleStream_alloc() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	b, err := s.Alloc(1 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Bytes(), b.Free(), b.Live())
	// Output: 1048576 <nil> false
}

// A future overlaps the wait for memory with other work; cancelling it, or its context, gives the
// memory back.
func ExampleStream_allocAsync() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	ctx := context.Background()
	next := s.AllocAsync(ctx, vram.Request{Bytes: 128 << 20})
	b, err := next.Await(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Bytes(), b.Free())
	// Output: 134217728 <nil>
}

// Another stream reads the buffer: its memory is not used again before that work has finished.
func ExampleBuffer_recordStream() {
	dev, load, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	step, err := dev.NewStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := load.Alloc(1 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.RecordStream(step)) // and then the kernel on step
	fmt.Println(b.Free(), dev.Stats().PendingBytes)
	// Output:
	// <nil>
	// <nil> 1048576
}

// A tenant with a hard limit: a request beyond it is refused, or waits for the tenant's own frees.
func ExampleDevice_Tenant() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	guest, err := dev.Tenant("guest", vram.Quota{LimitBytes: 16 << 20})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	b, err := s.AllocFor(ctx, vram.Request{Bytes: 12 << 20, Tenant: guest})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = s.AllocFor(ctx, vram.Request{Bytes: 8 << 20, Tenant: guest})
	fmt.Println(errors.Is(err, vram.ErrQuota), b.Free())
	// Output: true <nil>
}

// Bytes by state, and which level served the allocations.
func ExampleDevice_Stats() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	b, err := s.Alloc(4 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	stats := dev.Stats()
	fmt.Println(stats.LiveBytes, stats.AllocCount, stats.DriverMisses)
	fmt.Println(b.Free(), dev.Stats().LiveBytes)
	// Output:
	// 4194304 1 1
	// <nil> 0
}

// An optimizer step takes all its buffers in one call, and gives them back in one.
func ExampleStream_allocBatch() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	sizes := []int64{4 << 20, 4 << 20, 512, 96 << 10}
	moments := make([]vram.Buffer, len(sizes)) // used again for each step
	for range 3 {
		if err := s.AllocBatch(moments, sizes); err != nil {
			fmt.Println(err)
			return
		}
		if err := s.FreeBatch(moments); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(len(moments), "buffers a step")
	// Output: 4 buffers a step
}

// A page-aligned buffer full of zeros, which a report of leaks would name.
func ExampleStream_allocFor() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	b, err := s.AllocFor(context.Background(), vram.Request{Bytes: 3 << 20, Align: 2 << 20, Zero: true, Tag: "kv cache"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(b.Bytes(), b.Ptr()%(2<<20))
	fmt.Println(b.Free())
	// Output:
	// 3145728 0x0
	// <nil>
}

// The README shows a program that is one of the examples, whole, and the output in its test.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	program, rest, found := strings.Cut(rest, "```")
	require.True(t, found)
	source, err := os.ReadFile("examples/sine/main.go")
	require.NoError(t, err)
	_, source, _ = bytes.Cut(source, []byte("\n")) // without the package comment
	assert.Equal(t, string(source), program)

	_, rest, found = strings.Cut(rest, "```text\n")
	require.True(t, found)
	printed, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	test, err := os.ReadFile("examples/sine/main_test.go")
	require.NoError(t, err)
	_, output, found := strings.Cut(string(test), "\t// Output:\n")
	require.True(t, found)
	output, _, _ = strings.Cut(output, "}\n")
	assert.Equal(t, strings.ReplaceAll(output, "\t// ", ""), printed)
	page, err := os.ReadFile("docs/usage.md") // likewise
	require.NoError(t, err)
	test, err = os.ReadFile("examples/hello/main_test.go")
	require.NoError(t, err)
	_, output, found = strings.Cut(string(test), "\t// Output:\n")
	require.True(t, found)
	output, _, _ = strings.Cut(output, "}\n")
	assert.Contains(t, string(page), "```text\n"+strings.ReplaceAll(output, "\t// ", "")+"```\n")
	assert.Less(t, strings.Count(string(readme), "\n"), 200, "more belongs in docs")
}

// After a peak: at most a quarter of the held memory stays free.
func ExampleDevice_Trim() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	weights, err := s.Alloc(300 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	peak, err := s.Alloc(2 << 30)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := peak.Free(); err != nil {
		fmt.Println(err)
	}
	before := dev.Stats()
	usedBytes := before.LiveBytes + before.PendingBytes + before.SetAsideBytes
	givenBytes, err := dev.Trim(context.Background(), usedBytes*4/3)
	after := dev.Stats()
	fmt.Println(givenBytes >= 1900<<20, after.ReservedBytes <= 400<<20, err)
	if err := weights.Free(); err != nil {
		fmt.Println(err)
	}
	// Output: true true <nil>
}
