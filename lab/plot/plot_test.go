package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/lab/plot"
)

// drawn reads the drawing as XML and answers its texts and the places of its points.
func drawn(t require.TestingT, c *plot.Chart) (texts []string, polygons [][]float64) {
	var out bytes.Buffer
	require.NoError(t, c.Write(&out))
	d := xml.NewDecoder(&out)
	inText := false
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts, polygons
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
			for _, a := range token.Attr {
				if a.Name.Local != "points" {
					continue
				}
				var places []float64
				for _, field := range strings.FieldsFunc(a.Value, func(r rune) bool { return r == ' ' || r == ',' }) {
					v, err := strconv.ParseFloat(field, 64)
					require.NoError(t, err)
					places = append(places, v)
				}
				polygons = append(polygons, places)
			}
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

// A drawing has its words, with units on the axes, and escapes the special characters of XML.
func TestADrawing(t *testing.T) {
	c := &plot.Chart{
		Title: `a "trace" <1>`, Note: "simulated",
		Panels: []plot.Panel{
			plot.Curves{
				Title: "Live", X: "events", Y: "bytes", Mark: plot.Point{X: 1000, Y: 3 << 30}, MarkText: "peak 3 GiB",
				All: []plot.Curve{
					{Name: "live", Area: true, Points: []plot.Point{{0, 0}, {1000, 3 << 30}}},
					{Name: "reserved", Points: []plot.Point{{0, 1 << 30}, {1000, 4 << 30}}},
				},
			},
			plot.Bars{Title: "Sizes", X: "from", Y: "allocations", Names: []string{"1 KiB", "2 KiB"}, Values: []float64{25000, 5}},
		},
	}
	texts, polygons := drawn(t, c)
	for _, want := range []string{
		`a "trace" <1>`, "simulated", "Live", "live", "reserved", "events", "bytes", "0 B", "1 GiB", "4 GiB", "200", "1000",
		"peak 3 GiB", "Sizes", "1 KiB", "allocations", "from", "20 k",
	} {
		assert.Contains(t, texts, want)
	}
	require.Len(t, polygons, 2)
	line := polygons[1]
	assert.Less(t, line[0], line[2], "to the right")
	assert.Greater(t, line[1], line[3], "upwards is less")
}

// Nothing is drawn outside the drawing.
func TestDrawingsStayInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var curve plot.Curve
		x := 0.0
		for range rapid.IntRange(0, 50).Draw(t, "points") {
			x += rapid.Float64Range(0, 1e6).Draw(t, "x")
			curve.Points = append(curve.Points, plot.Point{X: x, Y: rapid.Float64Range(0, 1e12).Draw(t, "y")})
		}
		curve.Area = rapid.Bool().Draw(t, "area")
		values := rapid.SliceOfN(rapid.Float64Range(0, 1e7), 0, 60).Draw(t, "values")
		_, polygons := drawn(t, &plot.Chart{Panels: []plot.Panel{
			plot.Curves{All: []plot.Curve{curve}}, plot.Bars{Names: make([]string, len(values)), Values: values},
		}})
		for _, places := range polygons {
			for i, v := range places {
				require.GreaterOrEqual(t, v, 0.0)
				require.LessOrEqual(t, v, []float64{860, 656}[i%2])
			}
		}
	})
}

// A writer's error comes back.
func TestAFullWriter(t *testing.T) {
	require.Error(t, (&plot.Chart{}).Write(full{}))
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
