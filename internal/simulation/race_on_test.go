//go:build race

package simulation

// seedCount is lower under the race detector, which finds nothing in tasks that run one at a time: it is there for what
// checked builds look at besides.
const seedCount = uint64(20)
