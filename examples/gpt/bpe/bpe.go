package bpe

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// FileError refuses a file. Line counts from 1; 0 is the whole file.
type FileError struct {
	File   string
	Line   int
	Reason string
}

// Error returns file, line and reason.
func (e *FileError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("bpe: %s, line %d: %s", e.File, e.Line, e.Reason)
	}
	return fmt.Sprintf("bpe: %s: %s", e.File, e.Reason)
}

// TokenError refuses a token that the vocabulary does not have.
type TokenError struct{ Token int64 }

// Error returns the token.
func (e *TokenError) Error() string { return fmt.Sprintf("bpe: there is no token %d", e.Token) }

// The names of the files, and bounds of their contents.
const (
	vocabularyFile = "vocab.json"
	mergesFile     = "merges.txt"

	maxFileBytes = 64 << 20
	maxTokens    = 1 << 20
	maxLineBytes = 1 << 16
)

// pair is two adjacent symbols.
type pair struct{ left, right int32 }

// merge is a symbol that replaces a pair.
type merge struct {
	rank int32
	into int32
}

// Tokenizer splits texts into tokens. Make one with New or Open.
type Tokenizer struct {
	size   int              // one more than the greatest token
	tokens map[int32]string // bytes of each token
	bytes  [256]int32       // the token of each byte
	merges map[pair]merge
}

// Open reads vocab.json and merges.txt of a folder. Errors: *FileError, and errors of the files.
func Open(folder string) (t *Tokenizer, err error) {
	open := func(name string) (*os.File, error) { return os.Open(filepath.Join(folder, name)) } //nolint:gosec // the path is the user's
	vocabulary, err := open(vocabularyFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, vocabulary.Close()) }()
	merges, err := open(mergesFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, merges.Close()) }()
	return New(vocabulary, merges)
}

// New reads a vocabulary, a JSON object with the number of each token, and merges, lines of two symbols each: the first of lines
// that begin with "#version" is left out. Files of more than 64 MiB, lines of more than 64 KiB and numbers from 2^20 on are
// refused. Errors: *FileError, and errors of the readers.
func New(vocabulary, merges io.Reader) (*Tokenizer, error) {
	var numbers map[string]int64
	if err := json.NewDecoder(io.LimitReader(vocabulary, maxFileBytes)).Decode(&numbers); err != nil {
		return nil, &FileError{vocabularyFile, 0, err.Error()}
	}
	t := &Tokenizer{tokens: make(map[int32]string, len(numbers)), merges: map[pair]merge{}}
	of := make(map[string]int32, len(numbers)) // by bytes
	for name, number := range numbers {
		text, ok := bytesOf(name)
		switch {
		case !ok || text == "":
			return nil, &FileError{vocabularyFile, 0, fmt.Sprintf("the token %q has a character that stands for no byte, or none at all", name)}
		case number < 0 || number >= maxTokens:
			return nil, &FileError{vocabularyFile, 0, fmt.Sprintf("the token %q has the number %d: want 0 to %d", name, number, maxTokens-1)}
		}
		token := int32(number)
		if other, used := t.tokens[token]; used {
			return nil, &FileError{vocabularyFile, 0, fmt.Sprintf("the tokens %q and %q have the number %d", text, other, number)}
		}
		t.tokens[token], of[text] = text, token
		t.size = max(t.size, int(number)+1)
	}
	for b := range t.bytes {
		token, found := of[string([]byte{byte(b)})]
		if !found {
			return nil, &FileError{vocabularyFile, 0, fmt.Sprintf("the byte %d is no token", b)}
		}
		t.bytes[b] = token
	}
	return t, t.readMerges(merges, of)
}

// readMerges reads the merges, in the order of their ranks.
func (t *Tokenizer) readMerges(from io.Reader, of map[string]int32) error {
	limited := &io.LimitedReader{R: from, N: maxFileBytes + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxLineBytes)
	number := 0
	refused := func(format string, args ...any) error {
		return &FileError{mergesFile, number, fmt.Sprintf(format, args...)}
	}
	for lines.Scan() {
		number++
		line := lines.Text()
		if line == "" || number == 1 && strings.HasPrefix(line, "#version") {
			continue
		}
		first, second, two := strings.Cut(line, " ")
		if !two {
			return refused("%q are not two symbols", line)
		}
		left, ok := bytesOf(first)
		right, also := bytesOf(second)
		if !ok || !also {
			return refused("%q has a character that stands for no byte", line)
		}
		a, known := of[left]
		b, alsoKnown := of[right]
		into, joined := of[left+right]
		if !known || !alsoKnown || !joined {
			return refused("%q, %q or both together are no token", first, second)
		}
		if _, twice := t.merges[pair{a, b}]; twice {
			return refused("%q was merged before", line)
		}
		t.merges[pair{a, b}] = merge{int32(len(t.merges)), into} //nolint:gosec // fewer than lines
	}
	if err := lines.Err(); err != nil {
		number++
		return refused("%v", err)
	}
	if limited.N == 0 {
		return &FileError{mergesFile, 0, fmt.Sprintf("it has more than %d bytes", maxFileBytes)}
	}
	return nil
}

// Size returns one more than the greatest token: a model's vocabulary has at least so many.
func (t *Tokenizer) Size() int { return t.size }

// Encode returns the tokens of a text. Names of special tokens, as "<|endoftext|>", are text like any other.
func (t *Tokenizer) Encode(text string) []int64 { return t.Append(nil, text) }

// Append appends the tokens of a text to others.
func (t *Tokenizer) Append(to []int64, text string) []int64 {
	var w word
	for len(text) > 0 {
		n := wordLen(text)
		to = w.append(t, to, text[:n])
		text = text[n:]
	}
	return to
}

// Decode returns the bytes of tokens, which need not be UTF-8. Errors: *TokenError.
func (t *Tokenizer) Decode(tokens []int64) ([]byte, error) {
	var all []byte
	for _, token := range tokens {
		text, found := "", token >= 0 && token < maxTokens
		if found {
			text, found = t.tokens[int32(token)]
		}
		if !found {
			return nil, &TokenError{token}
		}
		all = append(all, text...)
	}
	return all, nil
}

// Special returns the token with a name in the vocabulary, as "<|endoftext|>".
func (t *Tokenizer) Special(name string) (token int64, found bool) {
	for token, text := range t.tokens {
		if text == name {
			return int64(token), true
		}
	}
	return 0, false
}

// spelled returns the character that stands for a byte in the files: itself if it is printable in Latin-1, and else one of those
// from U+0100 on, in the order of the bytes.
func spelled() (characters [256]rune) {
	next := rune(0x100)
	for b := range rune(256) {
		switch {
		case b >= '!' && b <= '~', b >= 0xa1 && b <= 0xac, b >= 0xae:
			characters[b] = b
		default:
			characters[b] = next
			next++
		}
	}
	return characters
}

// bytesByCharacter is spelled the other way round.
var bytesByCharacter = func() map[rune]byte { //nolint:gochecknoglobals // a constant table
	all := map[rune]byte{}
	for b, r := range spelled() {
		all[r] = byte(b)
	}
	return all
}()

// bytesOf returns the bytes that the characters of a symbol stand for.
func bytesOf(symbol string) (string, bool) {
	all := make([]byte, 0, len(symbol))
	for _, r := range symbol {
		b, ok := bytesByCharacter[r]
		if !ok { // as U+FFFD, which stands for what is no UTF-8
			return "", false
		}
		all = append(all, b)
	}
	return string(all), true
}
