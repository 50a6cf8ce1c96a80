package warm_test

import (
	"context"
	"fmt"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/warm"
)

func mapAhead(ctx context.Context, dev *vram.Device) error {
	want, err := warm.Transformer{
		Batch: 8, Sequence: 1024, Hidden: 768, Heads: 12, Layers: 12, Vocabulary: 50257, Positions: 1024,
		Type: warm.BFloat16, Mixed: true, Dropout: true,
	}.Training()
	if err != nil {
		return err
	}
	return dev.Warm(ctx, want...)
}

// A training loop of GPT-2 has its memory mapped before the first step.
func ExampleTransformer() {
	dev, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := mapAhead(context.Background(), dev); err != nil {
		fmt.Println(err)
	}
	fmt.Printf("%.1f GiB are mapped\n", float64(dev.Stats().FreeBytes)/(1<<30))
	if err := dev.Close(); err != nil {
		fmt.Println(err)
	}
	// Output: 9.2 GiB are mapped
}
