package sim

import (
	"strconv"
	"strings"
)

// joined concatenates PTX texts under the header of the first one, with the highest version and target of all. The lines of the
// first text keep their numbers.
func joined(texts []string) string {
	var all strings.Builder
	var highest header
	bodies := make([]string, len(texts))
	for i, text := range texts {
		var h header
		h, bodies[i] = cutHeader(text, i == 0)
		if number(h.version) > number(highest.version) {
			highest.version = h.version
		}
		if number(h.target) > number(highest.target) {
			highest.target = h.target
		}
	}
	first := strings.Replace(bodies[0], versionPlace, highest.version, 1)
	all.WriteString(strings.Replace(first, targetPlace, highest.target, 1))
	for _, body := range bodies[1:] {
		all.WriteByte('\n')
		all.WriteString(body)
	}
	return all.String()
}

// header is the begin of a text, whose version is like 7.0 and whose target is like sm_70.
type header struct{ version, target string }

// The places of the highest version and target in the first text: no text has them, since parse refuses such characters.
const versionPlace, targetPlace = "\x01", "\x02"

// cutHeader returns the header of a text, and the text without it; of the first text the header stays, with a place for the
// version and for the target.
func cutHeader(text string, first bool) (h header, body string) {
	words, starts := split(text)
	var kept strings.Builder
	at := 0
	cut := func(from, to int, place string) {
		kept.WriteString(text[at:from])
		if first {
			kept.WriteString(place)
		}
		at = to
	}
	for i, word := range words {
		end := func(last int) int { return starts[last] + len(words[last]) }
		switch {
		case word == ".version" && i+2 < len(words):
			h.version = words[i+1] + words[i+2]
			if first {
				cut(starts[i+1], end(i+2), versionPlace)
				continue
			}
			cut(starts[i], end(i+2), "")
		case word == ".target" && i+1 < len(words):
			h.target = words[i+1]
			last := i + 1
			for last+2 < len(words) && words[last+1] == "," { // options of a texture mode
				last += 2
			}
			if first {
				cut(starts[i+1], end(i+1), targetPlace)
				continue
			}
			cut(starts[i], end(last), "")
		case word == ".address_size" && i+1 < len(words) && !first:
			cut(starts[i], end(i+1), "")
		}
	}
	kept.WriteString(text[at:])
	return h, kept.String()
}

// number returns the number in a version or a target; a target with instructions of its own, as sm_90a, is above the other.
func number(of string) int {
	text := strings.Replace(strings.TrimPrefix(of, "sm_"), ".", "", 1)
	n, err := strconv.Atoi(strings.TrimRight(text, "af"))
	if err != nil {
		return 0
	}
	const letters = 2
	n *= letters
	if strings.HasSuffix(text, "a") {
		n++
	}
	return n
}
