// Package warm predicts the buffers that a program will need, for vram.Device.Warm and vram.Config.Warm.
//
//   - Transformer derives the buffers of training or of inference from a model's shape.
//   - FromTrace reads them from a recording of an earlier run.
//
// Both return the buffers that are live at the peak. Warm maps memory, not buffers, so buffers that are freed before the peak
// use the same pages. A program with fragmented free memory at its peak needs a little more.
//
//	want, err := warm.Transformer{
//		Batch: 8, Sequence: 1024, Hidden: 768, Heads: 12, Layers: 12, Vocabulary: 50257, Positions: 1024,
//		Type: warm.BFloat16, Mixed: true,
//	}.Training()
//	...
//	err = dev.Warm(ctx, want...)
//
// No function here touches a device.
package warm
