// Package ptx is PTX as a tree: a parser, a printer, a checker and a builder of kernels for the driver's compiler.
//
// It is text in, text out: nothing here looks at a device, a file or a clock, and no other package of this module is imported.
// Package compute/ptx/interp executes the tree.
//
// # The tree
//
// A Module has variables and functions; a Function has parameters, directives and a Block of statements. An Instruction
// has an Opcode, its modifiers and types as numbers, and operands. Names are resolved: an operand points to its
// Register, its Variable or its Label, so that two registers of one name in two scopes are two objects;
// Function.Registers lists the registers of a body, each at its Index. A name that is not declared stays an
// OperandName. Function.Code is the body without its scopes.
//
// Pos is a place in the text of PTX. Instruction.Source is the .loc directive in force, and Module.File the name of its
// number: with both an error names the line of the CUDA C++ source.
//
// # From text to text
//
//  1. Parse reads PTX of nvcc, of clang, and of this package. A text that is not PTX is a *SyntaxError. An instruction that is
//     not known is kept by its name, with its operands, so that it prints back. Sections of debugging information, pragmas of a whole module and the
//     inlining part of .loc are dropped.
//  2. Check reports everything in a module that the driver's compiler would refuse, as far as the table of instructions says it:
//     each finding is a *CheckError. The page docs/ptx.md lists the table. CheckFunctions does so for some functions alone. A finding that
//     is Lacking is about a thing that this package does not know and the driver may take.
//  3. Module.String prints a tree in one form. Parse reads that back as the same tree.
//
// # Uses of memory
//
// Uses tells which parameters of a kernel are pointers, and whether the kernel reads or writes the memory at each. It follows values
// from the parameters to addresses, and leaves out no use: a pointer that it cannot follow is Unknown.
//
// # Kernels by program
//
// A Kernel takes instructions by the names that PTX has for them: Let makes the registers of the result, Do has none or
// takes them from the caller. If, For, Element and others stand for several instructions. Build checks the whole and
// names the caller's line of each mistake; it chooses the oldest version and architecture that have the instructions,
// from PTX 7.0 and sm_70 on.
//
// # Architectures
//
// Text for an architecture, sm_80, also runs on later ones. Text for a variant, sm_90a, runs on that architecture alone
// and has instructions of its own: wgmma, the products of matrices of a warpgroup. Check refuses those for any other
// target, later ones included. Of wgmma the table has the products with results of f32 of tf32, f16 and bf16. Text for
// an architecture from sm_20 on and before sm_70 is read as one for sm_70; Module.Remarks says so, and Module.Lockstep.
//
// # Not supported
//
// Parameters in registers and vectors of registers are errors of Parse that name the directive. Tables of branch
// targets, prototypes of indirect calls, textures, surfaces, video instructions, bulk copies other than
// those of tensors to shared memory, and instructions on clusters of blocks are unknown instructions, which Check reports.
package ptx
