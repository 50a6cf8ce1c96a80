package trace

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// Write writes t as plain text in the format of the package doc; wrap w in a gzip.Writer for the
// other form. Read gives the same trace back.
func (t *Trace) Write(w io.Writer) error {
	out := bufio.NewWriterSize(w, readBufferBytes)
	line := append(make([]byte, 0, 96), header+"\n"...)
	for i := range t.Events {
		if _, err := out.Write(line); err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		e := &t.Events[i]
		line = strconv.AppendInt(line[:0], t.Micros[i], 10)
		line = append(append(append(line, ','), e.Op.String()...), ',')
		line = append(strconv.AppendUint(line, uint64(e.ID), 10), ',')
		line = append(strconv.AppendInt(line, e.Bytes, 10), ',')
		line = append(strconv.AppendUint(line, uint64(e.Stream), 10), '\n')
	}
	if _, err := out.Write(line); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("trace: %w", err)
	}
	return nil
}
