package bpe

import (
	"container/heap"
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordLen returns the length of the word at the begin of a text that is not empty. Words are as in GPT-2's expression
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is no UTF-8 is no letter, no digit and no space.
func wordLen(text string) int {
	for _, suffix := range [...]string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(text, suffix) {
			return len(suffix)
		}
	}
	first, size := utf8.DecodeRuneInString(text)
	if first == ' ' && len(text) > size { // before a word it belongs to it
		next, _ := utf8.DecodeRuneInString(text[size:])
		if kind := kindOf(next); kind != space {
			return size + run(text[size:], kind)
		}
	}
	kind := kindOf(first)
	n := run(text, kind)
	if kind != space || n == len(text) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(text[:n])
	if n > last { // the last space is for the word after it
		return n - last
	}
	return n
}

// kind is a class of characters.
type kind uint8

const (
	letter kind = iota
	digit
	space
	other
)

func kindOf(r rune) kind {
	switch {
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return digit
	case unicode.IsSpace(r):
		return space
	}
	return other
}

// run returns the length of the characters of one kind at the begin of a text.
func run(text string, of kind) int {
	for at, r := range text {
		if kindOf(r) != of {
			return at
		}
	}
	return len(text)
}

// word merges the symbols of a word. Its memory serves one word after another.
type word struct {
	symbols []symbol
	heap    candidates
}

// symbol is one of a list with links in both directions, by index; -1 is none.
type symbol struct {
	token          int32 // -1 where it was merged into the one before it
	previous, next int32
}

// candidate is a merge that was possible when it was found.
type candidate struct {
	rank    int32
	at      int32 // of the left symbol
	of      pair  // which are there still, if the merge is possible
	becomes int32
}

// candidates are a heap: the lowest rank first, and of one rank the leftmost.
type candidates []candidate

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (c candidates) Len() int { return len(c) }

// Less orders by rank and place.
func (c candidates) Less(i, j int) bool {
	if c[i].rank != c[j].rank {
		return c[i].rank < c[j].rank
	}
	return c[i].at < c[j].at
}

// Swap exchanges two.
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push appends one.
func (c *candidates) Push(x any) { *c = append(*c, x.(candidate)) } //nolint:forcetypeassert // add has no others

// Pop removes the last one.
func (c *candidates) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

// append appends the tokens of a word.
func (w *word) append(t *Tokenizer, to []int64, text string) []int64 {
	w.symbols, w.heap = w.symbols[:0], w.heap[:0]
	for i := range len(text) {
		w.symbols = append(w.symbols, symbol{t.bytes[text[i]], int32(i) - 1, int32(i) + 1}) //nolint:gosec // a text is shorter than 2 GiB
	}
	w.symbols[len(text)-1].next = -1
	for i := range w.symbols {
		w.add(t, int32(i)) //nolint:gosec // as above
	}
	for len(w.heap) > 0 {
		c := heap.Pop(&w.heap).(candidate) //nolint:forcetypeassert // add has no others
		left := &w.symbols[c.at]
		if left.token != c.of.left || left.next < 0 || w.symbols[left.next].token != c.of.right {
			continue // one of both was merged
		}
		right := &w.symbols[left.next]
		left.token, right.token, left.next = c.becomes, -1, right.next
		if left.next >= 0 {
			w.symbols[left.next].previous = c.at
		}
		w.add(t, left.previous)
		w.add(t, c.at)
	}
	for i := int32(0); i >= 0; i = w.symbols[i].next {
		to = append(to, int64(w.symbols[i].token))
	}
	return to
}

// add notes that a symbol and the next one can be merged, if they can.
func (w *word) add(t *Tokenizer, at int32) {
	if at < 0 || w.symbols[at].next < 0 {
		return
	}
	of := pair{w.symbols[at].token, w.symbols[w.symbols[at].next].token}
	if m, found := t.merges[of]; found {
		heap.Push(&w.heap, candidate{m.rank, at, of, m.into})
	}
}
