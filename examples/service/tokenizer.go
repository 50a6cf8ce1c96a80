package main

import (
	"github.com/go-vram/vram/examples/gpt/bpe"
	"github.com/go-vram/vram/examples/gpt/model"
)

// tokenizer makes tokens of texts, and texts of tokens.
type tokenizer struct {
	pairs *bpe.Tokenizer // nil: each byte is a token
	bytes bool           // the model's tokens are bytes
}

// byteTokens is the vocabulary of models whose tokens are bytes.
const byteTokens = 256

// openTokenizer reads the files of a folder; "" stands for none.
func openTokenizer(c model.Config, folder string) (t tokenizer, err error) {
	if folder != "" {
		t.pairs, err = bpe.Open(folder)
		return t, err
	}
	return tokenizer{bytes: c.Vocabulary == byteTokens}, nil
}

// encode returns the tokens of a text. Without a tokenizer only models whose tokens are bytes have texts.
func (t tokenizer) encode(text string) ([]int64, error) {
	switch {
	case t.pairs != nil:
		return t.pairs.Encode(text), nil
	case !t.bytes:
		return nil, &fieldError{"prompt", "a text", "a list of tokens: the service has no tokenizer for this model"}
	}
	tokens := make([]int64, len(text))
	for i := range tokens {
		tokens[i] = int64(text[i])
	}
	return tokens, nil
}

// decode returns the text of tokens, and an empty one where there is none. In JSON bytes that are no UTF-8 become U+FFFD: clients
// that need all of them read the tokens.
func (t tokenizer) decode(tokens ...int64) string {
	switch {
	case t.pairs != nil:
		text, err := t.pairs.Decode(tokens)
		if err != nil { // a token past the tokenizer's vocabulary
			return ""
		}
		return string(text)
	case !t.bytes:
		return ""
	}
	text := make([]byte, len(tokens))
	for i, token := range tokens {
		text[i] = byte(token)
	}
	return string(text)
}
