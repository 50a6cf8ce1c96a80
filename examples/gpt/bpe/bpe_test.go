package bpe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
func naive(word string) []string {
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
		want := naive(string(word))
		require.Equal(t, strings.Join(want, "|"), symbols(t, x, string(word)))
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
		"a long line":      {whole, strings.Repeat("a", 1<<17), "line 1"},
	} {
		_, err := bpe.New(strings.NewReader(c.vocabulary), strings.NewReader(c.merges))
		var refused *bpe.FileError
		require.ErrorAs(t, err, &refused, name)
		assert.Contains(t, err.Error(), c.text, name)
	}
	x := tokenizer(t)
	for _, token := range []int64{-1, int64(x.Size()), 1 << 40} {
		_, err := x.Decode([]int64{0, token})
		var none *bpe.TokenError
		require.ErrorAs(t, err, &none)
		assert.Equal(t, token, none.Token)
	}
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
