package tape

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Step is a step that a tape learned, or is to play: the requests in order, from the place where least lives.
type Step []Request

// ErrPlan is the kind of every *PlanError.
var ErrPlan = errors.New("vram: not a plan")

// PlanError says which field of a plan cannot be.
type PlanError struct {
	Field string
	Value uint64
	Want  string // what it may be
}

// Error names the field, its value and what it may be.
func (e *PlanError) Error() string {
	return fmt.Sprintf("%v: %s is %d, want %s", ErrPlan, e.Field, e.Value, e.Want)
}

// Is holds for ErrPlan.
func (e *PlanError) Is(target error) bool { return target == ErrPlan }

// A plan file is fileMagic, and then as unsigned varints the version, the number of requests, and the units and the life
// of each; behind them the CRC-32 (IEEE) of all that, in four bytes, the lowest first. Places are no part of it: the next
// process has other memory, and packs anew.
const (
	fileMagic   = "vramplan"
	fileVersion = 1
)

// Write writes a plan file.
func (s Step) Write(w io.Writer) error {
	buf := append([]byte(fileMagic), fileVersion)
	buf = binary.AppendUvarint(buf, uint64(len(s)))
	for _, r := range s {
		buf = binary.AppendUvarint(buf, uint64(r.Units))
		buf = binary.AppendUvarint(buf, uint64(r.Life))
	}
	buf = binary.LittleEndian.AppendUint32(buf, crc32.ChecksumIEEE(buf))
	if _, err := w.Write(buf); err != nil {
		return fmt.Errorf("writing a plan: %w", err)
	}
	return nil
}

// ReadStep reads a plan file, and nothing behind it that a reader of single bytes need not. Errors: *PlanError, and those
// of r; a file that ends early is io.ErrUnexpectedEOF.
func ReadStep(r io.Reader) (Step, error) {
	in := &summed{r: bufio.NewReader(r)}
	for i := range len(fileMagic) {
		b, err := in.ReadByte()
		if err != nil {
			return nil, ended(err)
		}
		if b != fileMagic[i] {
			return nil, &PlanError{"its first bytes", uint64(b), fmt.Sprintf("%q", fileMagic)}
		}
	}
	version, err := in.number("version", 0, 1<<32-1)
	if err != nil {
		return nil, err
	}
	if version != fileVersion {
		return nil, &PlanError{"version", uint64(version), fmt.Sprint(fileVersion)}
	}
	count, err := in.number("number of requests", 1, historyLimit/2)
	if err != nil {
		return nil, err
	}
	step := make(Step, 0, min(count, historyStart)) // the file may be shorter than it says
	for range count {
		units, err := in.number("units", 1, 1<<32-1)
		if err != nil {
			return nil, err
		}
		life, err := in.number("life", 0, count)
		if err != nil {
			return nil, err
		}
		step = append(step, Request{units, life})
	}
	return step, in.check()
}

// Check says whether a step can be played. Errors: *PlanError.
func (s Step) Check() error {
	if len(s) == 0 || len(s) > historyLimit/2 {
		return &PlanError{"number of requests", uint64(len(s)), fmt.Sprintf("1 to %d", historyLimit/2)}
	}
	for _, r := range s {
		if r.Units == 0 {
			return &PlanError{"units", 0, "1 or more"}
		}
		if int(r.Life) > len(s) {
			return &PlanError{"life", uint64(r.Life), fmt.Sprintf("0 to %d", len(s))}
		}
	}
	return nil
}

// summed sums what is read.
type summed struct {
	r   *bufio.Reader
	sum uint32
}

// ReadByte implements io.ByteReader.
func (s *summed) ReadByte() (byte, error) {
	b, err := s.r.ReadByte()
	if err == nil {
		s.sum = crc32.Update(s.sum, crc32.IEEETable, []byte{b})
	}
	return b, err //nolint:wrapcheck // ended wraps it
}

// number reads a number within bounds.
func (s *summed) number(field string, least, most uint32) (uint32, error) {
	n, err := binary.ReadUvarint(s)
	if err != nil {
		return 0, ended(err)
	}
	if n < uint64(least) || n > uint64(most) {
		return 0, &PlanError{field, n, fmt.Sprintf("%d to %d", least, most)}
	}
	return uint32(n), nil //nolint:gosec // bounded by the line before
}

// check reads the sum and compares.
func (s *summed) check() error {
	want := s.sum
	var got [4]byte
	if _, err := io.ReadFull(s.r, got[:]); err != nil {
		return ended(err)
	}
	if n := binary.LittleEndian.Uint32(got[:]); n != want {
		return &PlanError{"checksum", uint64(n), fmt.Sprint(want)}
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading a plan: %w", err)
}
