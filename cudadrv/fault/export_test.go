package fault

// Chance is for tests.
var Chance = chance

// Booked is how many allocations of all devices are known.
func (d *Driver) Booked() (count int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.ledgers {
		l.mu.Lock()
		count += len(l.plain) + len(l.handles)
		l.mu.Unlock()
	}
	return count
}
