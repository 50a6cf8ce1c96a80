package cudadrv

// BlockingStreams is implemented by devices that make streams of the kind that synchronises with the legacy default
// stream (CU_STREAM_DEFAULT); it works where Info has the capability BlockingCreation, and fails with
// CUDA_ERROR_NOT_SUPPORTED elsewhere.
//
// What the legacy default stream is told waits for all that blocking streams were told before, and what they are told
// waits for it; an event that is recorded on it covers their work. Streams of Device.StreamCreate take no part in that.
type BlockingStreams interface {
	StreamCreateBlocking() (Stream, error)
}
