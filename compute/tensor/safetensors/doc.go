// Package safetensors reads and writes files of tensors in the safetensors format, the one in which most models are
// published (https://github.com/huggingface/safetensors#format). It is pure: it knows no device and no memory but the
// host's.
//
// # The format
//
// A file is eight bytes, the length of the header in little-endian order; the header, a JSON object; and the data. The
// header names each tensor with its type, its shape and the range of its bytes in the data, and may have a map of texts
// under "__metadata__". Elements are in row-major order, little-endian.
//
// # Words
//
// An Entry describes a tensor of a file. A Source is a tensor to be written. The header of a File is read and checked
// once, by Open; the bytes of a tensor are read when they are asked for.
//
// # Checks
//
// A file is not trusted. Open refuses, with a *FormatError that names the tensor and the reason, a header that is longer
// than the file or than MaxHeaderBytes, is not one JSON object with the keys of the format, or has a name twice; a type
// that the format does not have; a shape whose size overflows or differs from the length of the tensor's range; ranges
// that overlap, leave a gap, or end anywhere but at the end of the file. So each byte of the data belongs to one tensor.
// Open allocates for the header alone, and for none of the sizes that it claims.
//
// # Concurrency
//
// A File does not change after Open. Any goroutine may use it, several at a time if its reader allows that, as an
// *os.File does.
package safetensors
