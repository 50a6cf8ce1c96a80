package vram_test

import (
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

// firstProgram is the README's program.
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

// ended closes a device and shows what it has to say: an *InUseError lists buffers that nobody freed.
func ended(dev *vram.Device) {
	if err := dev.Close(); err != nil {
		fmt.Println(err)
	}
}

// After a peak: at most a quarter of what the device holds stays free.
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

// An optimizer step takes all its buffers in one call, and gives them back in one.
func ExampleStream_AllocBatch() {
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
func ExampleStream_AllocFor() {
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

// One goroutine works through a lane that may keep 64 MiB; another may free its buffers.
func ExampleStream_Lane() {
	dev, s, err := exampleStream()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ended(dev)
	lane, err := s.Lane(64 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lane.Close()
	scratch, err := lane.Alloc(1 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := lane.Alloc(4 << 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(lane.Free(scratch))
	freed := make(chan error)
	go func() { freed <- result.Free() }()
	fmt.Println(<-freed)
	// Output:
	// <nil>
	// <nil>
}

// The README's first program is the one that runs here, line by line.
func TestReadmeShowsTheExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(readme), "```go\n")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	source, err := os.ReadFile("example_test.go")
	require.NoError(t, err)
	_, rest, _ = strings.Cut(string(source), "func firstProgram(ctx context.Context) (err error) {\n")
	body, _, _ := strings.Cut(rest, "\n}\n")
	assert.Equal(t, strings.ReplaceAll(strings.TrimPrefix(body, "\t"), "\n\t", "\n"), strings.TrimSpace(block))
}
