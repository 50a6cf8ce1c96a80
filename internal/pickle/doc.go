// Package pickle writes plain data in Python's pickle format, protocol 2: None, booleans, integers, floats, strings, lists,
// tuples and dictionaries. It writes no classes and no calls, so that reading its output runs no code.
//
// # Words
//
// A value is nil, a bool, an int, int64, uint64 or float64, a string, a Dict, a List, a Tuple, or a *Shared. The memo is the
// format's table of objects that occurred: each string is written once, and a Shared value once however often it occurs.
//
// # Formats
//
// The operations are those that every reader of protocol 2 knows, and among them only those that the viewer of PyTorch's memory
// snapshots implements: integers beyond 32 bits are LONG1, strings are BINUNICODE, the memo is BINPUT and BINGET. Lists and
// dictionaries are filled in pieces of a thousand, as Python's own writer does.
//
// # Concurrency properties
//
// Encode keeps no state between calls, and a call belongs to its goroutine.
package pickle
