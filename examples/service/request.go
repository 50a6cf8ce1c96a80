package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"github.com/go-vram/vram/examples/gpt/model"
)

// mostBodyBytes bounds a body: a token of a prompt has a few bytes.
const mostBodyBytes = 1 << 20

// completionRequest is the body of POST /v1/completions.
type completionRequest struct {
	Prompt         prompt  `json:"prompt"`
	MaxTokens      int     `json:"max_tokens"` // 0: 16
	Temperature    float64 `json:"temperature"`
	TopK           int     `json:"top_k"`
	Seed           uint64  `json:"seed"`
	Stop           *int64  `json:"stop_token"` // ends the answer before MaxTokens; nil: none
	Stream         bool    `json:"stream"`
	TimeoutSeconds float64 `json:"timeout_seconds"` // at most the service's timeout; 0: that
}

// prompt is a text or a list of tokens.
type prompt struct {
	text   string
	tokens []int64
}

// UnmarshalJSON reads a string or an array of numbers.
func (p *prompt) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &p.text)
	}
	return json.Unmarshal(b, &p.tokens)
}

// MarshalJSON writes the form that UnmarshalJSON reads.
func (p prompt) MarshalJSON() ([]byte, error) {
	if p.tokens != nil {
		return json.Marshal(p.tokens)
	}
	return json.Marshal(p.text)
}

// fieldError names an invalid field of a request.
type fieldError struct {
	Field string
	Value any
	Want  string
}

// Error names the field, its value, and the values allowed.
func (e *fieldError) Error() string {
	return fmt.Sprintf("%s is %v, want %s", e.Field, e.Value, e.Want)
}

// bodyError reports a body that is no request.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "body: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// readRequest reads exactly one JSON object with known fields.
func readRequest(w http.ResponseWriter, r *http.Request) (*completionRequest, error) {
	request := &completionRequest{}
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBodyBytes))
	body.DisallowUnknownFields()
	if err := body.Decode(request); err != nil {
		return nil, &bodyError{err}
	}
	if _, err := body.Token(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("more than one object")
		}
		return nil, &bodyError{err}
	}
	return request, nil
}

// defaultTokens is how many tokens an answer has where the request does not say.
const defaultTokens = 16

// check sets the defaults, makes tokens of the prompt, and reports an invalid field.
func (r *completionRequest) check(c model.Config, texts tokenizer, timeout time.Duration) error {
	if r.MaxTokens == 0 {
		r.MaxTokens = defaultTokens
	}
	if r.TimeoutSeconds == 0 {
		r.TimeoutSeconds = timeout.Seconds()
	}
	if r.Prompt.tokens == nil {
		var err error
		if r.Prompt.tokens, err = texts.encode(r.Prompt.text); err != nil {
			return err
		}
	}
	for i, token := range r.Prompt.tokens {
		if token < 0 || token >= int64(c.Vocabulary) {
			return &fieldError{fmt.Sprintf("prompt[%d]", i), token, fmt.Sprintf("0 to %d", c.Vocabulary-1)}
		}
	}
	length := len(r.Prompt.tokens)
	switch {
	case length < 1 || length > c.Context:
		return &fieldError{"the number of the prompt's tokens", length, fmt.Sprintf("1 to %d", c.Context)}
	case r.MaxTokens < 1 || r.MaxTokens > c.Context+1-length:
		return &fieldError{"max_tokens", r.MaxTokens, fmt.Sprintf("1 to %d after this prompt", c.Context+1-length)}
	case !(r.Temperature >= 0 && r.Temperature <= math.MaxFloat32): // NaN is neither
		return &fieldError{"temperature", r.Temperature, "0 or more"}
	case r.TopK < 0 || r.TopK > c.Vocabulary:
		return &fieldError{"top_k", r.TopK, fmt.Sprintf("0 to %d", c.Vocabulary)}
	case !(r.TimeoutSeconds > 0 && r.TimeoutSeconds <= timeout.Seconds()):
		return &fieldError{"timeout_seconds", r.TimeoutSeconds, fmt.Sprintf("more than 0, at most %v", timeout.Seconds())}
	}
	return nil
}

// draw returns how the tokens are drawn.
func (r *completionRequest) draw() model.Draw {
	return model.Draw{Temperature: r.Temperature, Top: r.TopK, Seed: r.Seed}
}
