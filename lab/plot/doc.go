// Package plot draws curves and bars as SVG: one self-contained text, without scripts and fonts of its own, whose colours
// follow the reader's light or dark setting.
//
// # Words
//
// A Chart is panels one below the other. A panel is Curves over a common axis, or Bars. An axis counts events, or bytes in
// powers of 1024.
//
// # Concurrency properties
//
// Write is a pure function of the chart.
package plot
