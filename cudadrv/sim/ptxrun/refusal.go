package ptxrun

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// refusal returns the findings that a driver reports, too. It leaves out findings of one function about instructions
// that package ptx does not know, and the remarks on them.
func refusal(m *ptx.Module, found error) error {
	joined, ok := found.(interface{ Unwrap() []error })
	if !ok {
		return found
	}
	remarks := m.Remarks()
	var all, hard []error
	for _, err := range joined.Unwrap() {
		finding, ok := errors.AsType[*ptx.CheckError](err)
		switch {
		case !ok || !finding.Lacking || finding.Function == "" && !slices.Contains(remarks, finding.Message):
			hard = append(hard, err)
		case finding.Function != "":
			continue
		}
		all = append(all, err)
	}
	if len(hard) == 0 {
		return nil
	}
	return errors.Join(all...)
}
