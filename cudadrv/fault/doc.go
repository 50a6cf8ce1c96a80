// Package fault wraps a cudadrv.Driver and makes its calls fail, wait or run out of memory as its rules say, so that tests can
// reach every path after a failing driver call.
//
// A failure is injected instead of the call: the wrapped driver does not see the call, since a failed call changes
// nothing. The error is a *cudadrv.CallError with the wanted result, like any other.
//
// # Words
//
// A Rule selects failing calls of a function: Count calls from the First on, each with a Probability. It
// counts calls from the moment when it was added, also those that another rule makes fail. The first rule that matches a call
// makes it fail.
//
// Errors name the rule that injected them:
//
//	cuMemCreate=CUDA_ERROR_OUT_OF_MEMORY          every call fails
//	cuMemCreate:5=CUDA_ERROR_OUT_OF_MEMORY        the fifth
//	cuMemCreate:5:2=CUDA_ERROR_OUT_OF_MEMORY      the fifth and the sixth
//	cuMemMap:100:*=CUDA_ERROR_MAP_FAILED          the hundredth and all after it
//	cuEventRecord~0.01@7=CUDA_ERROR_UNKNOWN       one in a hundred at random, seed 7
//	*~0.001=CUDA_ERROR_LAUNCH_FAILED              one call in a thousand, of any function
//
// # Concurrency properties
//
// All methods may be called from any goroutine while calls are made: a call sees the rules, the hook
// and the capacity as they were when it began. The n-th call is the n-th to ask the rule; calls made at the same
// time are in no promised order. No goroutine is ever started.
package fault
