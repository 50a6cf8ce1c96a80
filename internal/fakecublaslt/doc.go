// Package fakecublaslt builds a fake of NVIDIA's library cuBLASLt, in C, over the fake of libcuda: products are computed by
// their definition, in double, when it is their turn in the stream.
//
// It checks its arguments: that a context is current, descriptors, leading dimensions, the algorithm, alignment and the size of
// the workspace. It exports the functions that cuda/cublaslt calls.
//
// A product with a long K is split in two parts. Of the reduction schemes that the preference allows, the fake takes the least
// exact one: OUTPUT_TYPE and INPLACE keep the parts' sums in the type of the output, as cublasLt.h says.
//
// For tests it exports:
//
//	int  fakecublaslt_fail(const char *name, int occurrence, int status)   // call number occurrence of that name from now on fails
//	                                                                       // cublasLtMatmulAlgoGetHeuristic: -1 succeeds and finds none, -2 an
//	                                                                       // algorithm that is not for the device, -3 one that wants a longer
//	                                                                       // workspace, -4 one that wants none
//	long fakecublaslt_live(void)                                           // handles, descriptors, layouts and preferences
//	long fakecublaslt_calls(const char *name)
//	void fakecublaslt_reset(void)
//
// # Concurrency properties
//
// The library is safe for threads. Build may be called from any goroutine, for different directories.
package fakecublaslt
