// Package warm says what a program will need before it asks, for vram.Device.Warm and vram.Config.Warm.
//
//   - Transformer derives the buffers of training or of inference from a model's shape.
//   - FromTrace reads them off a recording of an earlier run.
//
// Both answer with the buffers that live together when most bytes live. What is mapped ahead is memory and not
// buffers: whatever is freed on the way there is served from the same pages. A program whose free memory is cut into
// pieces at its peak needs a little more than that.
//
//	want, err := warm.Transformer{
//		Batch: 8, Sequence: 1024, Hidden: 768, Heads: 12, Layers: 12, Vocabulary: 50257, Positions: 1024,
//		Type: warm.BFloat16, Mixed: true,
//	}.Training()
//	...
//	err = dev.Warm(ctx, want...)
//
// Everything here is computed; nothing touches a device.
package warm
