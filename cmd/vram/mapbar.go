package main

import (
	"strings"

	"github.com/go-vram/vram/monitor/page"
)

// mapRows is the height of the memory map in lines.
const mapRows = 3

// mapParts are the states of a map, as parts of a bar. The first one wins a cell that several share equally.
func mapParts(s *page.Sums) []part {
	return []part{
		{"live", s.LiveBytes, "34", 'L'},
		{"pending", s.PendingBytes, "33", 'P'},
		{"cached", s.CachedBlockBytes + s.CachedRangeBytes, "36", 'C'},
		{"set aside", s.SetAsideBytes, "35", 'S'},
		{"busy", s.BusyBytes + s.LentBytes, "31", 'B'},
		{"free", s.FreeBytes, "37", 'F'},
	}
}

// mapLines draws all segments one after the other, each cell in the colour of the state that has most of it. A segment begins a
// new cell.
func mapLines(m *page.Map, width int, p painter) []string {
	total := int64(0)
	for _, s := range m.Segments {
		total += s.Bytes
	}
	cellBytes := max(1, (total+int64(mapRows*width)-1)/int64(mapRows*width))
	var cells []part
	for _, s := range m.Segments {
		sums := make([]page.Sums, (s.Bytes+cellBytes-1)/cellBytes)
		for _, r := range s.Ranges {
			spread(sums, &r, cellBytes)
		}
		for i := range sums {
			all := mapParts(&sums[i])
			most := all[0]
			for _, x := range all[1:] {
				if x.bytes > most.bytes {
					most = x
				}
			}
			cells = append(cells, most)
		}
	}
	var lines []string
	for len(cells) > 0 {
		row := cells[:min(width, len(cells))]
		cells = cells[len(row):]
		lines = append(lines, p.row(row))
	}
	return lines
}

// row joins equal neighbours, so that each run has one escape sequence.
func (p painter) row(cells []part) string {
	var b strings.Builder
	for i := 0; i < len(cells); {
		end := i
		for end < len(cells) && cells[end].name == cells[i].name {
			end++
		}
		b.WriteString(p.cells(cells[i], end-i))
		i = end
	}
	return b.String()
}

// spread adds a range to the cells that it overlaps, a mixed one in proportion. It clips ranges outside the cells, which the
// page of another process may have.
func spread(sums []page.Sums, r *page.Range, cellBytes int64) {
	for at := max(0, r.OffsetBytes); at < r.OffsetBytes+r.Bytes && at/cellBytes < int64(len(sums)); {
		cell := at / cellBytes
		end := min((cell+1)*cellBytes, r.OffsetBytes+r.Bytes)
		addTo(&sums[cell], r, end-at)
		at = end
	}
}

func addTo(s *page.Sums, r *page.Range, bytes int64) {
	if m := r.Mixed; m != nil {
		share := func(n int64) int64 { return int64(float64(n) * float64(bytes) / float64(r.Bytes)) }
		s.LiveBytes += share(m.LiveBytes)
		s.PendingBytes += share(m.PendingBytes)
		s.CachedBlockBytes += share(m.CachedBlockBytes)
		s.CachedRangeBytes += share(m.CachedRangeBytes)
		s.FreeBytes += share(m.FreeBytes)
		s.SetAsideBytes += share(m.SetAsideBytes)
		s.BusyBytes += share(m.BusyBytes)
		s.LentBytes += share(m.LentBytes)
		return
	}
	switch r.State {
	case "live":
		s.LiveBytes += bytes
	case "pending":
		s.PendingBytes += bytes
	case "cached-block":
		s.CachedBlockBytes += bytes
	case "cached-range":
		s.CachedRangeBytes += bytes
	case "free":
		s.FreeBytes += bytes
	case "set-aside":
		s.SetAsideBytes += bytes
	case "busy":
		s.BusyBytes += bytes
	default:
		s.LentBytes += bytes
	}
}
