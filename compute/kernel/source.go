package kernel

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/cuda/nvrtc"
	"github.com/go-vram/vram/cudadrv"
)

// SourceError is a text of PTX that the driver refuses: of RawPTX, or one that a kernel made.
type SourceError struct {
	Kernel   string // the expressions of a kernel; "" for a text of the caller's
	Source   string
	Findings error // of ptx.Parse or ptx.Check: may be nil, and may name more than the driver does
	Err      error // the driver's
}

// Error returns the driver's log, the findings, and the lines that they name, or the whole text if they name none.
func (e *SourceError) Error() string {
	text := fmt.Sprintf("kernel: %v\n", e.Err)
	if e.Kernel != "" {
		text = fmt.Sprintf("kernel: %s: %v\n", e.Kernel, e.Err)
	}
	if e.Findings != nil {
		text += e.Findings.Error() + "\n"
	}
	return text + nvrtc.Excerpt(e.Source, e.Lines())
}

// Unwrap is the driver's error, and the findings.
func (e *SourceError) Unwrap() []error {
	if e.Findings == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Findings}
}

// Lines returns the numbers of the lines that the driver's log and the findings name, in order; the first line is 1.
func (e *SourceError) Lines() (all []int) {
	named := regexp.MustCompile(`\bline (\d+)\b|\bptx: (\d+):\d+`) // a driver's "line 12;", and "ptx: 12:3:" of package ptx
	if e == nil {
		return nil
	}
	text := fmt.Sprint(e.Err)
	if e.Findings != nil {
		text += "\n" + e.Findings.Error()
	}
	for _, found := range named.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(found[1] + found[2]); err == nil {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// refusedText wraps the driver's refusal of a text in a *SourceError. Other errors, such as a lack of memory, say nothing about
// the text.
func refusedText(of fmt.Stringer, text string, err error) error {
	for _, r := range []cudadrv.Result{
		cudadrv.InvalidPTX, cudadrv.InvalidImage, cudadrv.NoBinaryForGPU, cudadrv.UnsupportedPTXVersion, cudadrv.InvalidValue,
	} {
		if errors.Is(err, r) {
			e := &SourceError{Source: text, Findings: findings(text), Err: err}
			if of != nil {
				e.Kernel = of.String()
			}
			return e
		}
	}
	return err
}

// findings returns the mistakes that package ptx finds in a text.
func findings(text string) error {
	m, err := ptx.Parse(text)
	if err != nil {
		return err
	}
	return ptx.Check(m)
}
