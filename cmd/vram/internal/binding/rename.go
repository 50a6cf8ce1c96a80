package binding

import (
	"regexp"
	"slices"
	"strings"

	"github.com/go-vram/vram/compute/ptx"
)

// words are the names, numbers and opcodes of PTX, with the percent sign of registers.
var words = regexp.MustCompile(`[A-Za-z0-9_$%]+`)

// renamed returns the text of a module in which the parameters that a compiler has numbered have the names that the source gives
// them, so that the errors of launches and the faults of kernels tell those. Nothing else of the text changes, and no line moves.
func renamed(text string, m *ptx.Module, kernels []*kernel) string {
	begins := lineBegins(text)
	for n, f := range slices.Backward(m.Functions) { // so that the places of those before stay
		at := slices.IndexFunc(kernels, func(k *kernel) bool { return f.Entry && f.Body != nil && k.entry == f.Name })
		if at < 0 {
			continue
		}
		begin, end := begins[f.Pos.Line-1]+f.Pos.Column-1, len(text)
		if n+1 < len(m.Functions) {
			next := m.Functions[n+1].Pos
			end = begins[next.Line-1] + next.Column - 1
		}
		given := kernels[at].given(text[begin:end])
		text = text[:begin] + words.ReplaceAllStringFunc(text[begin:end], func(word string) string {
			if name := given[word]; name != "" {
				return name
			}
			return word
		}) + text[end:]
	}
	return text
}

// lineBegins returns where each line of a text begins.
func lineBegins(text string) []int {
	all := []int{0}
	for at, rest := 0, text; ; {
		n := strings.IndexByte(rest, '\n')
		if n < 0 {
			return all
		}
		at, rest = at+n+1, rest[n+1:]
		all = append(all, at)
	}
}

// given returns the names that parameters get in the text of their kernel, by those that they have there. A name that the kernel has
// already for another thing, which may be one of the module, gets an underscore.
func (k *kernel) given(text string) map[string]string {
	all, taken := map[string]string{}, map[string]bool{}
	for _, word := range words.FindAllString(text, -1) {
		taken[word] = true
	}
	for _, p := range k.parameters {
		if p.numbered == "" {
			continue
		}
		name := p.name
		for taken[name] {
			name += "_"
		}
		all[p.numbered], taken[name] = name, true
	}
	return all
}
