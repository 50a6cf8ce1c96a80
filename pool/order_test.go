package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/pool/core"
)

// Runs that go home are delivered before the answer to a Refill, whatever the order in which the core
// decided: who gets its answer may ask for them at once.
func TestRunsGoHomeBeforeAnswers(t *testing.T) {
	var e effects
	e.grant(nil, core.Grant{Client: 1, Token: 5, Run: core.Run{First: 0, Pages: 1}})
	e.grant(nil, core.Grant{Client: 2, Run: core.Run{First: 1, Pages: 1}})
	e.grant(nil, core.Grant{Client: 2, Run: core.Run{First: 4, Pages: 2}})
	assert.Equal(t, []grant{
		{id: 2, runs: []core.Run{{First: 1, Pages: 1}, {First: 4, Pages: 2}}},
		{id: 1, token: 5, runs: []core.Run{{First: 0, Pages: 1}}},
	}, e.grants.all)
}
