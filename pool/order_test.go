package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/internal/pool/core"
)

// Runs that go back to a client are delivered before the answer to a Refill, in whichever order the
// core decided: a client may send its next Refill when it gets its answer.
func TestRunsGoHomeBeforeAnswers(t *testing.T) {
	var e effects
	l := &listener{panicAt: -1}
	e.grant(l, core.Grant{Client: 1, Token: 5, Run: core.Run{First: 0, Pages: 1}})
	e.grant(l, core.Grant{Client: 2, Run: core.Run{First: 1, Pages: 1}})
	e.grant(l, core.Grant{Client: 2, Run: core.Run{First: 4, Pages: 2}})
	for e.deliver() {
	}
	assert.Equal(t, []string{"granted 0 [{1 1} {4 2}]", "granted 5 [{0 1}]"}, l.calls)
}
