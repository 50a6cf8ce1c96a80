package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// figures is a table of results: names on the left, figures to the right.
type figures struct {
	writer table.Writer
	header table.Row
}

func newTable(header ...string) *figures {
	f := &figures{writer: table.NewWriter()}
	style := table.StyleLight
	style.Format.Header = text.FormatDefault
	f.writer.SetStyle(style)
	f.columns(header...)
	return f
}

// columns adds to the header.
func (f *figures) columns(names ...string) {
	for _, c := range names {
		f.header = append(f.header, c)
	}
}

func (f *figures) add(row table.Row) { f.writer.AppendRow(row) }

func (f *figures) caption(format string, args ...any) { f.writer.SetCaption(format, args...) }

func (f *figures) print(w io.Writer) error {
	f.writer.AppendHeader(f.header)
	var columns []table.ColumnConfig
	for i := 2; i <= len(f.header) && len(f.header) > 2; i++ { // two columns are a name and a text
		columns = append(columns, table.ColumnConfig{Number: i, Align: text.AlignRight, AlignHeader: text.AlignRight})
	}
	f.writer.SetColumnConfigs(columns)
	_, err := fmt.Fprintln(w, f.writer.Render())
	return err
}

func printJSON(w io.Writer, value any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(value)
}

// bytesText is bytes for people, in powers of 1024.
func bytesText(bytes int64) string {
	if bytes < 0 {
		return strconv.FormatInt(bytes, 10)
	}
	return humanize.IBytes(uint64(bytes))
}

func decimals(value float64, digits int) string { return strconv.FormatFloat(value, 'f', digits, 64) }

// optional is a figure that not every row has.
func optional(value *float64, digits int) string {
	if value == nil {
		return ""
	}
	return decimals(*value, digits)
}
