// Package bpe is the byte-pair tokenizer of GPT-2: it reads the files vocab.json and merges.txt of a published model, splits texts
// into tokens, and joins tokens to texts. It is pure, and uses nothing but Go's standard library.
//
// # Words
//
// A symbol is a sequence of bytes that is a token; each byte is one. A merge joins two adjacent symbols. Its rank is its line in
// merges.txt: of all merges that are possible the one of the lowest rank is made first. A word is a part of a text within which
// symbols are merged: GPT-2 divides at spaces, and between letters, digits and other characters.
//
// In the files each byte of a symbol is a printable character: see spelled.
//
// # Checks
//
// Files are not trusted. New refuses, with a *FileError, vocabularies without one of the 256 bytes, with numbers that are
// negative, too large or used twice, and merges of symbols or to symbols that are no tokens. So Encode has a token for each text,
// and Decode returns it: any bytes, valid UTF-8 or not.
//
// # Cost
//
// Encode takes O(n log n) for a word of n bytes: a text of one long word takes no longer than others.
//
// # Concurrency properties
//
// A Tokenizer does not change. Any goroutine may use it.
package bpe
