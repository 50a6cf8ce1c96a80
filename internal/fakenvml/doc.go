// Package fakenvml builds a fake of NVIDIA's management library NVML, in C, for machines without a GPU.
//
// It exports the functions that monitor/gpus calls, with the structures of nvml.h, and for tests:
//
//	void fakenvml_set_devices(uint32_t count)
//	void fakenvml_set_names(uint32_t index, const char *name, const char *uuid)
//	void fakenvml_set_pci(uint32_t index, uint32_t domain, uint32_t bus, uint32_t device)
//	void fakenvml_set_memory(uint32_t index, uint64_t total, uint64_t reserved, uint64_t free, uint64_t used)
//	void fakenvml_set_freed(uint32_t index, uint64_t bytes)      // become free after each question for the memory
//	void fakenvml_add_process(uint32_t index, uint32_t kind, uint32_t pid, uint64_t bytes, uint32_t instance)
//	                                                             // kind 0: compute, 1: graphics, 2: MPS
//	void fakenvml_set_records(int are_long)                      // of 32 bytes, as drivers 535.43 to 535.86 write
//	void fakenvml_set_endless(int endless)                       // texts without a 0 at their end
//	void fakenvml_set_growth(uint32_t processes)                 // more at each list
//	void fakenvml_set_claimed(uint32_t count)                    // of processes, in each answer; 0: the true count
//	void fakenvml_hold(int hold)                                 // each call waits
//	void fakenvml_await(void)                                    // waits for a call that is held
//	void fakenvml_fail(const char *name, long occurrence, int status) // of the calls from now on; -1: all; 0: none
//	long fakenvml_calls(const char *name)
//	int  fakenvml_started(void)                                  // calls of nvmlInit_v2 less calls of nvmlShutdown
//
// # Concurrency properties
//
// The library is safe for threads. Build may be called from any goroutine, for different directories.
package fakenvml
