// Package tune ranks the schedules of kernels by measured times, and keeps them as text. It is pure: it neither launches
// nor measures, and knows no clock; package kernel does both.
//
// # Words
//
// A Table has the rows of devices. A Device is a product name with a compute capability. A Key is a kernel, the kind of its operands'
// layouts, and a size class: rows and columns to the power of two. A Row is one variant of a kernel: its schedule by name, a hash of its
// code, the median of its times and their spread, and its State. Verified variants have computed the reference's results; Wrong and Failed
// ones are disqualified, and Why has the reason. The reference is the variant that package kernel takes without a table.
//
// # Ranking
//
// Rank orders the verified variants that are faster than the reference by more than MarginPercent, and by more than the mean of both
// spreads: then the middle halves of their times lie apart, if each lies evenly around its median. Of equal ones the first name counts.
// Where none is, the reference stays: ties change nothing. A row is of one code: the caller compares the hash with the code that there is,
// and passes over rows of other code. So a change of one variant leaves the others' rows valid.
//
// # Contest
//
// A Contest says which variant is to be timed next: all in turns, in another order each round, so that a change of the device's clock
// does not favour one. After EarlyRounds it drops those that are more than half slower than the fastest.
//
// # Text
//
// A table is a text of lines, the same for the same rows: sorted, one line for each device, key and row.
//
//	vram tuning table 1
//	device compute=9.0 name="NVIDIA H200"
//	key rows=0 cols=20 layouts="outer=0 inner=1 steps=unit,unit widest=8" kernel="float32 = neg(float32[0])"
//	row ns=3121 spread=24 rounds=9 code=0f1e2d3c4b5a state=verified variant="block=256 vector=4" reference
//	row ns=0 spread=0 rounds=0 code=aa1e2d3c4b5a state=wrong variant="block=256 vector=8" why="output 0 differs at byte 16"
//
// Parse takes the lines of String, empty lines, and lines that begin with #. Anything else is a *SyntaxError, which names the line.
// Another version is ErrVersion.
//
// # Concurrency properties
//
// A Table and a Contest are for one goroutine at a time. A Table that does not change may be read by any number.
package tune
