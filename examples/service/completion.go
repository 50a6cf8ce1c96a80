package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// The reasons why an answer has ended.
const (
	endedLength   = "length"   // it has max_tokens
	endedStop     = "stop"     // its last token is stop_token
	endedDeadline = "deadline" // its time is over
	endedStopping = "stopping" // the service is being stopped
	endedError    = "error"
)

// completionAnswer is the answer to POST /v1/completions, and without tokens the last event of a stream.
type completionAnswer struct {
	Tokens []int64  `json:"tokens,omitempty"`
	Text   string   `json:"text,omitempty"`
	Reason string   `json:"finish_reason"`
	Usage  usage    `json:"usage"`
	Error  *problem `json:"error,omitempty"`
}

// usage has the figures of a request.
type usage struct {
	PromptTokens     int   `json:"prompt_tokens"`
	CompletionTokens int   `json:"completion_tokens"`
	CacheBytes       int64 `json:"cache_bytes"`      // of keys and values
	WaitedMicros     int64 `json:"waited_us"`        // for memory
	FirstMicros      int64 `json:"time_to_first_us"` // from the body to the first token
}

// completion is a request while it is answered.
type completion struct {
	*completionRequest
	sv      *Service
	tenant  *tenant
	started time.Time
	had     time.Time // since when it has memory
	usage   usage
	tokens  []int64
}

// complete is the handler of POST /v1/completions.
func (sv *Service) complete(w http.ResponseWriter, r *http.Request) {
	sv.received.Add(1)
	c := completion{sv: sv, started: time.Now()}
	var err error
	if c.completionRequest, err = readRequest(w, r); err == nil {
		err = c.check(sv.model, sv.texts, sv.settings.Timeout)
	}
	if err == nil {
		c.tenant, err = sv.tenantOf(r.Header.Get(tenantHeader))
	}
	if err != nil {
		sv.refuse(w, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Duration(c.TimeoutSeconds*float64(time.Second)))
	defer cancel()
	j, err := c.begin(ctx)
	if err != nil {
		err = stopped(ctx, err)
		if problemOf(err).status == http.StatusInternalServerError { // of the device, which could not wake the weights or allocate
			sv.broken.Store(true)
		}
		sv.refuse(w, err)
		return
	}
	c.answer(ctx, w, j)
}

// stopped returns the reason of a shutdown for a request that it has ended: it is not the client's doing.
func stopped(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); errors.Is(cause, errStopping) {
		return cause
	}
	return err
}

// begin wakes the weights, waits for memory, and submits the request to the engine. The caller ends it with finish.
func (c *completion) begin(ctx context.Context) (_ *job, err error) {
	sv := c.sv
	if err := sv.sleeper.enter(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			sv.sleeper.leave()
		}
	}()
	tokens := len(c.Prompt.tokens) + c.MaxTokens
	if c.usage.CacheBytes = sv.decoder.SequenceBytes(tokens); c.usage.CacheBytes > sv.cacheBytes {
		return nil, &neverError{c.usage.CacheBytes, sv.cacheBytes}
	}
	sv.waiting.Add(1)
	sequence, err := sv.engine.decoder.NewSequence(ctx, tokens, c.draw(), c.tenant.account)
	sv.waiting.Add(-1)
	waited := time.Since(c.started)
	c.tenant.waited.Observe(waited.Seconds())
	c.usage.WaitedMicros = waited.Microseconds()
	if err != nil {
		return nil, err
	}
	c.had = time.Now()
	c.usage.PromptTokens = len(c.Prompt.tokens)
	sv.running.Add(1)
	j := &job{sequence: sequence, prompt: c.Prompt.tokens, most: c.MaxTokens, stop: c.Stop, gone: ctx.Done(), tokens: make(chan int64, c.MaxTokens)}
	if err := sv.engine.submit(ctx, j); err != nil {
		sv.running.Add(-1)
		err = errors.Join(err, sequence.Free())
		c.tenant.served(c.usage.CacheBytes, time.Since(c.had))
		return nil, err
	}
	return j, nil
}

// answer passes the tokens to the client, as they come or at the end. It returns once the engine has freed the memory.
func (c *completion) answer(ctx context.Context, w http.ResponseWriter, j *job) {
	sv := c.sv
	defer func() {
		for range j.tokens { // of a client that is gone
		}
		sv.running.Add(-1)
		c.tenant.served(c.usage.CacheBytes, time.Since(c.had))
		sv.sleeper.leave()
	}()
	to := stream{ResponseWriter: w}
	previous := c.started
	for token := range j.tokens {
		now := time.Now()
		if len(c.tokens) == 0 {
			c.usage.FirstMicros = now.Sub(c.started).Microseconds()
			c.tenant.first.Observe(now.Sub(c.started).Seconds())
		} else {
			c.tenant.between.Observe(now.Sub(previous).Seconds())
		}
		previous = now
		c.tokens = append(c.tokens, token)
		c.tenant.tokens.Add(1)
		if c.Stream {
			to.token(token, sv.texts.decode(token), len(j.tokens) == 0)
		}
	}
	c.usage.CompletionTokens = len(c.tokens)
	reason, err := c.ended(ctx, j)
	if len(c.tokens) == 0 || !c.Stream && err != nil && reason == endedError {
		sv.refuse(w, err)
		return
	}
	sv.answered.Add(1)
	c.tenant.answered.Add(1)
	sv.meters.ends.WithLabelValues(reason).Inc()
	last := completionAnswer{Reason: reason, Usage: c.usage}
	if reason == endedError {
		p := problemOf(err)
		last.Error = &p
	}
	if c.Stream {
		to.end(last)
		return
	}
	last.Tokens, last.Text = c.tokens, sv.texts.decode(c.tokens...)
	writeJSON(w, http.StatusOK, last)
}

// ended returns why an answer has ended, and the error of one that is not complete.
func (c *completion) ended(ctx context.Context, j *job) (reason string, err error) {
	switch {
	case j.err != nil:
		return endedError, j.err
	case c.Stop != nil && len(c.tokens) > 0 && c.tokens[len(c.tokens)-1] == *c.Stop:
		return endedStop, nil
	case len(c.tokens) == c.MaxTokens:
		return endedLength, nil
	case errors.Is(context.Cause(ctx), errStopping):
		return endedStopping, errStopping
	}
	return endedDeadline, ctx.Err()
}

// stream writes server-sent events.
type stream struct {
	http.ResponseWriter

	begun bool
	line  []byte
}

// event writes the line, and flushes unless more is there to be written. Errors are ignored: the client has left,
// which ends the request's context.
func (s *stream) event(flush bool) {
	if !s.begun {
		s.begun = true
		s.Header().Set("Content-Type", "text/event-stream")
		s.Header().Set("Cache-Control", "no-store")
		s.WriteHeader(http.StatusOK)
	}
	s.line = append(s.line, "\n\n"...)
	_, _ = s.Write(s.line)
	if flush {
		_ = http.NewResponseController(s.ResponseWriter).Flush()
	}
}

// token writes a token: {"token":97,"text":"a"}.
func (s *stream) token(token int64, text string, flush bool) {
	s.line = append(s.line[:0], `data: {"token":`...)
	s.line = strconv.AppendInt(s.line, token, 10)
	if text != "" {
		quoted, _ := json.Marshal(text) //nolint:errchkjson // a string
		s.line = append(append(s.line, `,"text":`...), quoted...)
	}
	s.line = append(s.line, '}')
	s.event(flush)
}

// end writes the last events.
func (s *stream) end(a completionAnswer) {
	last, _ := json.Marshal(a) //nolint:errchkjson // numbers and texts
	s.line = append(append(s.line[:0], "data: "...), last...)
	s.event(false)
	s.line = append(s.line[:0], "data: [DONE]"...)
	s.event(true)
}

// writeJSON writes an answer. It ignores errors: the client has left.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}
