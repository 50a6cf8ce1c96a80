// Package interp executes kernels from PTX on bytes of the host, so that tests need no GPU. It imports only package ptx
// and reads no clock: the same launch on the same memory has the same result, on any number of goroutines.
//
// # From a text to a result
//
//  1. ptx.Parse reads the text. Compile prepares one entry: registers become slots, labels become indices, and each instruction a
//     function over the 32 threads of a warp. A mistake is an error here, with its line; an instruction that package ptx does
//     not know is a fault of the thread that executes it.
//  2. Kernel.Run executes the blocks of a grid, with the result of blocks that run one after the other; Launch.Memory finds
//     the bytes at an address.
//  3. The error of Run is a *Fault where the kernel has a mistake: its kind, the line of PTX and of the source, the thread, the
//     address, and the other access of a race.
//
// # How threads run
//
// The threads of a warp run together while they are at the same instruction. Where they part, the group that is first
// in the text runs, so that groups meet again; each group has its turn, so that threads of one warp may wait for each
// other, as from Volta on. An instruction with .sync waits for the threads of its mask, a barrier for the threads of
// the block; neither waits for exited threads. An aligned bar.arrive waits for the threads of its warp, which counts as a whole.
// A barrier that cannot complete is a fault, not a hang.
//
// In text for an architecture before sm_70 warps run in lockstep: shfl and vote without .sync are for the threads that
// execute them together.
//
// A warpgroup is four warps, from a multiple of four on. Each of them executes its part of a wgmma.mma_async, 16 rows,
// when it gets there; a warp that executes another product than the others, or none, is a fault. Matrices in shared
// memory are K-major or, of 16-bit elements, also MN-major, without a swizzle or with one of 32, 64 or 128 bytes, which
// exchanges bits of the address itself. A descriptor with a base offset is a fault of the kind Unsupported.
//
// # How blocks run
//
// Blocks run on several goroutines, each on memory as it was before the launch; their stores become the launch's when all
// have ended, and atomic operations whose results are not read follow in the order of the blocks. Where one block touches
// memory that another one stores, or there is a fault, the launch runs again on one goroutine, block after block. Kernels in which blocks may pass values to each other run so from the start: those that read the result of
// an atomic operation on global memory, or have ordered or .volatile accesses to it, atom.cas, clocks or printf.
//
// # Faults
//
// Accesses out of bounds, to memory that is not live, and misaligned ones; uses of registers and local memory, and
// reads of shared memory, that nobody wrote, and of global memory where Region.Initialised follows it; accesses that
// the launch does not declare, where Region.Declared lists those it does; a read of bytes that a cp.async has not
// delivered: they arrive as late as allowed, when the thread waits for them; trap, assertions of CUDA C++ (calls of
// __assertfail), and loops without an end.
//
// A register that nobody wrote is a fault where something depends on it: an address, a store to memory that other
// threads see, the condition of a branch or of a predicated instruction, the operands of votes, atomics, barriers and
// products of matrices. Instructions on registers alone pass undefined bits on to their results; so do shuffles, of
// which only the thread counts that is read from, calls of functions, and local memory. The fault names the register,
// and the one where the undefined bits came from.
//
// Of wgmma: an access to a register of A or D before the wgmma.wait_group that covers the product, where further
// products on the same D, of the same shape, are in order; a product on registers that were accessed since the last
// wgmma.fence; a product on shared memory whose last store, or copy by cp.async, has no fence.proxy.async of the same
// thread between it and the barrier; and a store to memory that a product may still read, by any thread, until the
// product's warp has waited for it.
//
// Races: two accesses of two threads to the same bytes, one of them a store and one of them plain, that nothing orders. Order
// comes from barriers, bar.warp.sync, and fences with atomic variables. The order of execution does not count, so a missing
// barrier is found at the first run. Two stores of the same value are no race. Between blocks only global memory is checked.
// Of the accesses to one word that an atomic one may hide, one of each block and warp is kept, up to eight. Of loads that nothing orders
// among each other two are kept: of different blocks or warps where there are such.
//
// Two idioms of correct programs are no race, though PTX's memory model has no order for them. A plain load that races
// with atomics is a guess if the thread then confirms the value by atom.cas, as loops around it do. A barrier of the
// block stands for the fence after an atomic access, as in reductions whose last block reads the words of all; with
// Launch.Strict it does not, and the fault says that a fence is missing.
//
// Two .volatile accesses are no race: in PTX they are relaxed. Only Launch.Strict, which treats them as plain, finds a
// missing barrier between them. Of shared memory and threads of one warp they are a WarpRace, as in a reduction whose last
// steps have no bar.warp.sync: from sm_70 on nothing keeps these threads together.
//
// A load by ld.global.nc of memory that the same launch stores is a fault, whichever comes first.
//
// # How it is built
//
// The table families registers each opcode: the function that translates it (a lowering gives operands their slots),
// and the rule for undefined operands. Instructions on registers alone become a computation on a frame, the others an
// action of a warp. A warp is a schedule of its threads with parts that share its site: warpOrder (order of accesses),
// detector (races), memory, copier (cp.async) and products (wgmma). Families use the parts; the schedule calls actions
// and knows no family. A transfer is a plain load or store of all threads in one loop, where each access is of the usual
// kind; memory.reach looks at any other one.
//
// # Fragments and mbarriers
//
// Fragments of wmma are laid out as PTX leaves open: a thread has neighbours of a row, in the same order in each type
// of sums. An mbarrier is the 64 bits of its memory. Copies that arrive at one by cp.async.mbarrier.arrive are
// delivered at that instruction, not as late as allowed. A warp that tests an mbarrier whose phase is open gives up its
// turn to the other warps of the block.
//
// # Precision
//
// Arithmetic follows IEEE 754, rounded once as the instruction says. The functions with .approx give the nearest
// number, which is within the error that PTX documents. Products of matrices are summed in double precision and rounded
// once an instruction, which is within the error of the hardware but not its very bits: a product of an H200 in TF32
// over 4096 pairs of normal numbers, 64 in size, was off by up to 0.0027, the interpreter's by 0.0002. NaN has the bits
// of the hardware in single precision.
//
// # Not simulated
//
// Caches, textures and surfaces, and time: special registers that are clocks count instructions. Blocks run as if one after
// the other, so that a grid whose blocks wait for each other does not end before Launch.MaxInstructions; with Launch.Cooperative they take
// turns. fence and membar order without regard to their scope.
package interp
