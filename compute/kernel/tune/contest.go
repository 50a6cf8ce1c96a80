package tune

import "time"

const (
	// EarlyRounds is after how many rounds slow variants are dropped: fewer times may come from a device that was not warm.
	EarlyRounds = 3
	// slowTenths is by how much slower than the fastest a variant may be then, in tenths.
	slowTenths = 15
)

// Contest is a measurement of variants in turns.
type Contest struct {
	rows    []Row
	times   [][]time.Duration
	rounds  int
	round   int
	at      int // of the round's order
	dropped []bool
}

// NewContest begins a measurement of so many rounds, at least one. Rows name the variants; those that are not Verified are not
// timed.
func NewContest(rows []Row, rounds int) *Contest {
	return &Contest{rows: append([]Row(nil), rows...), times: make([][]time.Duration, len(rows)), rounds: max(rounds, 1), dropped: make([]bool, len(rows))}
}

// Next is the variant to be timed, by its number; not ok where all have their times.
func (c *Contest) Next() (variant int, ok bool) {
	if c == nil {
		return 0, false
	}
	for c.round < c.rounds {
		for c.at < len(c.rows) {
			variant := (c.at + c.round) % len(c.rows)
			if !c.dropped[variant] && c.rows[variant].State == Verified {
				return variant, true
			}
			c.at++
		}
		c.at = 0
		c.round++
		if c.round == EarlyRounds {
			c.dropSlow()
		}
	}
	return 0, false
}

// Add takes the time of the variant that Next named.
func (c *Contest) Add(took time.Duration) {
	variant, ok := c.Next()
	if !ok {
		return
	}
	c.times[variant] = append(c.times[variant], took)
	c.at++
}

// Disqualify takes a variant out.
func (c *Contest) Disqualify(variant int, state State, why string) {
	if c == nil || variant < 0 || variant >= len(c.rows) {
		return
	}
	c.rows[variant].State, c.rows[variant].Why = state, why
	c.times[variant] = nil
}

// dropSlow ends the measurement of variants that cannot win. The reference stays: the others are held against it.
func (c *Contest) dropSlow() {
	var best time.Duration
	for i := range c.rows {
		if median, _ := middle(c.times[i]); median > 0 && c.rows[i].State == Verified && (best == 0 || median < best) {
			best = median
		}
	}
	for i := range c.rows {
		median, _ := middle(c.times[i])
		c.dropped[i] = !c.rows[i].Reference && median*10 > best*slowTenths
	}
}

// Rows are the variants with their times so far.
func (c *Contest) Rows() []Row {
	if c == nil {
		return nil
	}
	rows := append([]Row(nil), c.rows...)
	for i := range rows {
		rows[i].Median, rows[i].Spread = middle(c.times[i])
		rows[i].Rounds = len(c.times[i])
	}
	return rows
}

// Rounds is how many rounds are complete.
func (c *Contest) Rounds() int {
	if c == nil {
		return 0
	}
	return c.round
}
