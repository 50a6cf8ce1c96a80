// Package code writes straight-line code once for two machines: the Emitter, which prints it as instructions of PTX, and the
// Evaluator, which computes it on the host, bit for bit as a GPU does.
//
// A Machine has one method for each number of operands; an Op is one instruction of PTX. A Value is a register of the Emitter, a
// constant, or the bits that the Evaluator has computed. The Emitter writes equal operations on equal values once.
//
// A NaN has no bits of its own here: a GPU makes 0x7fffffff of all, and so does the Evaluator where an operation makes one.
package code
