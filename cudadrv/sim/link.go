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
	var kept strings.Builder
	at := 0
	cut := func(from, to int, place string) {
		kept.WriteString(text[at:from])
		if first {
			kept.WriteString(place)
		}
		at = to
	}
	for r := newReader(text); r.peek() != ""; {
		directive := r.next()
		if directive != ".version" && directive != ".target" && directive != ".address_size" {
			continue
		}
		start := r.last.start
		value := r.ahead
		name := r.next()
		switch {
		case directive == ".version" && r.peek() != "":
			h.version = name + r.next()
			if first {
				cut(value.start, r.last.end, versionPlace)
			} else {
				cut(start, r.last.end, "")
			}
		case directive == ".target" && name != "":
			h.target = name
			for !first && r.take(",") { // options of a texture mode
				r.next()
			}
			if first {
				cut(value.start, value.end, targetPlace)
			} else {
				cut(start, r.last.end, "")
			}
		case directive == ".address_size" && name != "" && !first:
			cut(start, value.end, "")
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
