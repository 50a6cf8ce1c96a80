package main

import (
	"fmt"
	"time"
)

// The simulated model: 32 layers of width 4096 with 8 key-value heads of 128, half precision, a vocabulary
// of 32000.
const (
	layers         = 32
	width          = 4096
	keyValueWidth  = 8 * 128
	vocabulary     = 32_000
	bytesPerValue  = 2
	bytesPerLogit  = 4
	keyValueBytes  = 2 * layers * keyValueWidth * bytesPerValue // of a token: 128 KiB
	activationSize = 4 * width * bytesPerValue                  // of a prompt token: 32 KiB
)

// Bounds of a request. The product of the largest is 34 GB: more is a mistake.
const (
	mostPromptTokens = 32_768
	mostNewTokens    = 4096
	mostBatch        = 64
	mostTokens       = 262_144 // of all sequences of the batch together
)

// The time of a kernel: for each token of the prompt, and for each step that makes a token for every
// sequence.
const (
	promptTime = 2 * time.Microsecond
	stepTime   = 200 * time.Microsecond
)

// inferRequest is the body of POST /v1/infer.
type inferRequest struct {
	PromptTokens int `json:"prompt_tokens"`
	NewTokens    int `json:"new_tokens"`
	Batch        int `json:"batch"` // sequences; 0 is 1
}

// fieldError names an invalid field of a request.
type fieldError struct {
	Field string
	Value int
	Want  string
}

func (e *fieldError) Error() string {
	return fmt.Sprintf("%s is %d, want %s", e.Field, e.Value, e.Want)
}

// check sets the default and reports an invalid field.
func (r *inferRequest) check() error {
	if r.Batch == 0 {
		r.Batch = 1
	}
	for _, f := range []struct {
		name  string
		value int
		most  int
	}{
		{"prompt_tokens", r.PromptTokens, mostPromptTokens},
		{"new_tokens", r.NewTokens, mostNewTokens},
		{"batch", r.Batch, mostBatch},
	} {
		if f.value < 1 || f.value > f.most {
			return &fieldError{f.name, f.value, fmt.Sprintf("1 to %d", f.most)}
		}
	}
	if tokens := r.Batch * (r.PromptTokens + r.NewTokens); tokens > mostTokens {
		return &fieldError{"batch * (prompt_tokens + new_tokens)", tokens, fmt.Sprintf("at most %d", mostTokens)}
	}
	return nil
}

// buffers returns the sizes that the request needs at the same time: keys and values, activations, logits.
func (r *inferRequest) buffers() []int64 {
	sequences, prompt := int64(r.Batch), int64(r.PromptTokens)
	return []int64{
		sequences * (prompt + int64(r.NewTokens)) * keyValueBytes,
		sequences * prompt * activationSize,
		sequences * vocabulary * bytesPerLogit,
	}
}

// duration returns the time of the request's kernel.
func (r *inferRequest) duration() time.Duration {
	return time.Duration(r.Batch*r.PromptTokens)*promptTime + time.Duration(r.NewTokens)*stepTime
}
