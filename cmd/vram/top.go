package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/go-vram/vram/monitor/page"
)

// topCmd is the command top.
type topCmd struct {
	loadFlags
	Device int    `default:"0" placeholder:"N" help:"The index of the device, of a page of several (default 0)."`
	Count  int    `default:"0" placeholder:"N" help:"End after so many samples; 0: when interrupted (default 0)."`
	Page   string `arg:"" optional:"" name:"url" help:"The address of a running page: http://HOST:PORT/. Without it a device is opened here, with a trace or the demonstration."`
}

// Validate reports invalid flags.
func (c *topCmd) Validate() error {
	if c.Device < 0 {
		return fmt.Errorf("--device %d: want 0 or more", c.Device)
	}
	if c.Count < 0 {
		return fmt.Errorf("--count %d: want 0 or more", c.Count)
	}
	return c.check()
}

// source reads the figures.
type source interface {
	sample(ctx context.Context) (*page.Sample, error)
	memoryMap(ctx context.Context, device int) (*page.Map, error)
}

// Run shows the figures until it is interrupted.
func (c *topCmd) Run(p *program) error {
	if c.Page != "" {
		from, err := pageAt(c.Page)
		if err != nil {
			return &usageError{err}
		}
		return c.show(p.ctx, p, from)
	}
	w, err := c.open(p, 0)
	if err != nil {
		return err
	}
	err = w.run(p.ctx, func(ctx context.Context) error { return c.show(ctx, p, &here{w}) })
	return errors.Join(err, w.close())
}

// show prints each sample: on a terminal over the previous one, elsewhere as a line.
func (c *topCmd) show(ctx context.Context, p *program, from source) error {
	out := screenOf(p.stdout)
	if out.terminal {
		quits, k, err := keysOf(ctx, p.stdin)
		if err != nil {
			return err
		}
		defer k.restore() // on a panic, too
		ctx, out.keys = quits, k.read
	}
	defer out.end()
	var before *page.Device
	var beforeTime time.Time
	for n := 0; c.Count == 0 || n < c.Count; n++ {
		if n > 0 && !sleep(ctx, max(c.Interval, page.MinInterval)) {
			return nil
		}
		s, err := from.sample(ctx)
		if err == nil && c.Device >= len(s.Devices) {
			err = fmt.Errorf("--device %d: the page has %d", c.Device, len(s.Devices))
			return errors.Join(&usageError{err})
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			if before == nil {
				return err
			}
			out.notice(err.Error())
			continue
		}
		d := &s.Devices[c.Device]
		f := frame{device: d, time: s.Time}
		if before != nil && s.Time.After(beforeTime) {
			f.rates(before, s.Time.Sub(beforeTime))
		}
		if out.terminal {
			f.memoryMap, _ = from.memoryMap(ctx, c.Device) // no map if it cannot be read: the device may be closed
		}
		if err := out.show(&f); err != nil {
			return err
		}
		before, beforeTime = d, s.Time
	}
	return nil
}

// here reads a device of this process.
type here struct{ *workload }

func (h *here) sample(context.Context) (*page.Sample, error) {
	return &page.Sample{Time: time.Now(), Devices: []page.Device{page.Read(h.device, 0)}}, nil //nolint:contextcheck // Stats has none
}

func (h *here) memoryMap(ctx context.Context, _ int) (*page.Map, error) {
	m, err := page.ReadMap(ctx, h.device, 0)
	return &m, err
}

// pageSource reads the page of another process.
type pageSource struct {
	base   *url.URL
	client http.Client
}

// answerLimit bounds the time of a page's answer.
const answerLimit = 10 * time.Second

// pageAt returns the page at an address.
func pageAt(address string) (*pageSource, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("%q: want the address of a page, as http://127.0.0.1:8080/", address)
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	base.RawQuery, base.Fragment = "", ""
	return &pageSource{base: base, client: http.Client{Timeout: answerLimit}}, nil
}

func (s *pageSource) sample(ctx context.Context) (*page.Sample, error) {
	var out page.Sample
	return &out, s.get(ctx, "stats.json", &out)
}

func (s *pageSource) memoryMap(ctx context.Context, device int) (*page.Map, error) {
	var out page.Map
	return &out, s.get(ctx, fmt.Sprintf("map.json?device=%d", device), &out)
}

// answerBytes bounds an answer. Not less: a map of eight thousand ranges has a megabyte.
const answerBytes = 64 << 20

func (s *pageSource) get(ctx context.Context, name string, into any) error {
	at := s.base.String() + name
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerBytes))
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	if answer.StatusCode != http.StatusOK {
		var refused struct{ Error string }
		if json.Unmarshal(body, &refused) != nil || refused.Error == "" {
			refused.Error = answer.Status
		}
		return fmt.Errorf("%s: %s", at, refused.Error)
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s is no page of vram: %w", at, err)
	}
	return nil
}

// screen prints frames.
type screen struct {
	out      io.Writer
	terminal bool
	colours  bool
	keys     bool // q quits
	size     func() (width, height int)
	begun    bool
	lines    int // printed without a terminal
}

func screenOf(out io.Writer) *screen {
	s := &screen{out: out}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) { //nolint:gosec // a small number
		return s
	}
	s.terminal, s.colours = true, os.Getenv("NO_COLOR") == ""
	s.size = func() (int, int) {
		width, height, err := term.GetSize(int(file.Fd())) //nolint:gosec // as above
		if err != nil {
			return 80, 24
		}
		return width, height
	}
	return s
}

// The escape sequences of a terminal.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	goHome     = "\x1b[H"
	clearRest  = "\x1b[J"
	clearLine  = "\x1b[K"
	clearAll   = "\x1b[2J"
)

func (s *screen) show(f *frame) error {
	if !s.terminal {
		return s.line(f)
	}
	width, height := s.size()
	var b strings.Builder
	if !s.begun {
		s.begun = true
		b.WriteString(hideCursor + clearAll)
	}
	b.WriteString(goHome)
	lines := f.render(width, s.colours)
	for i, line := range lines[:min(len(lines), max(1, height-1))] {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + clearLine)
	}
	b.WriteString("\r\n" + clearRest)
	if s.keys {
		b.WriteString(painter(s.colours).paint("2", "q quits"))
	}
	_, err := io.WriteString(s.out, b.String())
	return err
}

// headerEvery is the number of lines between two headers.
const headerEvery = 20

func (s *screen) line(f *frame) error {
	if s.lines%headerEvery == 0 {
		if _, err := fmt.Fprintln(s.out, f.header()); err != nil {
			return err
		}
	}
	s.lines++
	_, err := fmt.Fprintln(s.out, f.line())
	return err
}

// notice shows an error in place of the figures.
func (s *screen) notice(text string) {
	if s.terminal {
		_, _ = io.WriteString(s.out, goHome+text+clearLine)
		return
	}
	_, _ = fmt.Fprintln(s.out, text)
}

func (s *screen) end() {
	if s.begun {
		_, _ = io.WriteString(s.out, "\r"+clearLine+showCursor) // the prompt overwrites the line of keys
	}
}
