package claims

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Offers that have waited are taken once, in their order.
func TestOffersAreTakenOnce(t *testing.T) {
	t.Parallel()
	var table Table
	first, second := Offer{Token: 1, RunsGranted: 2}, Offer{Token: 2, RunsGranted: 1}
	assert.False(t, table.Offered(first))
	assert.False(t, table.Offered(second))
	assert.Equal(t, []Offer{first, second}, table.TakeOffers())
	assert.Empty(t, table.TakeOffers())
	table.Receive(2)
	_, due := table.DueOffer()
	assert.False(t, due, "they were taken")
}
