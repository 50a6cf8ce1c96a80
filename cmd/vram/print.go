package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// mostColumns bounds every line of a table. Not more: terminals and code reviews of 100 columns show it whole. Not less: each
// piece that a wide table is cut into repeats the names.
const mostColumns = 100

// mostNameColumns bounds a name, which may come from a file. print cuts longer ones.
const mostNameColumns = 32

// figures is a table of results: names on the left, figures to the right. One that is too wide is printed in pieces.
type figures struct {
	header table.Row
	rows   []table.Row
	names  int // columns that each piece repeats
	under  string
}

// newTable begins a table whose first columns are names.
func newTable(names int, header ...string) *figures {
	f := &figures{names: names}
	f.columns(header...)
	return f
}

// columns adds to the header.
func (f *figures) columns(names ...string) {
	for _, c := range names {
		f.header = append(f.header, c)
	}
}

func (f *figures) add(row table.Row) { f.rows = append(f.rows, row) }

func (f *figures) caption(format string, args ...any) { f.under = fmt.Sprintf(format, args...) }

// print writes the table, in pieces of as many columns as fit side by side.
func (f *figures) print(w io.Writer) error {
	for from := f.names; from < len(f.header); {
		to := from + 1
		for to < len(f.header) && text.LongestLineLen(f.render(from, to+1)) <= mostColumns {
			to++
		}
		if _, err := fmt.Fprintln(w, f.render(from, to)); err != nil {
			return err
		}
		from = to
	}
	if f.under == "" {
		return nil
	}
	_, err := fmt.Fprintln(w, wrapped(f.under))
	return err
}

// render returns the table with the names and a range of columns.
func (f *figures) render(from, to int) string {
	out := table.NewWriter()
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	out.SetStyle(style)
	piece := func(row table.Row) table.Row {
		return append(append(table.Row(nil), row[:f.names]...), row[min(from, len(row)):min(to, len(row))]...)
	}
	out.AppendHeader(piece(f.header))
	for _, row := range f.rows {
		out.AppendRow(piece(row))
	}
	var columns []table.ColumnConfig
	for i := 1; i <= f.names+to-from; i++ {
		c := table.ColumnConfig{Number: i}
		switch {
		case len(f.header) == 2 && i == 2: // a name and a text
			c.WidthMax, c.WidthMaxEnforcer = mostColumns-mostNameColumns, text.WrapText
		case i == 1:
			c.WidthMax, c.WidthMaxEnforcer = mostNameColumns, clip
		default:
			c.Align, c.AlignHeader = text.AlignRight, text.AlignRight
		}
		columns = append(columns, c)
	}
	out.SetColumnConfigs(columns)
	return out.Render()
}

// wrapped breaks a text into lines that fit.
func wrapped(words string) string {
	lines := strings.Split(text.WrapSoft(words, mostColumns), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}

// clip keeps a name short.
func clip(name string, columns int) string { return text.Snip(name, columns, "…") }

func printJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// bytesText formats bytes in powers of 1024.
func bytesText(bytes int64) string {
	if bytes < 0 {
		return strconv.FormatInt(bytes, 10)
	}
	return humanize.IBytes(uint64(bytes))
}

func decimals(value float64, digits int) string { return strconv.FormatFloat(value, 'f', digits, 64) }

// optional formats a figure that not every row has.
func optional(value *float64, digits int) string {
	if value == nil {
		return ""
	}
	return decimals(*value, digits)
}
