package admission

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The last call alone says which accounts have a share: none, others, or the same in another order.
func TestSharesAreThoseOfTheLastCall(t *testing.T) {
	t.Parallel()
	usage := func(accounts ...Account) (all []Usage) {
		for _, a := range accounts {
			all = append(all, Usage{Account: a, ShareBytes: 10 * int64(a), ChargedBytes: int64(a)})
		}
		return all
	}
	var table Table
	for _, all := range [][]Usage{nil, usage(1), usage(2), usage(2), usage(1, 2), usage(2, 3), nil, usage(3), usage()} {
		table.SetUsage(all)
		var got []Usage
		for _, s := range table.shares {
			got = append(got, Usage{Account: s.account, ShareBytes: s.shareBytes, ChargedBytes: s.usedBytes})
		}
		assert.ElementsMatch(t, all, got)
	}
}
