package page

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leastContrast is the limit of WCAG 2 for graphics (1.4.11); textContrast the one for text (1.4.3).
const (
	leastContrast = 3.0
	textContrast  = 4.5
)

// theme has the colours of the style sheet by the names of its custom properties.
type theme map[string]string

// luminance is the relative luminance of a colour, by WCAG 2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 24)
	require.NoError(t, err, hex)
	require.Len(t, hex, 7)
	linear := func(shift uint) float64 {
		x := float64(rgb>>shift&0xff) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(16) + 0.7152*linear(8) + 0.0722*linear(0)
}

func (th theme) contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	require.Contains(t, th, a)
	require.Contains(t, th, b)
	low, high := luminance(t, th[a]), luminance(t, th[b])
	if low > high {
		low, high = high, low
	}
	return (high + 0.05) / (low + 0.05)
}

// themes reads the colours of page.css: the dark theme overrides the light one.
func themes(t *testing.T) map[string]theme {
	t.Helper()
	css, err := static.ReadFile("static/page.css")
	require.NoError(t, err)
	roots := regexp.MustCompile(`(?s):root \{(.*?)\}`).FindAllStringSubmatch(string(css), -1)
	require.Len(t, roots, 2, "light and dark")
	property := regexp.MustCompile(`--([a-z0-9-]+): (#[0-9a-f]{6});`)
	out := map[string]theme{"light": {}, "dark": {}}
	for i, name := range []string{"light", "dark"} {
		for _, m := range property.FindAllStringSubmatch(roots[i][1], -1) {
			out[name][m[1]] = m[2]
		}
	}
	return out
}

// fill is a fill of states.js.
type fill struct{ name, colour, pattern string }

func fillsOf(t *testing.T) (all []fill, script string) {
	t.Helper()
	text, err := static.ReadFile("static/states.js")
	require.NoError(t, err)
	for _, m := range regexp.MustCompile(`"([a-z0-9-]+)": \{ colour: "([a-z0-9-]+)", pattern: "([a-z]+)" \}`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, fill{m[1], m[2], m[3]})
	}
	require.GreaterOrEqual(t, len(all), 16)
	return all, string(text)
}

// Each colour of a picture stands out from the card, in both themes, and so do the lines of its pattern, which have the card's
// colour.
func TestColoursStandOutFromTheCard(t *testing.T) {
	t.Parallel()
	all, _ := fillsOf(t)
	for name, th := range themes(t) {
		for _, f := range all {
			assert.GreaterOrEqual(t, th.contrast(t, f.colour, "card"), leastContrast, "%s: %s", name, f.name)
			if strings.HasPrefix(f.name, "stream-") { // its number is written on it in the card's colour
				assert.GreaterOrEqual(t, th.contrast(t, f.colour, "card"), textContrast, "%s: the number on %s", name, f.name)
			}
		}
		for _, other := range []string{"limit", "measure", "edge", "focus"} {
			assert.GreaterOrEqual(t, th.contrast(t, other, "card"), leastContrast, "%s: %s", name, other)
		}
	}
}

// States that may lie side by side differ in pattern, or in lightness: never in hue alone. The lists of the time line and of
// the map overlap, so that every two of their fills are compared; cached is both of the map's.
func TestNeighboursAreToldApart(t *testing.T) {
	t.Parallel()
	all, _ := fillsOf(t)
	for name, th := range themes(t) {
		for i, a := range all {
			for _, b := range all[i+1:] {
				stream := strings.HasPrefix(a.name, "stream-") || strings.HasPrefix(b.name, "stream-") // they have numbers, and dividers
				same := a.name == "cached" && strings.HasPrefix(b.name, "cached-")
				if stream || same || a.pattern != b.pattern {
					continue
				}
				assert.GreaterOrEqual(t, th.contrast(t, a.colour, b.colour), leastContrast, "%s: %s next to %s", name, a.name, b.name)
			}
		}
	}
}

// One colour has one meaning: no two custom properties of pictures have the same value, and every state has a colour of its
// own.
func TestAColourHasOneMeaning(t *testing.T) {
	t.Parallel()
	all, script := fillsOf(t)
	css, err := static.ReadFile("static/page.css")
	require.NoError(t, err)
	for name, th := range themes(t) {
		of := map[string]string{}
		for _, f := range append(all, fill{colour: "limit"}, fill{colour: "measure"}) {
			if before, taken := of[th[f.colour]]; taken {
				assert.Equal(t, before, f.colour, "%s: %s has two meanings", name, th[f.colour])
			}
			of[th[f.colour]] = f.colour
		}
	}
	seen := map[string]string{}
	for _, f := range all {
		assert.True(t, f.colour == f.name || strings.HasPrefix(f.name, "cached-") && f.colour == "cached", "%s has the colour of %s", f.name, f.colour)
		key := f.colour + " " + f.pattern
		assert.True(t, seen[key] == "" || seen[key] == "cached", "%s looks as %s", f.name, seen[key])
		seen[key] = f.name
		if f.pattern != "solid" {
			assert.Contains(t, string(css), ".pattern-"+f.pattern+" {")
		}
		if f.pattern != "hollow" {
			assert.Regexp(t, `(?m)^  `+f.pattern+`: "`, script)
		}
	}
}
