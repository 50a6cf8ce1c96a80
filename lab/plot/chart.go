package plot

import (
	"fmt"
	"html"
	"io"
	"strconv"
	"strings"
)

// Chart is a drawing.
type Chart struct {
	Title string
	// Note stands below the title: the measurement and its place.
	Note   string
	Panels []Panel
}

// Panel is a Curves or a Bars.
type Panel interface{ draw(c *canvas, top float64) }

// Point is a place on a curve.
type Point struct{ X, Y float64 }

// Curve is a named line, or the area under one.
type Curve struct {
	Name   string
	Area   bool
	Points []Point // X does not go back
}

// Curves are lines over one axis.
type Curves struct {
	Title string
	X     string // the unit of the axis
	Y     string // which is bytes
	All   []Curve
	// Mark is a place to point out, and its text; none where the text is empty.
	Mark     Point
	MarkText string
}

// Bars are values by name.
type Bars struct {
	Title  string
	X, Y   string
	Names  []string
	Values []float64
}

// The measures of a drawing, in pixels.
const (
	widthPixels  = 860
	panelPixels  = 300
	headPixels   = 56
	leftPixels   = 84
	rightPixels  = 24
	upperPixels  = 40 // of a panel, above its axes
	lowerPixels  = 56 // below
	plotWidth    = widthPixels - leftPixels - rightPixels
	plotHeight   = panelPixels - upperPixels - lowerPixels
	charPixels   = 6.2 // of a letter, about
	legendIndent = 14
)

// style has the colours by class: a dark page has others than a light one.
const style = `<style>
text{font:11px sans-serif;fill:#333}.head{font:bold 14px sans-serif}.title{font:bold 12px sans-serif}
.page{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#888}.mark{stroke:#888;stroke-dasharray:3 3}
.line{fill:none;stroke-width:1.5}.c0{stroke:#1d4ed8;fill:#1d4ed8}.c1{stroke:#c2410c;fill:#c2410c}.c2{stroke:#15803d;fill:#15803d}
.line.c0,.line.c1,.line.c2{fill:none}.area{stroke:none;fill-opacity:.3}.bar{fill:#1d4ed8;stroke:none}
@media (prefers-color-scheme:dark){text{fill:#ddd}.page{fill:#16181d}.grid{stroke:#333}.axis,.mark{stroke:#999}
.c0{stroke:#7aa2f7;fill:#7aa2f7}.c1{stroke:#f6a06a;fill:#f6a06a}.c2{stroke:#7fd491;fill:#7fd491}.bar{fill:#7aa2f7}}
</style>
`

// canvas is the text in the making.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { c.WriteString(fmt.Sprintf(format, args...) + "\n") }

func (c *canvas) text(x, y float64, class, anchor, words string) {
	c.add(`<text x="%s" y="%s" class="%s" text-anchor="%s">%s</text>`, at(x), at(y), class, anchor, html.EscapeString(words))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	c.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`, at(x1), at(y1), at(x2), at(y2), class)
}

// at returns a place in tenths of a pixel.
func at(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Write draws the chart.
func (ch *Chart) Write(w io.Writer) error {
	c := &canvas{}
	height := headPixels + panelPixels*len(ch.Panels)
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" role="img" aria-label="%s">`, widthPixels, height, html.EscapeString(ch.Title))
	c.WriteString(style)
	c.add(`<rect width="%d" height="%d" class="page"/>`, widthPixels, height)
	c.text(leftPixels, 24, "head", "start", ch.Title)
	c.text(leftPixels, 42, "note", "start", ch.Note)
	for i, p := range ch.Panels {
		p.draw(c, float64(headPixels+i*panelPixels))
	}
	c.add(`</svg>`)
	_, err := io.WriteString(w, c.String())
	return err
}

// frame draws a panel's title, the names of its axes and the grid of values, and answers where the values' axis begins.
func (c *canvas) frame(top float64, title, x, y string, ticks []float64, label func(float64) string, most float64) (bottom float64) {
	upper := top + upperPixels
	bottom = upper + plotHeight
	c.text(leftPixels, top+16, "title", "start", title)
	for _, tick := range ticks {
		height := bottom - plotHeight*tick/most
		c.line(leftPixels, height, leftPixels+plotWidth, height, "grid")
		c.text(leftPixels-6, height+4, "tick", "end", label(tick))
	}
	c.line(leftPixels, bottom, leftPixels+plotWidth, bottom, "axis")
	c.text(leftPixels+plotWidth/2, bottom+40, "name", "middle", x)
	middle := upper + plotHeight/2
	c.add(`<text transform="translate(16 %s) rotate(-90)" text-anchor="middle">%s</text>`, at(middle), html.EscapeString(y))
	return bottom
}

func (p Curves) draw(c *canvas, top float64) {
	mostX, mostY := 1.0, 1.0
	for _, curve := range p.All {
		for _, point := range curve.Points {
			mostX, mostY = max(mostX, point.X), max(mostY, point.Y)
		}
	}
	ticks := binaryTicks(mostY)
	mostY = max(mostY, ticks[len(ticks)-1])
	bottom := c.frame(top, p.Title, p.X, p.Y, ticks, bytesLabel, mostY)
	place := func(q Point) (x, y float64) {
		return leftPixels + plotWidth*q.X/mostX, bottom - plotHeight*q.Y/mostY
	}
	for _, tick := range decimalTicks(mostX) {
		x, _ := place(Point{X: tick})
		c.line(x, bottom, x, bottom+4, "axis")
		c.text(x, bottom+18, "tick", "middle", countLabel(tick))
	}
	legend := float64(leftPixels)
	for i, curve := range p.All {
		c.curve(i, curve, place, bottom)
		c.add(`<rect x="%s" y="%s" width="10" height="10" class="c%d"/>`, at(legend), at(top+22), i%3)
		c.text(legend+legendIndent, top+31, "name", "start", curve.Name)
		legend += 3*legendIndent + charPixels*float64(len(curve.Name))
	}
	if p.MarkText != "" {
		x, y := place(p.Mark)
		c.line(x, y, x, bottom, "mark")
		anchor := "start"
		if x > leftPixels+plotWidth/2 {
			anchor = "end"
		}
		c.text(x, y-6, "name", anchor, p.MarkText)
	}
}

func (c *canvas) curve(number int, curve Curve, place func(Point) (x, y float64), bottom float64) {
	if len(curve.Points) == 0 {
		return
	}
	var points strings.Builder
	for _, q := range curve.Points {
		x, y := place(q)
		fmt.Fprintf(&points, "%s,%s ", at(x), at(y))
	}
	path := strings.TrimSpace(points.String())
	if curve.Area {
		first, _ := place(curve.Points[0])
		last, _ := place(curve.Points[len(curve.Points)-1])
		c.add(`<polygon class="area c%d" points="%s,%s %s %s,%s"/>`, number%3, at(first), at(bottom), path, at(last), at(bottom))
		return
	}
	c.add(`<polyline class="line c%d" points="%s"/>`, number%3, path)
}

func (p Bars) draw(c *canvas, top float64) {
	most := 1.0
	for _, v := range p.Values {
		most = max(most, v)
	}
	ticks := decimalTicks(most)
	most = max(most, ticks[len(ticks)-1])
	bottom := c.frame(top, p.Title, p.X, p.Y, ticks, countLabel, most)
	step := float64(plotWidth) / float64(max(len(p.Values), 1))
	for i, v := range p.Values {
		height := plotHeight * v / most
		x := leftPixels + step*float64(i)
		c.add(`<rect x="%s" y="%s" width="%s" height="%s" class="bar"/>`, at(x+step*0.1), at(bottom-height), at(step*0.8), at(height))
		if shown(i, len(p.Values)) {
			c.text(x+step/2, bottom+18, "tick", "middle", p.Names[i])
		}
	}
}

// mostNames is how many names of bars fit side by side.
const mostNames = 14

// shown reports whether a bar has its name below it: all have where they fit.
func shown(i, count int) bool { return i%((count+mostNames-1)/mostNames) == 0 }
