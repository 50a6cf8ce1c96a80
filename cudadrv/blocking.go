package cudadrv

// BlockingStreams is implemented by devices that make streams of the kind that synchronises with the legacy default
// stream (CU_STREAM_DEFAULT); it works where Info has the capability BlockingCreation, and fails with
// CUDA_ERROR_NOT_SUPPORTED elsewhere.
//
// Work on the legacy default stream waits for all earlier work on blocking streams, and their later work waits for it; an event
// recorded on it covers their work. Streams of Device.StreamCreate are not affected.
type BlockingStreams interface {
	StreamCreateBlocking() (Stream, error)
}
