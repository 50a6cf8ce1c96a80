package bpe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/gpt/bpe"
)

// spelling is how GPT-2's files write a byte, as its own program has it.
func spelling() (all [256]string) {
	n := 0
	for b := range 256 {
		switch {
		case b >= 33 && b <= 126, b >= 161 && b <= 172, b >= 174:
			all[b] = string(rune(b))
		default:
			all[b] = string(rune(256 + n))
			n++
		}
	}
	return all
}

// files returns a vocabulary of all bytes, of the symbols of merges, and of others, in this order.
func files(merges []string, more ...string) (vocabulary, list string) {
	var entries []string
	seen := map[string]bool{}
	add := func(symbol string) {
		if !seen[symbol] {
			seen[symbol] = true
			entries = append(entries, fmt.Sprintf("%q: %d", symbol, len(entries)))
		}
	}
	for _, s := range spelling() {
		add(s)
	}
	for _, m := range merges {
		add(strings.ReplaceAll(m, " ", ""))
	}
	for _, s := range more {
		add(s)
	}
	return "{" + strings.Join(entries, ", ") + "}", "#version: 0.2\n" + strings.Join(merges, "\n") + "\n"
}

var merges = []string{"l o", "lo w", "e r", "Ġ t", "Ġt h", "Ġth e", "t h", "n e", "ne w", "new er", "Ġ low", "Ċ Ċ", "a a", "aa aa", "Ã ¤", "Ġ 3", "Ġ ,", "1 2"}

func tokenizer(tb testing.TB) *bpe.Tokenizer {
	tb.Helper()
	vocabulary, list := files(merges, "<|endoftext|>")
	x, err := bpe.New(strings.NewReader(vocabulary), strings.NewReader(list))
	require.NoError(tb, err)
	return x
}

// symbols returns the texts of the tokens of a text, between bars.
func symbols(t *testing.T, x *bpe.Tokenizer, text string) string {
	t.Helper()
	var all []string
	for _, token := range x.Encode(text) {
		b, err := x.Decode([]int64{token})
		require.NoError(t, err)
		all = append(all, string(b))
	}
	return strings.Join(all, "|")
}

// Words are divided, and symbols merged, as GPT-2 does.
func TestSymbols(t *testing.T) {
	x := tokenizer(t)
	for text, want := range map[string]string{
		"":           "",
		"low":        "low",
		"lower":      "low|er",
		"newer":      "newer",
		" the":       " the",
		"the":        "th|e",
		"  the":      " | the",
		"x the":      "x| the",
		" low the":   " low| the",
		"aaaaa":      "aaaa|a",
		"aaaaaaa":    "aaaa|aa|a",
		"\n\n":       "\n\n",
		"\n\n\n":     "\n\n|\n",
		"\n\nlow":    "\n|\n|low",
		"l3ow":       "l|3|o|w",
		"it's":       "i|t|'|s",
		"ä":          "ä",
		"\xc3":       "\xc3",
		"new\u00a0":  "new|\xc2|\xa0",
		"er er":      "er| |er",
		"t h":        "t| |h",
		" \tlow":     " |\t|low",
		"lo\x00w":    "lo|\x00|w",
		" \x1c low":  " |\x1c| low",
		"x 3 , 12":   "x| 3| ,| |12",
		"low...low,": "low|.|.|.|low|,",
	} {
		assert.Equal(t, want, symbols(t, x, text), "%q", text)
	}
	assert.Equal(t, 256+len(merges)+1, x.Size())
	end, found := x.Special("<|endoftext|>")
	assert.True(t, found)
	assert.Equal(t, int64(x.Size()-1), end)
	assert.NotContains(t, x.Encode("<|endoftext|>"), end)
	text, err := x.Decode([]int64{end})
	require.NoError(t, err)
	assert.Equal(t, "<|endoftext|>", string(text))
	_, found = x.Special("<|pad|>")
	assert.False(t, found)
}

// naive merges as GPT-2's own program does: all pairs of the lowest rank, from the left, again and again.
func naive(word string, merges []string) []string {
	ranks := map[[2]string]int{}
	spelled := spelling()
	for i, m := range merges {
		a, b, _ := strings.Cut(m, " ")
		ranks[[2]string{a, b}] = i
	}
	var parts []string
	for i := range len(word) {
		parts = append(parts, spelled[word[i]])
	}
	for {
		least, of := len(merges), [2]string{}
		for i := range len(parts) - 1 {
			if rank, found := ranks[[2]string{parts[i], parts[i+1]}]; found && rank < least {
				least, of = rank, [2]string{parts[i], parts[i+1]}
			}
		}
		if least == len(merges) {
			return parts
		}
		var next []string
		for i := 0; i < len(parts); i++ {
			if i+1 < len(parts) && parts[i] == of[0] && parts[i+1] == of[1] {
				next = append(next, of[0]+of[1])
				i++
			} else {
				next = append(next, parts[i])
			}
		}
		parts = next
	}
}

// A heap finds the same merges as the plain way, for all words of few letters.
func TestMerges(t *testing.T) {
	x := tokenizer(t)
	letters := "aelnotwrh"
	for i := range 20000 {
		var word []byte
		for n := i; n > 0; n /= len(letters) {
			word = append(word, letters[n%len(letters)])
		}
		want := naive(string(word), merges)
		require.Equal(t, strings.Join(want, "|"), symbols(t, x, string(word)))
	}
}

// Merges of symbols that earlier merges make, with any numbers, have the results of the plain way. Lines may end as on Windows, and be empty.
func TestRandomMerges(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		letters := []string{"a", "b", "c"}
		parts := slices.Clone(letters)
		var list []string
		for range 12 {
			left, right := parts[random.IntN(len(parts))], parts[random.IntN(len(parts))]
			if pair := left + " " + right; len(left+right) < 9 && !slices.Contains(list, pair) {
				list, parts = append(list, pair), append(parts, left+right)
			}
		}
		numbers := map[string]int{}
		all := spelling()
		for _, name := range append(all[:], parts...) {
			if _, known := numbers[name]; !known {
				numbers[name] = 0
			}
		}
		greatest := 0
		names := slices.Sorted(maps.Keys(numbers))
		for i, number := range random.Perm(2 * len(numbers))[:len(numbers)] {
			name := names[i]
			numbers[name] = number
			greatest = max(greatest, number)
		}
		vocabulary, err := json.Marshal(numbers)
		require.NoError(t, err)
		x, err := bpe.New(bytes.NewReader(vocabulary), strings.NewReader("#version: 0.2\r\n\r\n"+strings.Join(list, "\r\n")))
		require.NoError(t, err)
		require.Equal(t, greatest+1, x.Size())
		for range 50 {
			var word strings.Builder
			for range 1 + random.IntN(14) {
				word.WriteString(letters[random.IntN(len(letters))])
			}
			want := naive(word.String(), list)
			require.Equal(t, strings.Join(want, "|"), symbols(t, x, word.String()), "%q of %q", word.String(), list)
			for i, token := range x.Encode(word.String()) {
				require.EqualValues(t, numbers[want[i]], token)
			}
		}
	}
}

// Texts are divided as GPT-2's expression divides them.
func TestWords(t *testing.T) {
	const white = `\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}`
	expression := regexp.MustCompile(`^(?:'s|'t|'re|'ve|'m|'ll|'d| ?\pL+| ?\pN+| ?[^` + white + `\pL\pN]+|[` + white + `]+)`)
	blank := regexp.MustCompile(`^[` + white + `]+$`)
	divided := func(text string) (all []string) {
		for text != "" {
			one := expression.FindString(text)
			if _, last := utf8.DecodeLastRuneInString(one); blank.MatchString(one) && len(one) < len(text) && len(one) > last {
				one = one[:len(one)-last] // \s+(?!\S)
			}
			all, text = append(all, one), text[len(one):]
		}
		return all
	}
	pieces := []string{
		"'", "'", "s", "S", "t", "re", "ve", "m", "ll", "D", "d", "a", "ä", "日", "1", "²", "Ⅷ", "٣", " ", " ", " ", "\n", "\t", "\u0085", "\u00a0", "\u2003",
		"\u200b", "\x1c", "\x00", ".", ",", "\u0301", "\xff", "\xe6\x97", "_",
	}
	random := rand.New(rand.NewPCG(2, 1))
	for range 5000 {
		var text strings.Builder
		for range 1 + random.IntN(8) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		require.Equal(t, divided(text.String()), bpe.Words(text.String()), "%q", text.String())
	}
}

// A long word takes no time in the square of its length.
func TestLongWords(t *testing.T) {
	x := tokenizer(t)
	text := strings.Repeat("a", 1<<20)
	tokens := x.Encode(text)
	assert.Len(t, tokens, 1<<18)
	back, err := x.Decode(tokens)
	require.NoError(t, err)
	assert.Equal(t, text, string(back))
}

func TestMistakes(t *testing.T) {
	whole, list := files(merges)
	for name, c := range map[string]struct{ vocabulary, merges, text string }{
		"no JSON":          {"{", list, "vocab.json"},
		"another JSON":     {`["a"]`, list, "vocab.json"},
		"a byte missing":   {strings.Replace(whole, `"A": 65`, `"AA": 65`, 1), list, "the byte 65"},
		"a negative":       {strings.Replace(whole, ": 65,", ": -65,", 1), list, "-65"},
		"a large number":   {strings.Replace(whole, ": 65,", ": 1048576,", 1), list, "1048576"},
		"one number twice": {strings.Replace(whole, ": 65,", ": 66,", 1), list, "the number 66"},
		"a fraction":       {strings.Replace(whole, ": 65,", ": 6.5,", 1), list, "vocab.json"},
		"no byte":          {strings.Replace(whole, `"low"`, `"lo w"`, 1), list, "stands for no byte"},
		"an empty token":   {strings.Replace(whole, `"low"`, `""`, 1), list, "none at all"},
		"one symbol":       {whole, "low\n", "line 1: \"low\" are not two"},
		"three symbols":    {whole, list + "l o w\n", "line 20"},
		"no token":         {whole, "#version: 0.2\nl x\n", "line 2"},
		"twice":            {whole, list + "l o\n", "before"},
		"a late version":   {whole, list + "#version: 0.2\n", "line 20"},
		"no UTF-8":         {whole, list + "l \xff\n", "stands for no byte"},
		"a long line":      {whole, strings.Repeat("a", 1<<17), "line 1"},
	} {
		_, err := bpe.New(strings.NewReader(c.vocabulary), strings.NewReader(c.merges))
		var refused *bpe.FileError
		require.ErrorAs(t, err, &refused, name)
		assert.Contains(t, err.Error(), c.text, name)
	}
	x := tokenizer(t)
	for _, token := range []int64{-1, int64(x.Size()), 1 << 40} {
		text, err := x.Decode([]int64{0, token})
		assert.Nil(t, text)
		var none *bpe.TokenError
		require.ErrorAs(t, err, &none)
		assert.Equal(t, token, none.Token)
	}
}

// endless has a text, and then blanks or empty lines without an end.
type endless struct {
	text string
	more byte
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text)
	e.text = e.text[n:]
	for i := range p[n:] {
		p[n+i] = e.more
	}
	return len(p), nil
}

// Files of more than 64 MiB are refused, also where no more is in them than empty lines.
func TestLongFiles(t *testing.T) {
	if testing.Short() {
		return
	}
	whole, list := files(merges)
	var refused *bpe.FileError
	_, err := bpe.New(strings.NewReader(whole), &endless{list, '\n'})
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, bpe.FileError{File: "merges.txt", Reason: "it has more than 67108864 bytes"}, *refused)
	_, err = bpe.New(&endless{"", ' '}, strings.NewReader(list))
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, "vocab.json", refused.File)
}

func TestOpen(t *testing.T) {
	folder := t.TempDir()
	_, err := bpe.Open(folder)
	require.ErrorIs(t, err, os.ErrNotExist)
	vocabulary, list := files(merges)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vocab.json"), []byte(vocabulary), 0o600))
	_, err = bpe.Open(folder)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "merges.txt"), []byte(list), 0o600))
	x, err := bpe.Open(folder)
	require.NoError(t, err)
	assert.Equal(t, tokenizer(t).Encode("the newer low"), x.Encode("the newer low"))
}

// Every text is the text of its tokens.
func FuzzText(f *testing.F) {
	x := tokenizer(f)
	for _, text := range []string{"", "the newer low", " \n\t ", "it's 12 o'clock", "\xff\xfe", "ä\u2003日本", "a\x1cb", strings.Repeat("a ", 100)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		back, err := x.Decode(x.Encode(text))
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	})
}

// A file is refused, or is a tokenizer that has tokens for every text.
func FuzzFiles(f *testing.F) {
	vocabulary, list := files(merges)
	f.Add(vocabulary, list)
	f.Add("{}", "")
	f.Add(vocabulary, "#version\nl o\n\nlo w\r\n")
	f.Fuzz(func(t *testing.T, vocabulary, merges string) {
		x, err := bpe.New(strings.NewReader(vocabulary), strings.NewReader(merges))
		if err != nil {
			return
		}
		const text = "lower low\n\xff"
		back, err := x.Decode(x.Encode(text))
		require.NoError(t, err)
		require.Equal(t, text, string(back))
	})
}
