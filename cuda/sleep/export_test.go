package sleep

// Spent counts blocks that the host has not taken back.
func (a *Arena) Spent() int { return len(a.spent) }
